/* SPDX-License-Identifier: MIT */
/*
 * A list with both ends, a tree with its least and its largest, a table with
 * a list of its members, and plain arrays, side by side; two arrays far apart
 * which share what is in them; a thread-local list; and what was allocated for
 * each.  For a report on the same program without symbols.
 */
#include "case.h"

enum { MEMBERS = 2000, BUCKETS = 512 };

struct member {
	struct member *next, *prev, *up;
};

static struct {
	struct {
		struct member *head;
		long count;
		struct member *tail;
	} list;
	struct {
		struct member *root, *least, *largest;
	} tree;
	void **array;
	struct {
		struct member **buckets;
		long used;
		struct member *first;
	} table;
	void **other_array;
	void **by_name;
	char between[4096];
	void **by_number;
} all;

static __thread struct member *of_thread;

static size_t asked;

static void *get(size_t size)
{
	asked += CHUNK(size);
	return filled(size, 0);
}

static void found(const char *name, const void *at, size_t size)
{
	char text[32];

	truth(name, asked);
	snprintf(text, sizeof(text), "%s_at", name);
	truth_at(text, at);
	snprintf(text, sizeof(text), "%s_size", name);
	truth(text, size);
	asked = 0;
}

static void fill_list(void)
{
	for (int i = 0; i < MEMBERS; i++) {
		struct member *m = get(100);

		m->prev = all.list.tail;
		if (m->prev)
			m->prev->next = m;
		else
			all.list.head = m;
		all.list.tail = m;
		all.list.count++;
	}
	found("list", &all.list, sizeof(all.list));
}

/* next: to the left, prev: to the right. */
static struct member *fill_tree(struct member *up, int n)
{
	struct member *m;

	if (!n)
		return NULL;
	m = get(70);
	m->up = up;
	m->next = fill_tree(m, n / 2);
	m->prev = fill_tree(m, n - 1 - n / 2);
	return m;
}

static void fill_arrays(void)
{
	all.array = get(MEMBERS * sizeof(void *));
	for (int i = 0; i < MEMBERS; i++)
		all.array[i] = get(48);
	found("array", &all.array, sizeof(all.array));
	all.other_array = get(MEMBERS * sizeof(void *));
	for (int i = 0; i < MEMBERS; i++)
		all.other_array[i] = get(80);
	found("other_array", &all.other_array, sizeof(all.other_array));
	all.by_name = get(MEMBERS * sizeof(void *));
	all.by_number = get(MEMBERS * sizeof(void *));
	asked = 0;
	for (int i = 0; i < MEMBERS; i++)
		all.by_name[i] = all.by_number[i] = get(150);
	truth("shared", asked);
	truth_at("by_name_at", &all.by_name);
	truth_at("by_number_at", &all.by_number);
	asked = 0;
}

static void fill_table(void)
{
	all.table.buckets = get(BUCKETS * sizeof(*all.table.buckets));
	for (int i = 0; i < MEMBERS; i++) {
		struct member **at = &all.table.buckets[i * 31 % BUCKETS];
		struct member *m = get(60);

		m->next = *at;
		*at = m;
		m->prev = all.table.first;
		all.table.first = m;
	}
	all.table.used = MEMBERS;
	found("table", &all.table, sizeof(all.table));
}

static void fill_thread(void)
{
	for (int i = 0; i < MEMBERS; i++) {
		struct member *m = get(90);

		m->next = of_thread;
		of_thread = m;
	}
	truth("in_thread", asked);
}

int main(void)
{
	struct member *m;

	quiet_stdout();
	fill_list();
	m = all.tree.root = fill_tree(NULL, MEMBERS);
	while (m->next)
		m = m->next;
	all.tree.least = m;
	for (m = all.tree.root; m->prev;)
		m = m->prev;
	all.tree.largest = m;
	found("tree", &all.tree, sizeof(all.tree));
	fill_arrays();
	fill_table();
	fill_thread();
	finish();
}
