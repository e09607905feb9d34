# SPDX-License-Identifier: MIT
# heapcore snapshot: the file is what the process was, for heapcore and for
# debuggers; and it is there whole or not at all.
. "$SRC/tests/sh/tap"
without_debug_files "$@"
cd "$TMP"
need jq

cat >prog.c <<'END'
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <linux/seccomp.h>
#include <unistd.h>

volatile int traps, rounds, *shared;
static char *all[2000];

static void on_trap(int signal)
{
	traps += signal;
}

static void *wait_here(void *arg)
{
	struct epoll_event e;
	int fd = epoll_create1(0);

	for (;;)
		epoll_wait(fd, &e, 1, -1);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;
	int fds[2];
	char byte;

	signal(SIGTRAP, on_trap);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*shared = 0x5ea5ed;
	for (int i = 0; i < 2000; i++)
		all[i] = memset(malloc(20 + i), 'a' + i % 26, 20 + (size_t)i);
	for (int i = 0; i < 2000; i += 4)
		free(all[i]);
	/* Hardly touched, and not at all. */
	memset(malloc(300 << 20), 1, 4096);
	mmap(NULL, 1ul << 36, PROT_READ | PROT_WRITE, MAP_PRIVATE |
	     MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pipe(fds) || dup2(fds[0], 0))
		return 1;
	pthread_create(&t, NULL, wait_here, NULL);
	if (argc > 1 && !strcmp(argv[1], "seccomp") &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		return 1;
	write(1, "ready\n", 6);
	if (argc > 1 && !strcmp(argv[1], "busy"))
		for (;;)
			rounds++;
	/* Waits for a byte; says what came instead. */
	return read(0, &byte, 1) == 1 ? 0 : 3;
}
END
$CC -O0 -g -pthread -o prog prog.c

# start [MODE]: it is ready, and waits unless it is to be busy.
start() {
	: >said
	"$TMP/prog" "$@" >said &
	pid=$!
	until_ok grep -q ready said || exit
	[ "${1-}" = busy ] || until_ok all_in S || exit
}
snap() {
	"$HEAPCORE" snapshot -p "$pid" "$@"
}
report() {
	"$HEAPCORE" analyze --json --only=all "$@" >report || return
	jq -S 'del(.target.path, .target.kind, .target.file_bytes,
		.target.whole_file_bytes, .target.stopped_s, .target.torn,
		.threads[].name)' \
		report
}

start
ok "sparse" snap --compress=none -o plain
ok "compressed" snap -o packed
report -p "$pid" >of-process
report plain >of-plain
report packed >of-packed
ok "the report is not empty" grep -q '"used_blocks": 15' of-process
ok "sparse: the report of the process" diff of-process of-plain
ok "compressed: the report of the process" diff of-process of-packed

modes() {
	[ "$(stat -c %a plain packed | sort -u)" = 600 ]
}
ok "mode 0600" modes
small() {
	ls -ls plain packed
	[ "$(du -k plain | cut -f1)" -lt 3000 ] &&
		[ "$(stat -c %s plain)" -gt $((64 << 30)) ] &&
		[ "$(du -k packed | cut -f1)" -lt 3000 ]
}
ok "holes for what was never touched" small

same_bytes() {
	"$HEAPCORE" snapshot -q --no-stop -p "$pid" --compress=none -o a &&
		"$HEAPCORE" snapshot -q --no-stop -p "$pid" -o b.zst &&
		head -c 64M a >a.head &&
		zstd -dcq b.zst 2>/dev/null | head -c 64M | cmp - a.head
}
if command -v zstd >/dev/null; then
	ok "zstd unpacks it to the same" same_bytes
	ok "the frames and the seek table are right" zstd -lq packed
else
	skip "zstd" "no zstd"
fi

# ---- debuggers ----

