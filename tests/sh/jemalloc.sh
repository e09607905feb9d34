# SPDX-License-Identifier: MIT
# jemalloc preloaded into a program that knows its own blocks, and in real
# ones: see truth/spans.c.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
. "$SRC/tests/sh/preloaded"

without_debug_files "$@"
need_cores
cd "$TMP"
need python3 jq
library=$(library libjemalloc.so.2)
[ "$library" ] || skip_all "no libjemalloc.so.2"

# whole WORKLOAD SEED: jemalloc counts what is in thread caches as allocated.
whole() {
	make_core core env LD_PRELOAD="$library" "$TMP/spans" \
		"$TMP/truth.txt" "$1" "$2" || return 1
	both_reports 0 &&
	"$SRC/tests/truth/spans_compare" truth.txt blocks.json report.json \
		jemalloc 0 $([ "$1" = flushed ] || echo cached)
}

ok "build" $CC -O1 -o spans "$SRC/tests/truth/spans.c" -pthread -ldl
[ -x spans ] || finish
for workload in one many empty large flushed; do
	ok "$workload" whole $workload 11
done

# off: without thread caches none is missed, and nothing is left out.
off() {
	export MALLOC_CONF=tcache:false
	whole $1 11
	status=$?
	unset MALLOC_CONF
	[ $status = 0 ] && jq -e '.findings == [] and (.allocators[0] |
		.evidence | contains("thread caches are off"))' report.json
}
ok "one, no thread caches" off one
ok "many, no thread caches" off many

real() {
	make_core core env LD_PRELOAD="$library" "$@" || return 1
	both_reports 0 && jq -e '[.allocators[].name] == ["jemalloc"] and
		.findings == [] and .allocators[0].used_blocks > 50000' \
		report.json
}
ok "perl" real /usr/bin/perl -e '%h = map { $_ => [1, "x" x ($_ % 90)] }
	1 .. 60000; kill 6, $$'

# redis: a million keys, and what jemalloc counts at the moment of its death.
answers() { redis-cli -s redis/socket ping 2>&1 | grep -q PONG; }
redis() {
	$CC -shared -fPIC -o asked.so "$SRC/tests/truth/dies_asked.c" -ldl ||
		return 1
	mkdir -p redis
	(
		cd redis
		ulimit -c unlimited
		LD_PRELOAD=$TMP/asked.so exec redis-server --port 0 \
			--unixsocket "$TMP/redis/socket" \
			--save '' --appendonly no --daemonize no \
			--activedefrag no --crash-log-enabled no \
			--enable-debug-command yes
	) >redis.log 2>&1 &
	pid=$!
	# Its reply is not the end of what it does for a client: epoll_wait is.
	until_ok answers &&
		redis-cli -s redis/socket debug populate 1000000 key 40 |
			grep -q OK &&
		until_ok stop_in "232 22" && kill -USR2 "$pid" &&
		core_of core "$pid" CONT || { kill -KILL "$pid"; return 1; }
	"$HEAPCORE" analyze -q --json --only=allocators,leaks core \
		>report.json || return 1
	said=$(sed -n 's/^A //p' redis.log)
	echo "jemalloc says $said"
	jq -c '.allocators[0]' report.json
	jq -e --argjson said "$said" '.allocators[0] |
		.name == "jemalloc" and .used_blocks > 3000000 and
		.used_bytes + .cached_bytes == $said' report.json || return 1
	jq -c .leaks report.json
	jq -e '.leaks.looked and .leaks.total_blocks < 50' report.json
}
if [ "$core_writer" = gdb ]; then
	skip "redis" "gdb would take its core before it is asked"
elif command -v redis-server >/dev/null && command -v redis-cli >/dev/null &&
   ldd "$(command -v redis-server)" | grep -q libjemalloc; then
	ok "redis" redis
else
	skip "redis" "no redis-server with libjemalloc"
fi
finish
