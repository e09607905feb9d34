/* SPDX-License-Identifier: MIT */
/*
 * Three threads that live and one that has ended, each with an arena; the
 * ended one's blocks were handed to the others.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIVING = 3, N = 200 };

static pthread_barrier_t ready;
static void *left_behind[N];

static void *work(void *arg)
{
	intptr_t nth = (intptr_t)arg;
	void *p[N];

	for (int i = 0; i < N; i++)
		p[i] = memset(malloc(50 * (nth + 1) + i), 'a' + nth, 50);
	for (int i = 0; i < N; i += 2)
		free(p[i]);
	if (nth == LIVING) {
		memcpy(left_behind, p, sizeof(p));
		return NULL;
	}
	pthread_barrier_wait(&ready);
	while (pause())
		;
	return NULL;
}

static pthread_t start(intptr_t nth)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	pthread_create(&t, &attr, work, (void *)nth);
	return t;
}

int main(void)
{
	pthread_barrier_init(&ready, NULL, LIVING + 1);
	for (int i = 0; i < LIVING; i++)
		start(i);
	pthread_barrier_wait(&ready);
	pthread_join(start(LIVING), NULL);
	free(malloc(1000));
	abort();
}
