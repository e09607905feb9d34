/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tui/keys.h"
#include "tui/tui.h"

/* A line ":time NAME" says what the slowest key took, of processor time. */
static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static bool type_keys(struct tui *t, const char *line, struct err *err)
{
	const char *at = line;
	int key;

	while (!t->done && (key = keys_parse(&at))) {
		uint64_t start = now_us();

		if (key < 0)
			return err_set(err, ERR_USAGE, "no key is called "
				       "'%.20s'", at);
		tui_key(t, key);
		t->slowest_us = max_u64(t->slowest_us, now_us() - start);
	}
	return true;
}

static bool run_line(struct tui *t, const char *line, struct out *o,
		     struct err *err)
{
	int w, h;

	if (!strncmp(line, ":screen ", 8)) {
		out_printf(o, "== %s\n", line + 8);
		screen_write(&t->screen, t->utf8, o);
		/* For who types through a pipe; out_close() says errors. */
		(void)!out_flush(o);
		return true;
	}
	if (!strncmp(line, ":roles ", 7)) {
		out_printf(o, "== %s\n", line + 7);
		screen_write_roles(&t->screen, o);
		return true;
	}
	if (!strncmp(line, ":time ", 6)) {
		out_printf(o, "%" PRIu64 " us %s\n", t->slowest_us, line + 6);
		t->slowest_us = 0;
		return true;
	}
	if (sscanf(line, ":size %dx%d", &w, &h) == 2) {
		tui_resize(t, w, h);
		return true;
	}
	if (*line == '#')
		return true;
	return type_keys(t, line, err);
}

bool tui_script(struct tui *t, const char *path, struct out *o,
		struct err *err)
{
	FILE *f = fopen(path, "re");
	size_t cap = 0, number = 0;
	char *line = NULL;
	bool ok = true;
	ssize_t n;

	if (!f)
		return err_system(err, "%s", path);
	tui_draw(t);
	while (ok && !t->done && (n = getline(&line, &cap, f)) >= 0) {
		if (n && line[n - 1] == '\n')
			line[n - 1] = '\0';
		number++;
		ok = run_line(t, line, o, err);
	}
	if (!ok)
		err_prefix(err, "%s: line %zu", path, number);
	free(line);
	fclose(f);
	return ok;
}
