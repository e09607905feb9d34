/* SPDX-License-Identifier: MIT */
/*
 * Names that are known to one table alone, whose entries are a number, a name
 * and a value that is NULL: a name and the next number look like the head of a
 * std::string, and the next name like what its text does not fill.  One table
 * is in the program, one in a block.
 */
#include "case.h"

enum { NAMES = 200, NAME = 72 };

struct entry {
	unsigned number;
	char *name;
	char *value;
};

static struct entry table[NAMES];
static struct entry *other;

static __attribute__((noinline)) void fill(struct entry *entries)
{
	for (unsigned i = 0; i < NAMES; i++) {
		entries[i].name = filled(NAME, 'n');
		entries[i].number = NAME - 10 + i % 8;
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
	other = calloc(NAMES, sizeof(*other));
	fill(table);
	fill(other);
	scrub();
	finish();
}
