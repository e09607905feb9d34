/* SPDX-License-Identifier: MIT */
/*
 * Stacks that are no everyday ones.  deep N: N calls deep, then abort();
 * smashed: frames overwritten, then abort(); bad: a call of a null pointer;
 * signal: abort() in a handler of a fault; stay: prints a line and waits.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile int sink;

__attribute__((noinline)) int deep(int n)
{
	if (n <= 1)
		abort();
	return deep(n - 1) + sink;
}

/* Not its own frame, so that abort() finds its way. */
__attribute__((noinline)) int smash(volatile char *frame, int n)
{
	if (n)
		return smash(frame, n - 1) + sink;
	for (int i = 64; i < 4096; i++)
		frame[i] = 0x41;
	abort();
}

__attribute__((noinline)) int smashed(int n)
{
	volatile char here[64];

	here[0] = (char)n;
	return smash(here, 2) + here[0];
}

int (*volatile nowhere)(int);

__attribute__((noinline)) int bad_call(int n)
{
	return nowhere(n) + sink;
}

static void on_fault(int number)
{
	sink = number;
	abort();
}

__attribute__((noinline)) int fault(int *p)
{
	return *p + sink;
}

int main(int argc, char **argv)
{
	char room[4096];

	memset(room, argc, sizeof(room));
	sink = room[7];
	if (!strcmp(argv[1], "deep"))
		return deep(atoi(argv[2]));
	if (!strcmp(argv[1], "smashed"))
		return smashed(argc);
	if (!strcmp(argv[1], "bad"))
		return bad_call(argc) + room[8];
	if (!strcmp(argv[1], "signal")) {
		signal(SIGSEGV, on_fault);
		return fault((int *)0x10) + room[9];
	}
	puts("ready");
	fflush(stdout);
	pause();
	return sink;
}
