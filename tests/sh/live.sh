# SPDX-License-Identifier: MIT
# heapcore analyze -p: the same as the core of a moment later, on real
# programs; and the process runs on, whatever happens.  LIVE_LONG=1 attaches
# 1000 times and kills heapcore 100 times.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
cd "$TMP"
need jq
attaches=20 kills=10
# A process may be stopped for long where others have the processor.
patient=--max-pause=600
[ -z "${LIVE_LONG-}" ] || attaches=1000 kills=100

cat >threads.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 3000 };
static int busy;
volatile unsigned long rounds;

static void *work(void *arg)
{
	char **p = calloc(N, sizeof(*p));

	for (int i = 0; i < N; i++)
		p[i] = memset(malloc(1 + i % 700), 1, 1);
	for (int i = 0; i < N; i += 3) {
		free(p[i]);
		p[i] = NULL;
	}
	while (busy) {
		int i = (int)(rounds++ * 2654435761u % N);

		free(p[i]);
		p[i] = malloc(1 + rounds % 3000);
		/* One never rests; the others leave room for the tests. */
		if (arg && rounds % 256 == 0)
			usleep(300);
	}
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	busy = argc > 2;
	for (long i = 0; i < atoi(argv[1]); i++)
		pthread_create(&t, NULL, work, (void *)i);
	for (;;)
		pause();
}
END
$CC -O1 -pthread -o threads threads.c

# start COMMAND...: in a folder of its own, with unlimited cores; $pid.
start() {
	rm -rf run
	mkdir run
	(cd run && ulimit -c unlimited && exec "$@" >log 2>&1) &
	pid=$!
}

threads() { [ "$(ls "/proc/$pid/task" | wc -l)" = "$1" ]; }

# quiet: nothing in the process moves any more, nor wants to.
quiet() {
	last= now=-
	n=0
	while [ "$last" != "$now" ] && [ $((n += 1)) -lt 100 ]; do
		last=$now
		sleep 0.3
		until_ok all_in S || return
		now=$(cat "/proc/$pid/stat" "/proc/$pid/task"/*/stat |
			cut -d' ' -f10,12,14,15)
	done
}

# What does not depend on who looks: a kernel core stores clean pages of a
# mapping as soon as one page of it was written, lists threads in another
# order, by which rows alike are sorted, and does not know that a clean mapping
# is shared.  Of mappings that it does not store, it cannot tell what was ever
# in memory, and who has not seen all of it knows bounds where the other has
# figures.
same_for_all='del(.target, .standout, .advice, .residency) |
	.threads |= (sort_by(.tid) | map(del(.pc, .stack_pointer, .name, .at))) |
	.mappings |= sort_by(.address) |
	.mappings[] |= (.what |= sub("thread [0-9]+"; "thread") |
		if .private then . else .flags |= sub("s$"; "p") end) |
	(.accumulations, .retainers) |= sort |
	.arenas[].thread_ids |= (tostring | split(" ") | sort) |
	walk(if type == "object" then with_entries(select(.key |
		test("stored|absent|resident|swapped|touched|zero_|upper_bound") | not))
		else . end)'

# A signal to the process is one thread's; the others would run on until that
# one has died of it.
trap_all() {
	python3 -c '
import ctypes, os, sys
pid = int(sys.argv[1])
libc = ctypes.CDLL(None)
for tid in os.listdir("/proc/%d/task" % pid):
    if libc.tgkill(pid, int(tid), 5):
        sys.exit("tgkill")' "$pid"
}

as_its_core() {
	quiet || return
	kill -STOP "$pid"
	until_ok all_in T || return
	"$HEAPCORE" analyze -q --json --only=all $patient -p "$pid" >live.json ||
		[ $? = 3 ] || return
	# It dies as it goes on, before any thread does anything else.
	trap_all || return
	core_of core "$pid" CONT
	"$HEAPCORE" analyze -q --json --only=all core >core.json ||
		[ $? = 3 ] || return
	jq -S "$same_for_all" live.json >live
	jq -S "$same_for_all" core.json >core.txt
	# Something must be in it.
	[ "$(jq '.allocators[0].used_blocks // 0' live.json)" -gt \
		"${least-50}" ] || return
	jq '.target' live.json
	diff live core.txt
}

# held: threads that are stopped, or traced by somebody.
held() {
	cat "/proc/$pid/task"/*/status 2>/dev/null |
		grep -cE '^State:.[tT]|^TracerPid:.[1-9]' || :
}

# free_again: in the end, no thread is held.
no_more_held() { [ "$(held)" = 0 ]; }
free_again() { until_ok no_more_held; }

if [ "$core_writer" = kernel ]; then
	start "$TMP/threads" 16
	until_ok threads 17 || :
	ok "16 threads: as the core" as_its_core
	for program in python3 perl php redis-server; do
		if ! command -v $program >/dev/null; then
			skip "$program: as the core" "no $program"
			continue
		fi
		case $program in
		python3) start "$(python3 -c 'import sys
