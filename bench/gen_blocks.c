/* SPDX-License-Identifier: MIT */
/*
 * A heap of small blocks, and then a core.
 *
 * Usage: gen_blocks [MEGABYTES [PERCENT [pause]]]: that much heap [1100], of
 * whose blocks so many percent are freed again [15].  The blocks hang in one
 * list, as they would in a program; every eighth byte of them is written.
 * What is freed last stays in the thread's cache and in fastbins.  The second
 * line of stderr is the address of a block in the middle of the list.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct node {
	struct node *next;
	uint64_t size;
};

struct node *all;		/* the only way to the blocks */
static uint64_t state = 0x9e3779b97f4a7c15;

static uint64_t rnd(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

static struct node *node(void)
{
	size_t size = 24 + rnd(rnd(32) ? 130 : 1000);
	struct node *n = malloc(size);

	if (!n)
		_exit(2);
	n->size = size;
	for (size_t i = sizeof(*n); i + 8 <= size; i += 8)
		((unsigned char *)n)[i] = (unsigned char)state;
	return n;
}

/* Frees percent of the list in its order, which is that of addresses. */
static uint64_t thin(unsigned percent)
{
	uint64_t n = 0;

	for (struct node **at = &all; *at;) {
		struct node *one = *at;

		if (rnd(100) < percent) {
			*at = one->next;
			free(one);
			n++;
		} else {
			at = &one->next;
		}
	}
	return n;
}

static struct node *middle(uint64_t n)
{
	struct node *at = all;

	while (n-- && at->next)
		at = at->next;
	return at;
}

int main(int argc, char **argv)
{
	uint64_t want = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1100) << 20;
	unsigned percent = argc > 2 ? atoi(argv[2]) : 15;
	uint64_t n = 0, freed;
	char *start = sbrk(0);

	/* Pages of 4 KB: the dearest to copy. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	struct node **end = &all;

	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	while ((uint64_t)((char *)sbrk(0) - start) < want)
		for (int i = 0; i < 1000; i++, n++) {
			*end = node();
			end = &(*end)->next;
			*end = NULL;
		}
	freed = thin(percent);
	fprintf(stderr, "%llu blocks, %llu of them freed, %llu bytes\n",
		(unsigned long long)n, (unsigned long long)freed,
		(unsigned long long)((char *)sbrk(0) - start));
	fprintf(stderr, "%p\n", (void *)middle(n / 2));
	if (argc > 3)
		for (;;)
			pause();
	abort();
}
