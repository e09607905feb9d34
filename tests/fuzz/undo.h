/* SPDX-License-Identifier: MIT */
/*
 * Words of an image that is made once are changed for an input, and get what
 * they had back behind it: that costs as much as the changes.
 */
#ifndef FUZZ_UNDO_H
#define FUZZ_UNDO_H

#include <stdlib.h>
#include <string.h>

#include "base/types.h"

struct undo {
	uint8_t *at;
	uint64_t was;
};

static struct undo undos[1 << 14];
static size_t n_undos;

/* At most as many as there is room for. */
static void poke(uint8_t *at, uint64_t word)
{
	if (n_undos == countof(undos))
		return;
	undos[n_undos].at = at;
	memcpy(&undos[n_undos++].was, at, sizeof(word));
	memcpy(at, &word, sizeof(word));
}

static void undo_all(void)
{
	while (n_undos--)
		memcpy(undos[n_undos].at, &undos[n_undos].was, 8);
	n_undos = 0;
}

#endif