backtrace() {
	gdb -q -nx -batch -ex 'thread apply all bt' "$@" 2>/dev/null |
		sed -n '/^warning/d; /^Thread/,$p' | sed 's/^Thread \([0-9]*\).*/\1/;
			/^\[Inferior/d; /^$/d'
}
gdb_agrees() {
	backtrace -p "$pid" >live
	backtrace prog plain >core
	cat live
	grep -q 'main (' live && grep -q 'wait_here (' live &&
		diff live core
}
gdb_data() {
	[ "$(gdb -q -nx -batch -ex 'print *all[5]' prog plain 2>/dev/null |
		tail -1)" = "\$1 = 102 'f'" ]
}
if command -v gdb >/dev/null; then
	ok "gdb: the backtraces of the process" gdb_agrees
	ok "gdb: its data" gdb_data
else
	skip "gdb" "no gdb"
fi
eu_agrees() {
	eu-stack -p "$pid" | grep '^#' >live
	eu-stack --core=plain -e prog | grep '^#' >core
	cat live
	[ -s live ] && diff live core
}
if command -v eu-stack >/dev/null; then
	ok "eu-stack: the backtraces of the process" eu_agrees
else
	skip "eu-stack" "no elfutils"
fi
ok "readelf" sh -c 'readelf -lnW plain 2>&1 >/dev/null | grep -v decode ||
	readelf -nW plain | grep -q HEAPCORE'

# ---- what goes in ----

shared_too() {
	snap -q --all --compress=none -o all || return
	cat <<-END >in
		print *shared
	END
	gdb -q -nx -batch -x in prog all 2>/dev/null | tail -1 |
		grep -q ' = 6202861' || return
	! gdb -q -nx -batch -x in prog plain 2>/dev/null | tail -1 |
		grep -q ' = 6202861'
}
if command -v gdb >/dev/null; then
	ok "shared memory with --all only" shared_too
fi

# ---- by a fork ----

# as_before: nothing is left of it, as soon as the process runs again.
as_before() {
	[ "$before" = "$(cat "/proc/$pid/syscall")" ] &&
		[ "$(cat "/proc/$pid/task/$pid/children")" = "" ] &&
		[ "$(grep -c 'TracerPid:.0' "/proc/$pid/status")" = 1 ] &&
		[ "$(grep -c 'SigBlk:.0*$' "/proc/$pid/status")" = 1 ]
}
forked() {
	before=$(cat "/proc/$pid/syscall")
	snap -o forked --fork --force 2>err || { cat err; return 1; }
	cat err
	report forked >of-forked
	diff of-process of-forked && until_ok as_before
}
# handled: the signal has been taken, and it lives.
taken() { grep -q '^ShdPnd:.0*$' "/proc/$pid/status" && all_in S; }
handled() { kill -TRAP "$pid" && until_ok taken; }
# A debugger has left its marks since.
report -p "$pid" >of-process
if [ "$(uname -m)" = x86_64 ]; then
	ok "--fork: the same; no child is left" forked
	ok "--fork: again" forked
	ok "--fork: its signal handlers are as before" handled
else
	skip "--fork" "not on this machine"
fi
kill "$pid"

# ran: it has used more of the processor than $before.
cpu() { awk '{ print $14 }' "/proc/$pid/stat"; }
ran() { [ "$(cpu)" -gt "$before" ]; }
busy() {
	start busy
	for _ in 1 2 3 4 5 6 7 8; do
		snap -q -o busy --fork --force || return
	done
	before=$(cpu)
	until_ok ran || return
	children=$(cat "/proc/$pid/task/$pid/children")
	kill "$pid"
	"$HEAPCORE" analyze busy >report && [ -z "$children" ]
}
seccomp() {
	start seccomp
	snap -o none --fork 2>err
	status=$?
	kill -KILL "$pid"
	cat err
	[ $status = 2 ] && [ ! -e none ] && grep -q 'under seccomp' err
}
if [ "$(uname -m)" = x86_64 ]; then
	ok "--fork: of a busy program" busy
	ok "--fork: not under seccomp" seccomp
fi

# ---- whole or not at all ----

start
exists() {
	echo mine >there
	snap -o there 2>err && return
	cat err
	grep -q 'there: exists' err && [ "$(cat there)" = mine ] &&
		snap -q -o there --force && [ "$(wc -c <there)" -gt 1000 ] &&
		[ "$(stat -c %a there)" = 600 ]
}
ok "a file that exists is kept without --force" exists

only() {
	[ "$(ls "$1")" = "$2" ] || { ls "$1"; return 1; }
}
limited() {
	mkdir limited
	(
		ulimit -f 300
		snap --compress=none -o limited/core 2>err
		[ $? = 2 ] || exit 1
	) || return
	cat err
	grep -q 'limited/core: cannot write: File too large' err &&
		only limited ''
}
ok "a limit on file sizes" limited

# In a mount namespace of its own, so that nothing stays mounted.
full() {
	mkdir full
	unshare --mount sh -c '
		mount -t tmpfs -o size=256k none full || exit 77
		"$0" snapshot -p "$1" --compress=none -o full/core 2>err
		echo $? >status
		ls full >left' "$HEAPCORE" "$pid" || return
	cat err
	[ "$(cat status)" = 2 ] && [ ! -s left ] &&
		grep -q 'full/core: cannot write: No space left' err
}
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
	ok "a full disk" full
else
	skip "a full disk" "not root"
fi

killed() {
	mkdir killed
	for i in 1 2 3 4 5 6 7 8 9; do
		"$HEAPCORE" snapshot -q -p "$pid" -o killed/core 2>/dev/null &
		victim=$!
		sleep "0.00$i"
		kill -KILL $victim 2>/dev/null || :
		wait $victim || :
		# All of it, or nothing.
		if [ -e killed/core ]; then
			"$HEAPCORE" analyze killed/core >/dev/null || return
			rm killed/core
		fi
		only killed '' || return
	done
}
ok "killed in the middle" killed

cut_off() {
	zstd -dcq packed 2>/dev/null | head -c 1500k >cut
	"$HEAPCORE" analyze cut >report 2>err
	status=$?
	cat err
	[ $status = 3 ] && grep -q truncated err && grep -q 'glibc main' report
}
if command -v zstd >/dev/null; then
	ok "the first 1500K say most of it" cut_off
fi

usage() {
	"$HEAPCORE" snapshot "$@" >out 2>err && return 1
	[ $? = 2 ] && [ ! -s out ] && cat err
}
wrong() {
	usage | grep -q 'no process given' &&
		usage -p "$pid" | grep -q 'no file given' &&
		usage -p "$pid" -o - | grep -q 'not a pipe' &&
		usage -p "$pid" -o x y | grep -q "'y' is too much" &&
		usage -p "$pid" -o x --compress=gz | grep -q 'zstd or none' &&
		usage -p "$pid" -o x --fork --no-stop | grep -q 'exclude' &&
		usage -p "$pid" -o /nowhere/x | grep -q '/nowhere/x: No such' &&
		usage -p "$pid" -o . | grep -q 'is a directory' &&
		usage -p 4194305 -o x | grep -q 'no such process' &&
		[ ! -e x ]
}
ok "wrong command lines" wrong
kill "$pid"

finish
