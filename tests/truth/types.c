/* SPDX-License-Identifier: MIT */
/*
 * As types.cc, in C: lists, trees, hash tables, unions, structures with room
 * behind them, and what only hints can tell, which are in types.hints.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *t(void *p, const char *words)
{
	printf("T %p %s\n", p, words);
	return p;
}

#define NEW(type) ((type *)t(calloc(1, sizeof(type)), "=" #type))

struct leaf {
	double v[5];
};

struct tree {
	struct tree *left, *right;
	struct leaf *leaf;
	int depth;
	void *tag;		/* a number */
};

/* Named by a typedef only. */
typedef struct {
	long key;
	char *value;
	void *any;
} pair;

struct bucket {
	struct bucket *next;
	pair p;
};

struct table {
	struct bucket **buckets;
	size_t n;
	struct table *grown[2];
};

struct message {
	struct message *next;
	unsigned len;
	char bytes[];
};

/* Pointers behind it. */
struct many {
	unsigned n;
	struct leaf *leaves[];
};

enum what { NOTHING, A_LEAF, A_TREE };
struct variant {
	enum what what;
	unsigned flags : 4, which : 4;
	union {
		struct leaf *leaf;
		struct tree *tree;
		long number;
	} u;
	void *hidden;
	size_t n_items;
	void *items;
};

/* A list whose links are inside. */
struct link {
	struct link *next, *prev;
};
struct job {
	long number[3];
	struct link link;
	char *name;
};
struct jobs {
	struct link head;
};

struct tree *root;
struct table table;
struct message *messages;
struct many *many;
struct variant *variants[20];
struct jobs jobs;
char *text;
int *numbers;
struct unknown *never_defined;

static struct tree *grow(int depth)
{
	struct tree *tree;

	if (!depth)
		return NULL;
	tree = NEW(struct tree);
	tree->left = grow(depth - 1);
	tree->right = grow(depth - 1);
	tree->leaf = NEW(struct leaf);
	tree->depth = depth;
	tree->tag = (void *)((uintptr_t)-1 / 3 - (unsigned)depth);
	return tree;
}

static char *string(const char *words, size_t n)
{
	char *s = t(malloc(n), words);

	memset(s, 'x', n - 1);
	s[n - 1] = 0;
	return s;
}

static void fill_table(int n)
{
	table.n = 64;
	table.buckets = t(calloc(table.n, sizeof(*table.buckets)),
			  "=struct bucket * []");
	for (int i = 0; i < n; i++) {
		struct bucket *b = NEW(struct bucket);

		b->p.key = i;
		b->p.value = string("=char []", 30 + (size_t)i % 50);
		b->p.any = NEW(struct leaf);
		b->next = table.buckets[i % 64];
		table.buckets[i % 64] = b;
	}
	table.grown[1] = NEW(struct table);
}

static void fill_variants(void)
{
	for (int i = 0; i < 20; i++) {
		struct variant *v = variants[i] = NEW(struct variant);

		v->which = (unsigned)i % 3;
		v->what = v->which;
		if (i % 3 == A_LEAF)
			v->u.leaf = NEW(struct leaf);
		else if (i % 3 == A_TREE)
			v->u.tree = grow(1);
		else
			v->u.number = i;
		if (i % 3 == A_LEAF)
			v->hidden = NEW(struct leaf);
		else if (i % 3 == A_TREE)
			v->hidden = NEW(struct tree);
		else
			v->hidden = string("=text", 100);
		v->n_items = 3;
		v->items = t(calloc(3, sizeof(pair)), "=pair []");
	}
}

static void fill_jobs(int n)
{
	jobs.head.next = jobs.head.prev = &jobs.head;
	for (int i = 0; i < n; i++) {
		struct job *j = NEW(struct job);

		j->name = string("=char []", 10);
		j->link.next = jobs.head.next;
		j->link.prev = &jobs.head;
		jobs.head.next->prev = &j->link;
		jobs.head.next = &j->link;
	}
}

int main(int argc, char **argv)
{
	static char buffer[1 << 16];
	int n = argc > 1 ? atoi(argv[1]) : 100;

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	root = grow(6);
	fill_table(n);
	for (int i = 0; i < n; i++) {
		size_t len = 20 + (size_t)i * 3;
		struct message *m = t(calloc(1, sizeof(*m) + len),
				      "=struct message");

		m->next = messages;
		m->len = (unsigned)len;
		messages = m;
	}
	many = t(calloc(1, sizeof(*many) + 10 * sizeof(struct leaf *)),
		 "=struct many");
	for (int i = 0; i < 10; i++)
		many->leaves[i] = NEW(struct leaf);
	fill_variants();
	fill_jobs(n);
	text = string("=char []", 5000);
	numbers = t(calloc(1000, sizeof(int)), "=int []");
	never_defined = t(malloc(70), "=struct unknown");
	fflush(stdout);
	abort();
}
