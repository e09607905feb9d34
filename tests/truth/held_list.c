/* SPDX-License-Identifier: MIT */
/*
 * A list that only grows, held by one variable; beside it blocks that are lost
 * and blocks to whose middle alone something points.
 */
#include "case.h"

enum { NODES = 3000, LOST = 70, MIDDLES = 9, RINGS = 25 };

struct node {
	struct node *next;
	char *name;
	char rest[80];
};

struct ring {
	struct ring *other;
	char rest[120];
};

struct node *all_nodes;
char *middles[MIDDLES];

static __attribute__((noinline)) void lose(void)
{
	for (int i = 0; i < LOST; i++)
		*(void *volatile *)filled(200, 0) = NULL;
	for (int i = 0; i < RINGS; i++) {
		struct ring *a = filled(sizeof(*a), 0);
		struct ring *b = filled(sizeof(*b), 0);

		a->other = b;
		b->other = a;
	}
}

static __attribute__((noinline)) void scrub(void)
{
	volatile char junk[16384];

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = 0;
}

int main(void)
{
	quiet_stdout();
	for (int i = 0; i < NODES; i++) {
		struct node *n = filled(sizeof(*n), 0);

		n->name = filled(30, 'n');
		n->next = all_nodes;
		all_nodes = n;
	}
	for (int i = 0; i < MIDDLES; i++)
		middles[i] = (char *)filled(500, 'm') + 50 + i;
	lose();
	scrub();
	truth("retained_blocks", 2 * NODES);
	truth("retained_bytes",
	      NODES * (CHUNK(sizeof(struct node)) + CHUNK(30)));
	truth("lost_blocks", LOST);
	truth("lost_size", CHUNK(200));
	truth("ring_blocks", 2 * RINGS);
	truth("ring_size", CHUNK(sizeof(struct ring)));
	truth("middle_blocks", MIDDLES);
	truth("middle_size", CHUNK(500));
	truth_at("head", all_nodes);
	truth_at("last", middles[0]);
	finish();
}
