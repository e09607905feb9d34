/* SPDX-License-Identifier: MIT */
/*
 * Loses blocks of one kind and ends as programs do.
 *
 * Usage: loses single|list|tree|ring|mixed: a hundred of each, beside blocks
 * that it holds.  What calls before left on the stack is overwritten.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { N = 100 };

struct node {
	struct node *left, *right;
	char rest[24];
};

static struct node *held[N];
static __thread struct node *held_by_thread;

static struct node *node(size_t more)
{
	struct node *n = malloc(sizeof(*n) + more);

	if (!n)
		_Exit(2);
	memset(n, 0, sizeof(*n) + more);
	return n;
}

static struct node *list(size_t n, struct node *last)
{
	struct node *first = last;

	while (n--) {
		struct node *new = node(16);

		new->left = first;
		first = new;
	}
	return first;
}

static struct node *tree(int depth)
{
	struct node *n = node(8);

	if (depth) {
		n->left = tree(depth - 1);
		n->right = tree(depth - 1);
	}
	return n;
}

static struct node *ring(size_t n)
{
	struct node *last = node(64), *first = list(n - 1, last);

	last->left = first;
	return first;
}

static __attribute__((noinline)) void lose(const char *kind)
{
	int all = !strcmp(kind, "mixed");
	struct node *volatile lost = NULL;

	for (int i = 0; i < N; i++) {
		if (all || !strcmp(kind, "single"))
			lost = node(40);
		if (all || !strcmp(kind, "list"))
			lost = list((size_t)i + 1, NULL);
		if (all || !strcmp(kind, "tree"))
			lost = tree(i % 6);
		if (all || !strcmp(kind, "ring"))
			lost = ring((size_t)i + 2);
		/* What is freed lies between what is lost, and stays so. */
		free(node(500));
	}
	lost = NULL;
	(void)lost;
}

static __attribute__((noinline)) void scrub(void)
{
	volatile char junk[16384];

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = 0;
}

static void *run(void *kind)
{
	held_by_thread = list(N, NULL);
	lose(kind);
	scrub();
	return held_by_thread;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *list_of_thread;

	for (int i = 0; i < N; i++)
		held[i] = list((size_t)i, tree(3));
	if (argc < 2 ||
	    pthread_create(&thread, NULL, run, argv[1]) ||
	    pthread_join(thread, &list_of_thread))
		return 2;
	held[0]->right = list_of_thread;
	lose(argv[1]);
	scrub();
	return 0;
}
