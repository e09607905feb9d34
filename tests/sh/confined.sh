# SPDX-License-Identifier: MIT
# Reading what others wrote starts no program and opens no socket: strace says.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
cd "$TMP"

need strace
if sanitized; then
	skip_all "built with sanitizers"
fi
strace -o first true 2>/dev/null || skip_all "strace may not trace here"

# alone STATUS COMMAND...: one execve, its own, and no socket.
alone() {
	want=$1 got=0
	shift
	# A file for each thread: no line breaks into another.
	rm -f calls.*
	strace -ff -qq -e trace=execve,execveat,network,io_uring_setup,prctl \
		-o calls "$HEAPCORE" "$@" >out 2>err || got=$?
	[ "$got" = "$want" ] || { cat err; echo "status $got"; return 1; }
	cat calls.* >calls
	grep -c 'SECCOMP_MODE_FILTER.* = 0' calls >filters || :
	grep -v -e 'prctl(' -e '+++' -e '---' calls >others || :
	[ "$(cat filters)" = 1 ] && [ "$(wc -l <others)" = 1 ] &&
		grep -q 'execve(.* = 0' others || { cat calls; return 1; }
}

xz -dc "$SRC/tests/cores/plain/core.xz" >core
ok "a core" alone 0 analyze --only=all core
zstd -q core -o core.zst 2>/dev/null && ok "a compressed one" \
	alone 0 analyze core.zst
ok "two" alone 0 diff core core
printf '3<Enter>\n:screen\n' >keys
ok "in the browser" alone 0 tui --script=keys core
"$HEAPCORE" record -q -o trace -- ls / >/dev/null
ok "a trace" alone 0 replay --rate=64k trace

sleep 1000 &
pid=$!
if "$HEAPCORE" analyze -q -p $pid >/dev/null 2>&1; then
	ok "a process" alone 0 analyze -p $pid
	ok "a snapshot" alone 0 snapshot -p $pid -o snapshot
else
	skip "a process" "may not be read here"
fi
kill $pid

finish
