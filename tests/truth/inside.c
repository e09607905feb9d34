/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program that has its own malloc linked in: runs another
 * main, inside_main, in it instead of its own.  Its arguments are $INSIDE, with
 * commas between them.
 */
#define _GNU_SOURCE	/* RTLD_NEXT */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void),
			   void (*)(void), void (*)(void), void *);

int inside_main(int argc, char **argv);
start_function __libc_start_main;

static int instead(int argc, char **argv, char **envp)
{
	static char *words[9] = { "inside" };
	int n = 1;

	(void)argc;
	(void)argv;
	(void)envp;
	for (char *w = strtok(getenv("INSIDE"), ","); w && n < 8;
	     w = strtok(NULL, ","))
		words[n++] = w;
	return inside_main(n, words);
}

int __libc_start_main(main_function *program, int argc, char **argv,
		      void (*init)(void), void (*fini)(void),
		      void (*rtld_fini)(void), void *stack_end)
{
	start_function *next = (start_function *)dlsym(RTLD_NEXT,
						       "__libc_start_main");

	(void)program;
	return next(instead, argc, argv, init, fini, rtld_fini, stack_end);
}
