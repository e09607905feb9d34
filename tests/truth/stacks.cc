/* SPDX-License-Identifier: MIT */
/*
 * Sixteen threads that stand in known places, and one that aborts: calls of
 * templates, virtual functions, lambdas, inlined functions, and a signal
 * handler on a stack of its own.  All others have arrived when main() goes
 * down.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

enum { WORKERS = 13 };
static std::atomic<int> arrived;

__attribute__((noinline)) static void stay()
{
	arrived++;
	for (;;)
		pause();
}

static inline __attribute__((always_inline)) void almost_there(int n)
{
	if (n)
		stay();
	arrived += n;
}

namespace app {

struct Shape {
	virtual ~Shape() {}
	virtual int area(int n) = 0;
};

template <typename T> struct Box : Shape {
	T value;
	__attribute__((noinline)) int area(int n) override
	{
		if (n > 0)
			return area(n - 1) + (int)value;
		almost_there(1);
		return (int)value;
	}
};

namespace {
__attribute__((noinline)) int measure(Shape &s, int n)
{
	return s.area(n) + 1;
}
}

}

static void *worker(void *arg)
{
	app::Box<double> box;

	box.value = 1;
	arrived += app::measure(box, (int)(long)arg % 4);
	return NULL;
}

static void *lambda(void *)
{
	std::function<int(int)> f = [](int n) {
		stay();
		return n + 1;
	};

	arrived += f(1);
	return NULL;
}

static void on_signal(int)
{
	stay();
}

__attribute__((noinline)) static int interrupted(int n)
{
	raise(SIGUSR1);
	return n + (int)arrived;
}

static void *signalled(void *)
{
	stack_t alternate = {};

	alternate.ss_size = 1 << 16;
	alternate.ss_sp = malloc(alternate.ss_size);
	sigaltstack(&alternate, NULL);
	arrived += interrupted(2);
	return NULL;
}

/* They have counted; a moment later they are asleep. */
static bool others_sleep()
{
	int sleeping = 0;
	DIR *dir = opendir("/proc/self/task");

	while (const dirent *e = readdir(dir)) {
		std::string path = "/proc/self/task/";
		char state = 0;
		FILE *f;

		path += e->d_name;
		f = fopen((path + "/stat").c_str(), "r");
		if (f && fscanf(f, "%*d (stacks) %c", &state) == 1)
			sleeping += state == 'S';
		if (f)
			fclose(f);
	}
	closedir(dir);
	return sleeping == WORKERS + 2;
}

int main()
{
	struct sigaction sa = {};
	pthread_t t;

	sa.sa_handler = on_signal;
	sa.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &sa, NULL);
	for (long i = 0; i < WORKERS; i++)
		pthread_create(&t, NULL, worker, (void *)i);
	pthread_create(&t, NULL, lambda, NULL);
	pthread_create(&t, NULL, signalled, NULL);
	while (arrived < WORKERS + 2)
		usleep(1000);
	while (!others_sleep())
		usleep(1000);
	abort();
}