print(sys.executable)')" -c 'import time
x = [str(i) * 50 for i in range(20000)]
open("ready", "w").close()
time.sleep(1000)' ;;
		perl) start perl -e '$h{$_} = "x" x ($_ % 900) for 1 .. 10000;
			open(my $f, ">", "ready"); close($f);
			sleep 1000' ;;
		php) start php -r '$a = [];
			for ($i = 0; $i < 15000; $i++)
				$a[] = str_repeat("y", $i % 3000);
			touch("ready");
			sleep(1000);' ;;
		redis-server) start redis-server --port 0 --save '' \
			--unixsocket ready --hz 1 ;;
		esac
		until_ok [ -e run/ready ] || :
		if [ $program = redis-server ] &&
			grep -q jemalloc "/proc/$pid/maps"; then
			# No heap that is known: all the rest must agree.
			least=-1
		fi
		ok "$program: as the core" as_its_core
	done
else
	skip "as the core" "cores go to another program here"
fi

# ---- under load ----

# ran: it has used more of the processor than $before.
cpu() { awk '{ print $14 }' "/proc/$pid/stat"; }
ran() { [ "$(cpu)" -gt "$before" ]; }

start "$TMP/threads" 4 busy
before=0
until_ok threads 5 || :
until_ok ran || :

under_load() {
	for i in $(seq "$attaches"); do
		status=0
		"$HEAPCORE" analyze -q --json --only=arenas $patient \
			-p "$pid" >report 2>err || status=$?
		# Somebody may be inside malloc: incomplete is allowed.
		case $status in
		0 | 3) ;;
		*) cat err; return 1 ;;
		esac
	done
	free_again
}
ok "$attaches attaches under load" under_load

killed() {
	for i in $(seq "$kills"); do
		"$HEAPCORE" analyze -q -p "$pid" >/dev/null 2>&1 &
		victim=$!
		sleep "0.0$((i * 7 % 60 + 10))"
		kill -KILL $victim 2>/dev/null || :
		wait $victim || :
		free_again || return
	done
}
ok "heapcore killed $kills times: nothing is held" killed

