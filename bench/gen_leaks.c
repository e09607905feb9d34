/* SPDX-License-Identifier: MIT */
/*
 * A heap of small blocks of which some are lost, and then a core.
 *
 * Usage: gen_leaks [BLOCKS]: about so many [9500000]: a hash table of chains
 * with links across it and texts; of the nodes five in a hundred are lost, one
 * in five of these with a partner in a ring of two.  Every byte is written.
 * The first line of stderr is the truth: "9500000 blocks, 475000 lost:
 * 380000 direct, 95000 in 47500 rings, 50000000 bytes".  Bytes are those of
 * chunks.  The second one is the address of a block in a ring.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
	struct node *next;	/* in the chain, or in the ring */
	struct node *other;	/* any live one */
	char *text;
	uint64_t number;
	char rest[];
};

struct node **table;		/* the only way to the blocks */
static uint64_t state = 88172645463325252;
static uint64_t n_blocks, direct, in_rings, lost_bytes;
static uint32_t ring[2];	/* halves of the address of one in a ring */

static uint64_t rnd(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

static struct node *node(void)
{
	size_t rest = 8 + rnd(128);
	struct node *n = malloc(sizeof(*n) + rest);

	if (!n)
		_exit(2);
	memset(n, 0, sizeof(*n));
	n->number = n_blocks++;
	for (size_t i = 0; i < rest; i++)
		n->rest[i] = (char)(rnd(128));
	return n;
}

static void lose(struct node *n)
{
	lost_bytes += malloc_usable_size(n) + 8;
	if (rnd(9)) {
		direct++;
		return;
	}
	n->next = node();
	n->next->next = n;
	lost_bytes += malloc_usable_size(n->next) + 8;
	in_rings += 2;
	ring[0] = (uint32_t)((uint64_t)(uintptr_t)n >> 32);
	ring[1] = (uint32_t)(uintptr_t)n;
}

static void keep(struct node *n, uint64_t slot)
{
	n->next = table[slot];
	table[slot] = n;
	if (rnd(4))
		return;
	n->text = malloc(20 + rnd(30));
	strcpy(n->text, "a text of a node");
	n_blocks++;
}

static __attribute__((noinline)) void fill(uint64_t want, uint64_t slots)
{
	struct node **all = malloc(want * sizeof(*all));
	uint64_t n_all = 0;

	while (n_blocks < want) {
		struct node *n = node();

		n->other = n_all ? all[rnd(n_all)] : NULL;
		if ((direct + in_rings) * 20 < n_blocks)
			lose(n);
		else
			keep(all[n_all++] = n, rnd(slots));
	}
	memset(all, 0, want * sizeof(*all));
	free(all);
}

/* What the calls before left on the stack. */
static __attribute__((noinline)) void scrub(void)
{
	volatile char junk[16384];

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = 0;
}

int main(int argc, char **argv)
{
	uint64_t want = argc > 1 ? strtoull(argv[1], NULL, 10) : 9500000;
	uint64_t slots = want / 8 + 1;

	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	table = calloc(slots, sizeof(*table));
	fill(want, slots);
	scrub();
	fprintf(stderr, "%llu blocks, %llu lost: %llu direct, %llu in %llu "
		"rings, %llu bytes\n", (unsigned long long)n_blocks + 1,
		(unsigned long long)(direct + in_rings),
		(unsigned long long)direct, (unsigned long long)in_rings,
		(unsigned long long)in_rings / 2,
		(unsigned long long)lost_bytes);
	/* Its address is nowhere in one piece, or it would not be lost. */
	fprintf(stderr, "0x%x%08x\n", ring[0], ring[1]);
	abort();
}
