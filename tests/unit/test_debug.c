/* SPDX-License-Identifier: MIT */
/* Debug information of this program. */
#include "corewalk/debug.h"

#include "check.h"

#include <elfutils/libdw.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "corewalk/target.h"

enum { IMAGE = 0x400000, SIZE = 4096 };

static struct space *make_space(void)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);

	target_mem_add(sp, IMAGE, SIZE, SEG_R | SEG_X, NULL, 0, "program");
	target_mem_done(sp);
	sp->modules = mem_zalloc(sizeof(*sp->modules));
	sp->n_modules = 1;
	sp->modules[0] = (struct module){
		.start = IMAGE, .end = IMAGE + SIZE,
		.path = mem_strdup("/proc/self/exe"),
	};
	return sp;
}

static void __attribute__((noreturn)) unused(void)
{
	_exit(0);
}

/* What libdw calls when it has no more memory; its own ends with 1. */
static int status_without_memory(Dwarf *dwarf)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		close(STDERR_FILENO);
		dwarf_new_oom_handler(dwarf, unused)();
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ?
		WEXITSTATUS(status) : -1;
}

TEST(no_room_for_debug_information_is_no_report)
{
	static const struct target_options options;
	struct space *sp = make_space();
	struct debug *debug = debug_new(sp, &options);
	const struct debug_module *m = debug_of(debug, sp->modules);

	/* Without -g there is none. */
	if (m->dwarf)
		CHECK_U64(status_without_memory(m->dwarf), 2);
	debug_free(debug);
	space_close(sp);
}
