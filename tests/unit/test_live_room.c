/* SPDX-License-Identifier: MIT */
/* How much memory may be taken, by files as the kernel writes them. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "corewalk/live.h"
#include "unit/check.h"

static char root[] = "room.XXXXXX";

static void put(const char *path, const char *text)
{
	AUTO_FREE char *name = mem_printf("%s/%s", root, path);
	char *slash = name;
	FILE *f;

	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		mkdir(name, 0700);
		*slash = '/';
	}
	f = fopen(name, "w");
	if (CHECK(f)) {
		fputs(text, f);
		fclose(f);
	}
}

static void begin(const char *groups)
{
	strcpy(root, "room.XXXXXX");
	CHECK(mkdtemp(root));
	put("proc/meminfo", "MemTotal:       24000 kB\n"
	    "MemFree:          100 kB\nMemAvailable:   20000 kB\n");
	if (groups)
		put("proc/self/cgroup", groups);
}

TEST(the_machine)
{
	begin(NULL);
	CHECK_U64(live_room(root), 20000 << 10);
	CHECK_U64(live_room("/nowhere"), UINT64_MAX);
	put("proc/self/cgroup", "");
	CHECK_U64(live_room(root), 20000 << 10);
	put("proc/self/cgroup", "no colon\n1:\n0::\n\n0::/not/there\n");
	CHECK_U64(live_room(root), 20000 << 10);
}

TEST(of_groups_inside_of_groups_the_least)
{
	begin("0::/system.slice/appd.service\n");
	put("sys/fs/cgroup/system.slice/appd.service/memory.max", "max\n");
	put("sys/fs/cgroup/system.slice/appd.service/memory.current", "7\n");
	CHECK_U64(live_room(root), 20000 << 10);
	put("sys/fs/cgroup/system.slice/memory.max", "10000000\n");
	put("sys/fs/cgroup/system.slice/memory.current", "4000000\n");
	CHECK_U64(live_room(root), 6000000);
	/* What was read from files gives way. */
	put("sys/fs/cgroup/system.slice/memory.stat",
	    "anon 1000000\nactive_file 5\ninactive_file 2500000\n");
	CHECK_U64(live_room(root), 8500000);
	/* Beyond "high" it is slow, and killed by others. */
	put("sys/fs/cgroup/system.slice/appd.service/memory.high", "3007\n");
	CHECK_U64(live_room(root), 3000);
	put("sys/fs/cgroup/system.slice/appd.service/memory.max", "1007\n");
	CHECK_U64(live_room(root), 1000);
	/* More used than there is: nothing is left. */
	put("sys/fs/cgroup/system.slice/appd.service/memory.current",
	    "9000\n");
	CHECK_U64(live_room(root), 0);
}

TEST(inside_a_container)
{
	begin("0::/\n");
	put("sys/fs/cgroup/memory.max", "5000000\n");
	put("sys/fs/cgroup/memory.current", "1000000\n");
	CHECK_U64(live_room(root), 4000000);
	/* Without a namespace the group has a name that is not there. */
	put("proc/self/cgroup", "0::/docker/0123\n");
	CHECK_U64(live_room(root), 4000000);
}

TEST(of_the_first_kind)
{
	begin("12:cpu,cpuacct:/x\n4:memory:/docker/0123\n1:name=systemd:/x\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes",
	    "9223372036854771712\n");
	put("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
	CHECK_U64(live_room(root), 20000 << 10);
	put("sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes",
	    "8000000\n");
	put("sys/fs/cgroup/memory/docker/0123/memory.usage_in_bytes",
	    "7000000\n");
	put("sys/fs/cgroup/memory/docker/0123/memory.stat",
	    "inactive_file 1\ntotal_inactive_file 500000\n");
	CHECK_U64(live_room(root), 1500000);
	put("proc/self/cgroup", "4:cpu,memory:/docker/0123\n0::/\n");
	CHECK_U64(live_room(root), 1500000);
}
