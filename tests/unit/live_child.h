/* SPDX-License-Identifier: MIT */
/*
 * For tests of live processes: children that do something and then wait, and
 * what /proc says of them.  A child ends with the test, whatever becomes of
 * that.
 */
#ifndef UNIT_LIVE_CHILD_H
#define UNIT_LIVE_CHILD_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_WORDS = 64 };

struct child {
	pid_t pid;
	/* Shared with it: what it wants to tell. [0] is set when ready. */
	volatile uint64_t *words;
};

/* So often, a millisecond apart, something is looked for before giving up. */
enum { CHILD_PATIENCE = 20000 };

static char child_task_state(pid_t pid, const char *tid)
{
	char path[320], line[256], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, tid);
	f = fopen(path, "r");
	while (f && !state && fgets(line, sizeof(line), f))
		(void)sscanf(line, "State: %c", &state);
	if (f)
		fclose(f);
	return state;
}

/*
 * Waits until the state of each thread is one of these letters: on a busy
 * machine a thread that is about to pause may not do so for long.
 */
__attribute__((unused))
static bool child_wait(pid_t pid, const char *states)
{
	struct dirent *e;
	bool there;
	char path[64], state;
	DIR *dir;
	int i;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	for (i = 0; i < CHILD_PATIENCE; i++) {
		dir = opendir(path);
		if (!dir)
			return false;
		there = true;
		while (there && (e = readdir(dir))) {
			if (e->d_name[0] == '.')
				continue;
			state = child_task_state(pid, e->d_name);
			there = state && strchr(states, state);
		}
		closedir(dir);
		if (there)
			return true;
		usleep(1000);
	}
	printf("# process %d: a thread is not in state %s\n", (int)pid, states);
	return false;
}

/*
 * Waits until it has executed another program than ours, and sleeps; false if
 * it ended.
 */
__attribute__((unused))
static bool child_wait_exec(pid_t pid)
{
	char path[64], ours[512] = "", its[512];
	int i;

	if (readlink("/proc/self/exe", ours, sizeof(ours) - 1) < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	for (i = 0; i < CHILD_PATIENCE; i++) {
		memset(its, 0, sizeof(its));
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return false;
		if (readlink(path, its, sizeof(its) - 1) > 0 &&
		    strcmp(its, ours) != 0)
			return child_wait(pid, "S");
		usleep(1000);
	}
	return false;
}

/* Returns when run() has, and all threads wait; or when it set words[0]. */
__attribute__((unused))
static void child_start(struct child *c, void (*run)(volatile uint64_t *))
{
	c->words = mmap(NULL, CHILD_WORDS * 8, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fflush(stdout);
	c->pid = fork();
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(c->words);
		c->words[0] = 2;
		for (;;)
			pause();
	}
	while (!c->words[0] && waitpid(c->pid, NULL, WNOHANG) == 0)
		usleep(1000);
	if (c->words[0] == 2)
		child_wait(c->pid, "S");
}

__attribute__((unused))
static void child_end(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	munmap((void *)c->words, CHILD_WORDS * 8);
}

/* The number behind "key:" in a file of /proc/PID; -1 if there is none. */
__attribute__((unused))
static long child_number(pid_t pid, const char *file, const char *key)
{
	char path[64], line[512];
	size_t n = strlen(key);
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (value < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, n) && line[n] == ':')
			value = atol(line + n + 1);
	fclose(f);
	return value;
}

/* Threads that are stopped, and those that somebody traces. */
__attribute__((unused))
static int child_threads_held(pid_t pid)
{
	char path[320], line[256], state;
	struct dirent *e;
	int held = 0;
	long tracer;
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status",
			 (int)pid, e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		while (fgets(line, sizeof(line), f)) {
			if (sscanf(line, "State: %c", &state) == 1 &&
			    (state == 't' || state == 'T'))
				held++;
			if (sscanf(line, "TracerPid: %ld", &tracer) == 1 &&
			    tracer)
				held++;
		}
		fclose(f);
	}
	closedir(dir);
	return held;
}

/* Waits until so many are held; the last count. */
__attribute__((unused))
static int child_held_in_the_end(pid_t pid, int want)
{
	int i, held = -1;

	for (i = 0; i < CHILD_PATIENCE && held != want; i++) {
		if (i)
			usleep(1000);
		held = child_threads_held(pid);
	}
	return held;
}

#endif
