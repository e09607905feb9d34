/* SPDX-License-Identifier: MIT */
/*
 * profiled PROFILE GROWTH [die]: blocks of several call paths, by two threads,
 * and then what the allocator that is preloaded says of them itself: its heap
 * profile and, of tcmalloc, its growth profile, as files.  Then it waits to be
 * killed, or dies by SIGABRT.  It asks for nothing after that, so that both
 * stay true.
 */
#define _GNU_SOURCE	/* RTLD_DEFAULT */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN __attribute__((noinline))

static void *volatile *kept;
static size_t n_kept;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A mapping that nobody wrote to would not be in the core. */
OWN static void keep(void *p)
{
	*(char *)p = 1;
	pthread_mutex_lock(&lock);
	kept[n_kept++] = p;
	pthread_mutex_unlock(&lock);
}

OWN static void small(int n)
{
	for (int i = 0; i < n; i++)
		keep(malloc(60));
}

OWN static void mixed(int n)
{
	for (int i = 0; i < n; i++)
		keep(calloc(1, i % 2 ? 3000 : 700));
}

OWN static void large(int n)
{
	for (int i = 0; i < n; i++)
		keep(malloc(300000 + (size_t)i));
}

/* Deeper than what tcmalloc keeps. */
OWN static void deep(int level, int n)
{
	if (level)
		deep(level - 1, n);
	else
		for (int i = 0; i < n; i++)
			keep(malloc(1000));
	__asm__ volatile("");
}

static void *work(void *unused)
{
	small(60000);
	mixed(4000);
	/* Half of it goes again, samples too. */
	for (int i = 0; i < 1000; i++)
		free(malloc(40000));
	return unused;
}

/* std::string of libstdc++, with room for all that is appended. */
struct string {
	char *text;
	size_t len, room;
	size_t unused;
};

static void to_file(const char *path, const struct string *s)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, s->text, s->len) != (ssize_t)s->len ||
	    close(fd))
		abort();
}

#define STRING "EPNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
typedef void ask(void *extension, struct string *s);

static ask *method(const char *of_tcmalloc, const char *of_all)
{
	ask *ret = (ask *)dlsym(RTLD_DEFAULT, of_tcmalloc);

	return ret ? ret : (ask *)dlsym(RTLD_DEFAULT, of_all);
}

static void ask_tcmalloc(const char *profile, const char *growth)
{
	void *(*instance)(void) = (void *(*)(void))
		dlsym(RTLD_DEFAULT, "_ZN15MallocExtension8instanceEv");
	ask *sample = method("_ZN22TCMallocImplementation13GetHeapSample"
			     STRING, "_ZN15MallocExtension13GetHeapSample"
			     STRING);
	ask *grown = method("_ZN22TCMallocImplementation19GetHeapGrowthStacks"
			    STRING,
			    "_ZN15MallocExtension19GetHeapGrowthStacks"
			    STRING);
	struct string s = { .len = 0, .room = (8 << 20) - 1 };

	if (!instance || !sample || !grown)
		return;
	s.text = malloc(s.room + 1);
	/* What it needs for itself may make the heap grow: once. */
	grown(instance(), &s);
	s.len = 0;
	sample(instance(), &s);
	to_file(profile, &s);
	s.len = 0;
	grown(instance(), &s);
	to_file(growth, &s);
}

static void ask_jemalloc(const char *profile)
{
	int (*mallctl)(const char *, void *, size_t *, void *, size_t) =
		(int (*)(const char *, void *, size_t *, void *, size_t))
		dlsym(RTLD_DEFAULT, "mallctl");

	if (mallctl && mallctl("prof.dump", NULL, NULL, &profile,
			       sizeof(profile)))
		abort();
}

int main(int argc, char **argv)
{
	pthread_t t;

	if (argc < 3)
		return 2;
	/* tcmalloc samples nothing of the first 16 MiB. */
	for (int i = 0; i < 40; i++)
		free(malloc(500000));
	kept = malloc(200000 * sizeof(*kept));
	pthread_create(&t, NULL, work, NULL);
	small(60000);
	mixed(4000);
	large(60);
	deep(40, 8000);
	pthread_join(t, NULL);
	ask_tcmalloc(argv[1], argv[2]);
	ask_jemalloc(argv[1]);
	if (argc > 3)
		abort();
	(void)!write(1, "ready\n", 6);
	for (;;)
		pause();
}
