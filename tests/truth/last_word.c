/* SPDX-License-Identifier: MIT */
/*
 * Blocks of 32 bytes.  One in a hundred has in its last word the only pointer
 * to a block of 3000 bytes, of which there are 200; the others have a number
 * there.  Nothing is lost.
 */
#include <stdlib.h>
#include <string.h>

enum { HOLDERS = 20000, ONE_IN = 100, HELD = 3000 };

struct holder {
	struct holder *next;
	long number, other;
	void *held;
};

struct holder *holders;

int main(void)
{
	for (long i = 0; i < HOLDERS; i++) {
		struct holder *h = malloc(sizeof(*h));

		h->next = holders;
		h->number = h->other = i + 1;
		h->held = (void *)i;
		if (i % ONE_IN == 0)
			h->held = memset(malloc(HELD), 'x', HELD);
		holders = h;
	}
	abort();
}
