/* SPDX-License-Identifier: MIT */
/*
 * A thread whose only pointer to a block is in xmm15 (hold), or was (drop);
 * no other register and no live word of a stack has it.
 */
#include <pthread.h>
#include <stdlib.h>

volatile int ready;

static void *with_block(void *arg)
{
	char *p = malloc(4321);

	p[0] = 1;
	__asm__ volatile("movq %0, %%xmm15\n"
			 "test %1, %1\n"
			 "jnz 1f\n"
			 "pxor %%xmm15, %%xmm15\n"
			 "1: xor %%eax, %%eax\n"
			 "xor %%ebx, %%ebx\n"
			 "xor %%ecx, %%ecx\n"
			 "xor %%edx, %%edx\n"
			 "xor %%esi, %%esi\n"
			 "xor %%edi, %%edi\n"
			 "xor %%ebp, %%ebp\n"
			 "xor %%r8d, %%r8d\n"
			 "xor %%r9d, %%r9d\n"
			 "xor %%r10d, %%r10d\n"
			 "xor %%r11d, %%r11d\n"
			 "xor %%r12d, %%r12d\n"
			 "xor %%r13d, %%r13d\n"
			 "xor %%r14d, %%r14d\n"
			 "xor %%r15d, %%r15d\n"
			 "movl $1, ready(%%rip)\n"
			 "2: pause\n"
			 "jmp 2b\n" : : "r"(p), "r"(arg) : "memory");
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	pthread_create(&t, NULL, with_block,
		       argc > 1 && argv[1][0] == 'h' ? argv : NULL);
	while (!ready)
		;
	abort();
}