# The same with --fork: no child is left either, not even a dead one.
children() { cat "/proc/$pid/task"/*/children 2>/dev/null; }
no_children() { [ -z "$(children)" ]; }
killed_forking() {
	for i in $(seq "$kills"); do
		"$HEAPCORE" snapshot -q --fork --force -o forked -p "$pid" \
			2>/dev/null &
		victim=$!
		sleep "0.0$((i * 13 % 60 + 5))"
		kill -KILL $victim 2>/dev/null || :
		wait $victim || :
		free_again && until_ok no_children || return
		before=$(cpu)
		until_ok ran || return
	done
}
if [ "$(uname -m)" = x86_64 ]; then
	ok "--fork: killed $kills times: nothing is left" killed_forking
fi

interrupted() {
	for signal in INT TERM HUP; do
		"$HEAPCORE" analyze -q -p "$pid" >/dev/null 2>&1 &
		victim=$!
		sleep 0.02
		kill -$signal $victim 2>/dev/null || :
		wait $victim || :
		free_again || return
	done
}
ok "interrupted: nothing is held" interrupted

works() {
	before=$(cpu)
	until_ok ran && threads 5
}
ok "and it works on" works

together() {
	for i in 1 2 3 4 5 6; do
		("$HEAPCORE" analyze -q --only=where $patient -p "$pid" \
			>/dev/null 2>"err.$i" && echo "$i") &
	done >done
	wait
	cat err.?
	[ "$(wc -l <done)" = 6 ]
}
ok "six at once wait for each other" together

# Refused by a tracer that lets go before it is looked for.
cat >refuse.c <<'END'
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

long ptrace(enum __ptrace_request request, ...)
{
	static int refused;
	va_list list;
	long a[3];

	if (request == PTRACE_SEIZE &&
	    refused++ < atoi(getenv("REFUSALS"))) {
		errno = EPERM;
		return -1;
	}
	va_start(list, request);
	for (int i = 0; i < 3; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	return syscall(SYS_ptrace, (long)request, a[0], a[1], a[2]);
}
END
refused() {
	env LD_PRELOAD="$TMP/refuse.so" REFUSALS=$1 "$HEAPCORE" analyze -q \
		--only=where -p "$pid" 2>&1
}
let_go() {
	refused 5 || [ $? = 3 ]
}
for_ever() {
	refused 1000 >err
	status=$?
	cat err
	[ $status = 2 ] && grep -q 'cannot be stopped: Operation not perm' err
}
if ! "$CC" -shared -fPIC -w -o refuse.so refuse.c; then
	skip "refused by one that lets go" "nothing can be preloaded"
else
	ok "refused by one that lets go: tried again" let_go
	ok "but not for ever" for_ever
fi

torn() {
	"$HEAPCORE" analyze --no-stop --json -p "$pid" >report 2>err
	status=$?
	cat err
	[ $status = 0 -o $status = 3 ] && grep -q 'read while it ran' err &&
		[ "$(jq '.target.torn' report)" = true ]
}
ok "--no-stop says that it is torn" torn
kill -KILL "$pid"

# ---- in a container ----

# A root of its own, with nothing but the program and its libraries.
make_root() {
	mkdir -p root/proc root/tmp
	cp threads root/
	for file in $(ldd threads | grep -o '/[^ ]*'); do
		mkdir -p "root${file%/*}"
		cp -L "$file" "root$file"
	done
	# Other than ours, as those of another distribution are.
	for file in $(cd root && find . -name 'libc.so.6'); do
		printf 'x' >>"root/$file"
	done
}
# inside: the program is there, with its threads; $pid.
inside() {
	pid=$(cat "/proc/$outer/task/$outer/children")
	pid=${pid% }
	[ "$pid" ] && [ "$(cat "/proc/$pid/comm")" = threads ] && threads 5
}
contained() {
	make_root
	unshare --mount --pid --fork --kill-child chroot root /threads 4 &
	outer=$!
	until_ok inside || return
	"$HEAPCORE" analyze --json --only=all $patient -p "$pid" >report
	status=$?
	# unshare itself ignores SIGTERM.
	kill -KILL $outer
	jq -c '.target, .modules' report
	[ $status = 0 ] &&
		[ "$(jq '[.modules[] | select(.file != "used")] | length' \
			report)" -le 1 ] &&
		[ "$(jq -r '.target.program' report)" = threads ]
}
if [ "$(id -u)" = 0 ] && unshare --mount --pid --fork true 2>/dev/null; then
	ok "in other mount and pid namespaces" contained
else
	skip "in other mount and pid namespaces" "no right to make them"
fi

# ---- with a memory limit ----

cat >large.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
	for (int i = 0; i < 1200; i++)
		memset(malloc(100000), i, 100000);
	for (;;)
		pause();
}
END
$CC -O0 -o large large.c
group=/sys/fs/cgroup/memory/heapcore-test-$$ limit=memory.limit_in_bytes
[ -d /sys/fs/cgroup/memory ] ||
	group=/sys/fs/cgroup/heapcore-test-$$ limit=memory.max
large() { [ "$(cat "/proc/$pid/comm")" = large ] && all_in S; }
on_disk() {
	sh -c 'echo $$ >"$1/cgroup.procs" && exec "$0" analyze -q \
		--only=where "$4" --tmpdir="$2" -p "$3"' "$HEAPCORE" "$group" \
		"$TMP" "$pid" $patient >report || return
	grep -q 'total private memory *11[0-9]' report
}
in_memory() {
	mkdir -p shm
	unshare --mount sh -c 'mount -t tmpfs none shm &&
		echo $$ >"$1/cgroup.procs" && exec "$0" analyze \
		--tmpdir=shm -p "$2"' "$HEAPCORE" "$group" "$pid" \
		>report 2>err
	[ $? = 2 ] || return
	cat err
	grep -q 'takes 11.*; heapcore may use [67].*shm is in memory too' err
}
if [ "$(id -u)" = 0 ] && mkdir "$group" 2>/dev/null; then
	if { echo 80M >"$group/$limit"; } 2>/dev/null; then
		start "$TMP/large"
		until_ok large || :
		ok "a container's limit: the copy goes to a disk" on_disk
		ok "or is refused, in words" in_memory
		kill -KILL "$pid"
	else
		skip "a container's memory limit" "no such control group"
	fi
	until_ok rmdir "$group"
else
	skip "a container's memory limit" "no right to make control groups"
fi

# A library that was replaced on disk is still read.
replaced() {
	cp "$(ldd "$TMP/threads" | sed -n 's/.*\(\/[^ ]*libc.so.6\).*/\1/p')" .
	start env LD_LIBRARY_PATH="$TMP" "$TMP/threads" 2
	until_ok threads 3 && quiet || return
	rm libc.so.6
	"$HEAPCORE" analyze --json --only=modules -p "$pid" >report
	status=$?
	kill -KILL "$pid"
	cat report
	[ $status = 0 ] && [ "$(jq -r '.modules[] |
		select(.name | endswith("libc.so.6")).file' report)" = used ]
}
if [ "$(id -u)" = 0 ]; then
	ok "a library that is gone from the disk" replaced
else
	skip "a library that is gone from the disk" "not root"
fi

# ---- the command line ----

usage() {
	"$HEAPCORE" analyze "$@" >out 2>err && return 1
	[ $? = 2 ] && [ ! -s out ] && cat err
}
wrong() {
	usage -p 0 | grep -q "'0' is not the number of a process" &&
		usage -p x1 | grep -q "'x1' is not the number" &&
		usage -p 1 core | grep -q 'not both' &&
		usage --no-stop core | grep -q 'is for processes' &&
		usage -p 1 --max-pause=-1 | grep -q 'is no time from' &&
		usage -p 4194305 | grep -q 'process 4194305: no such process'
}
ok "wrong command lines" wrong

finish
