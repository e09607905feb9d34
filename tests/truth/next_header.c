/* SPDX-License-Identifier: MIT */
/*
 * A name that is too long for its block replaces the size of what lies behind
 * it.  The C library notices later, and elsewhere.
 *
 * Usage: next_header next|top: whether that is another block or the top.
 */
#include "case.h"

enum { ROWS = 300, REQUEST = 72, CULPRIT = 120 };

char *rows[ROWS];

static __attribute__((noinline)) void set_name(char *row, const char *name)
{
	memcpy(row, name, strlen(name));
}

/* As sizes: of 'A' bit 0 is set (in use before), of 'T' it is not. */
static const char *too_long(const char *end)
{
	static char text[REQUEST + 8 + 1];

	for (int i = 0; i < REQUEST; i++)
		text[i] = 'a' + i % 26;
	memcpy(text + REQUEST, end, 8);
	return text;
}

int main(int argc, char **argv)
{
	int top = argc > 1 && !strcmp(argv[1], "top");
	int culprit = top ? ROWS - 1 : CULPRIT;
	const char *end = top ? "TooLongT" : "AndMoreA";

	quiet_stdout();
	for (int i = 0; i < ROWS; i++)
		rows[i] = filled(REQUEST, 0);
	set_name(rows[culprit], too_long(end));
	truth_at("culprit", rows[culprit]);
	truth("usable", REQUEST);
	truth_at("damaged", rows[culprit] + REQUEST);
	printf("TRUTH text %s\n", end);
	truth("size", CHUNK(REQUEST));
	truth("before", culprit + 1);
	truth("after", top ? 0 : ROWS - culprit - 2);
	puts(top ? "TRUTH message malloc(): corrupted top size" :
	     "TRUTH message double free or corruption (out)");
	fflush(stdout);
	if (top)
		rows[0] = malloc(5000);
	else
		for (int i = ROWS - 1; i >= 0; i--)
			free(rows[i]);
	return 1;
}
