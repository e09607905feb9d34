# SPDX-License-Identifier: MIT
# heapcore record: programs do what they do without it, and every block that a
# witness behind the recorder counts is in the trace.  KILLS=100 kills more.
. "$SRC/tests/sh/tap"
cd "$TMP"
need jq

build() {
	# shellcheck disable=SC2086
	$CC -O2 -fPIC -shared -o count.so "$SRC/tests/record/count.c" -ldl &&
	$CC -O0 -fno-builtin -w -o events "$SRC/tests/record/events.c" \
		-lpthread -ldl
}
ok "helpers build" build
[ -x events ] || finish

PYTHONHASHSEED=0 PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0 NODE_NO_WARNINGS=1
export PYTHONHASHSEED PERL_HASH_SEED PERL_PERTURB_KEYS NODE_NO_WARNINGS

status() {
	"$@" || return
}

# like_without PROG...: output and status, and the witness's count.
like_without() {
	plain=0 recorded=0
	"$@" >out.plain 2>err.plain </dev/null || plain=$?
	rm -f witness t.trace
	COUNT_FILE=$TMP/witness COUNT_PROGRAM=${1##*/} \
	LD_PRELOAD=$TMP/count.so \
		"$HEAPCORE" record -q -o t.trace -- "$@" >out.recorded \
		2>err.recorded </dev/null || recorded=$?
	echo "status $plain, recorded $recorded"
	[ "$plain" = "$recorded" ] && diff out.plain out.recorded &&
		diff err.plain err.recorded && agrees
}

# The trace is whole, and its live blocks are those of the witness.
agrees() {
	"$HEAPCORE" trace verify t.trace &&
	"$HEAPCORE" trace info --json t.trace >info || return
	echo "trace:   $(jq -c '[.trace.live_blocks, .trace.live_bytes]' info)"
	echo "witness: $(od -An -t u8 -N 16 witness | tr -s ' ')"
	[ "$(jq -r '"\(.trace.live_blocks) \(.trace.live_bytes)"' info)" = \
		"$(od -An -t u8 -N 16 witness | awk '{ print $1, $2 }')" ]
}

# real TITLE PROG...: as above, if this machine has it.
real() {
	title=$1
	shift
	if [ -x "$1" ]; then
		ok "$title: as without, every block" like_without "$@"
	else
		skip "$title" "not here"
	fi
}

real python3 /usr/bin/python3 -c '
import json, re, sys
d = [{"k": str(i), "v": [i] * (i % 50)} for i in range(2000)]
s = json.dumps(d)
print(len(json.loads(s)), len(re.findall("[0-9]+", s)))
sys.exit(3)'
real perl /usr/bin/perl -e 'my %h; for (1 .. 20000) { $h{$_} = "x$_";
	delete $h{$_ - 500} } print scalar(keys %h), "\n"; warn "done\n"'
real php /usr/bin/php -r '$a = []; for ($i = 0; $i < 9999; $i++)
	$a["k$i"] = str_repeat("x", $i % 100); echo count($a), "\n"; exit(4);'
real git /usr/bin/git -C "$SRC" --version
[ ! -d "$SRC/.git" ] ||
	real "git log" /usr/bin/git -C "$SRC" --no-pager log --stat -5
real sqlite3 /usr/bin/sqlite3 :memory: 'create table t(a, b);
	with recursive c(x) as (select 1 union all select x + 1 from c
	where x < 5000) insert into t select x, hex(x) from c;
	create index i on t(b); select count(distinct b), sum(a) from t;'
printf '#include <map>\n#include <string>\nstd::map<std::string, int> m;\n' >t.cc
printf 'int f() { return m["a"]; }\n' >>t.cc
g++ -E -o t.ii t.cc 2>/dev/null &&
	cc1plus=$(g++ -print-prog-name=cc1plus) || cc1plus=/none
real cc1plus "$cc1plus" -quiet -O1 -o - t.ii
printf 'foreach(i RANGE 300)\nstring(APPEND s "${i}")\nendforeach()\n' >t.cmake
printf 'string(LENGTH "${s}" n)\nmessage("${n}")\n' >>t.cmake
real cmake /usr/bin/cmake -P t.cmake
real node /usr/bin/node -e 'const a = []; for (let i = 0; i < 20000; i++)
	a.push({ i, s: "x" + i }); console.log(JSON.stringify(a).length)'
real java /usr/bin/java -version
real "a shell" /bin/sh -c 'i=0; while [ $i -lt 50 ]; do i=$((i + 1))
	(echo $i) | cat; done | sort -n | tail -1; exit 9'

# Output of g++ goes through children, which are recorded as well.
if command -v g++ >/dev/null; then
	children() {
		"$HEAPCORE" record --children -q -o c.%p.trace -- \
			g++ -c -o t.o t.cc && [ -s t.o ] || return
		for f in c.*.trace; do
			"$HEAPCORE" trace verify "$f" || return
			"$HEAPCORE" trace info "$f"
		done >infos
		grep -q '/cc1plus$' infos && grep -q '/as$\|-as$' infos &&
			! grep 'not sealed' infos
	}
	ok "--children: g++, cc1plus and as, each whole" children
else
	skip "--children" "no g++"
fi

# A server with threads, under load.
answers() { redis-cli -s "$TMP/s" ping 2>/dev/null | grep -q PONG; }
redis() {
	rm -f witness
	COUNT_FILE=$TMP/witness COUNT_PROGRAM=redis-server \
	LD_PRELOAD=$TMP/count.so \
		"$HEAPCORE" record -q -o t.trace -- redis-server --port 0 \
		--unixsocket "$TMP/s" --io-threads 2 --save '' \
		--daemonize no >redis.out 2>&1 &
	recorder=$!
	until_ok answers || return
	redis-benchmark -s "$TMP/s" -n 500 -c 20 -q -t set,get,lpush \
		>/dev/null &&
	redis-cli -s "$TMP/s" set heap core | grep -q OK &&
	redis-cli -s "$TMP/s" get heap | grep -q core || return
	redis-cli -s "$TMP/s" shutdown nosave
	wait $recorder || { echo "status $?"; return 1; }
	agrees && jq -e '.trace.threads > 1 and .trace.events > 10000 and
			.trace.ended == "with status 0"' info
}
if command -v redis-server >/dev/null && command -v redis-benchmark \
	>/dev/null; then
	ok "redis under load: every block" redis
else
	skip "redis" "not here"
fi

# hard CASE MARKS: three ends; so many blocks are left by the case itself.
hard() {
	for end in exit _exit kill abort; do
		rm -f witness t.trace
		COUNT_FILE=$TMP/witness COUNT_PROGRAM=events \
		LD_PRELOAD=$TMP/count.so "$HEAPCORE" record -q -o t.trace -- \
			./events "$1" $end >/dev/null 2>&1 </dev/null &&
			status=0 || status=$?
		echo "$end: status $status"
		case $end$status in
		exit7 | _exit5 | kill137 | abort134) ;;
		*) return 1 ;;
		esac
		agrees || return
		n=$("$HEAPCORE" trace dump t.trace | awk '
			$3 == "free" || $3 == "realloc-from" { delete l[$4] }
			$5 > 0 && $5 % 12347 == 0 { l[$4] }
			END { for (i in l) n++; print n + 0 }')
		echo "$n of $2 blocks"
		[ "$n" = "$2" ] || return
	done
}
ok "threads that hand blocks on" hard threads 1
ok "2048 threads with small stacks" hard many_threads 2048
ok "TLS destructors" hard tls 3
ok "signal handlers" hard signals 1
ok "coroutines" hard coroutines 1
ok "fork, vfork, system, posix_spawn" hard forks 2
ok "dlopen, dlclose" hard modules 1
ok "every function" hard all_functions 10
ok "a program that closes all descriptors" hard descriptors 1
ok "limits of descriptors and memory, chroot, setuid" hard limits 1

# Frames are those of the program: its own functions, to main.
stack() {
	"$HEAPCORE" record -q -o t.trace -- ./events all_functions
	"$HEAPCORE" trace dump --stacks t.trace >dump
	addr=$(awk '/^stack/ { n = 0 } / .*events\+/ && !seen { print; seen = 1 }' \
		dump)
	for f in take all_functions main _start; do
		nm events | awk -v f=$f '$3 == f { print $1 }' >at
		[ -s at ] || return
	done
	# take, all_functions, main, and two of libc between it and _start.
	awk '/^stack/ { n = 0; next } /^  / { n++; if ($0 ~ /events\+/) e++ }
		/^[0-9]/ && $5 == 12347 { print n, e; exit } ' dump >frames
	cat frames
	[ "$(cat frames)" = "6 4" ]
}
ok "stacks go to _start" stack

environment() {
	env -u COUNT_FILE >a
	"$HEAPCORE" record -q -o t.trace -- env >b
	LD_PRELOAD=$TMP/count.so "$HEAPCORE" record -q -o t.trace -- env >c
	sort a | grep -v '^_=' >a.sorted
	sort b | grep -v '^_=' | diff a.sorted - &&
	sort c | grep -v '^_=' | diff a.sorted - | grep '^>' >d
	grep -c . d
	[ "$(cat d)" = "> LD_PRELOAD=$TMP/count.so" ]
}
ok "the environment is clean" environment

depths() {
	for depth in 0 1 3 256; do
		"$HEAPCORE" record --depth=$depth -q -o t.trace -- \
			./events all_functions
		"$HEAPCORE" trace dump --stacks t.trace | awk -v d=$depth '
			/^stack/ { n = 0 } /^  / && ++n > d { exit 1 }' ||
			return
	done
}
ok "--depth" depths

# What the kernel says that the program has mapped is what the trace says, and
# packing keeps it.
mapped() {
	"$HEAPCORE" record --mmap -q -o t.trace -- ./events mappings >size
	[ $? = 7 ] && "$HEAPCORE" trace verify t.trace &&
	"$HEAPCORE" trace pack -q -o p.trace t.trace || return
	for f in t.trace p.trace; do
		"$HEAPCORE" trace info --json $f >info
		echo "$(cat size) bytes, $(jq .trace.mapped_bytes info)"
		[ "$(jq .trace.mapped_bytes info)" = "$(cat size)" ] &&
		jq -e '.trace.live_blocks > 0' info || return
		"$HEAPCORE" replay --json $f | jq -e --slurpfile i info \
			'.totals.mapped_bytes == $i[0].trace.mapped_bytes and
			.totals.reserved_bytes == 58 * 4096 and
			([.timeline[].mapped_bytes] | max) ==
				$i[0].trace.mapped_peak_bytes' || return
	done
	"$HEAPCORE" record -q -o t.trace -- ./events mappings >size
	! "$HEAPCORE" trace dump t.trace | grep -w map
}
ok "--mmap: as much as the kernel says" mapped

limited() {
	"$HEAPCORE" record --max=512k -o t.trace -- ./events threads 2>err ||
		[ $? = 7 ] || return
	cat err
	grep -q -e '--max reached: recording ended early' err &&
	[ "$(wc -l <err)" = 2 ] && [ "$(wc -c <t.trace)" -lt 600000 ] &&
	"$HEAPCORE" trace verify t.trace || return
	# It is whole, and still not all that the program did.
	"$HEAPCORE" replay t.trace >out 2>err || [ $? = 3 ] || return
	grep -q ', INCOMPLETE' out && grep -q 'ended before the program' err &&
	"$HEAPCORE" trace verify t.trace >out &&
	grep -q 'whole, but recording ended early: at the limit, 524288' out &&
	"$HEAPCORE" trace dump --stacks t.trace | grep '^stack' >stacks &&
	[ -s stacks ] && ! sort stacks | uniq -d | grep .
}
ok "--max stops the recording, not the program" limited

confined() {
	for option in --depth=32 --rate=1k --children; do
		"$HEAPCORE" record $option -o t.trace -- ./events confined \
			>out 2>err
		[ $? = 7 ] && [ "$(cat out)" = "done" ] &&
		grep -q 'confined itself with seccomp' err &&
		"$HEAPCORE" trace verify t.trace || return
	done
	"$HEAPCORE" trace info t.trace | grep 'confined itself'
}
ok "a program that gives up system calls lives" confined

filtered() {
	"$HEAPCORE" record -o t.trace -- ./events filtered 2>err &&
		status=0 || status=$?
	cat err
	[ $status = 7 ] && { echo "no filters here"; return; }
	[ $status = 159 ] && "$HEAPCORE" trace verify t.trace &&
	grep -q 'killed by SIGSYS: a seccomp filter' err
}
ok "one whose filter kills the recorder is told why" filtered

# 300 blocks of 512 bytes or 1 KiB, as sh has it; the file is over it soon.
full() {
	(
		ulimit -f 300
		exec "$HEAPCORE" record -o t.trace -- ./events threads 2>err
	) && return 1
	[ $? = 7 ] || return
	cat err
	grep -q 'recording ended early, the program went on' err &&
	[ "$(wc -l <err)" = 2 ] && "$HEAPCORE" trace verify t.trace
}
ok "a full file: one line says so" full

disk() {
	mkdir disk && mount -t tmpfs -o size=300k none disk || return
	"$HEAPCORE" record -o disk/t.trace -- ./events threads 2>err &&
		status=0 || status=$?
	cat err
	verified=0
	"$HEAPCORE" trace verify disk/t.trace || verified=$?
	umount disk
	[ $status = 7 ] && [ $verified = 0 ] && [ "$(wc -l <err)" = 2 ] &&
		grep -q 'No space left on device: recording ended early' err
}
if mkdir probe && mount -t tmpfs none probe 2>/dev/null; then
	umount probe
	ok "a full disk: one line says so" disk
else
	skip "a full disk" "no permission to mount"
fi

nothing() {
	[ "$1" = 127 ] && ! "$HEAPCORE" record -o n.trace -- ./nowhere 2>err
	"$HEAPCORE" record -o n.trace -- ./nowhere 2>err
	[ $? = "$1" ] && [ ! -e n.trace ] && cat err
}
ok "no such program" nothing 127

# What cannot be recorded runs all the same, and is said to be so.
record="$HEAPCORE record"
unseen() {
	$record -o n.trace -- "$1" 2>err
	[ $? = 7 ] && [ ! -e n.trace ] && cat err &&
		[ "$(wc -l <err)" = 1 ] && grep -q 'made no record' err
}
if $CC -O0 -fno-builtin -w -static -o static "$SRC/tests/record/events.c" \
	-lpthread -ldl 2>/dev/null; then
	ok "a static program" unseen ./static
else
	skip "a static program" "no static libc"
fi
# Only for somebody else is a setuid program one; and $TMP is ours alone.
nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
setuid() {
	cp events "$other/set" && chmod 4755 "$other/set" && cd "$other" &&
		record="$nobody $HEAPCORE record" unseen ./set
}
other=$(mktemp -d /tmp/heapcore-test.XXXXXX)
chmod 777 "$other"
# setpriv itself may still be let through: what it starts is not.
if $nobody env "$HEAPCORE" --version >/dev/null 2>&1; then
	ok "a setuid program" setuid
else
	skip "a setuid program" "not root, or no way in for others"
fi
rm -rf "$other"

not_ours() {
	echo precious >file
	"$HEAPCORE" record -o file -- ./events 2>err
	[ $? = 2 ] && grep -q 'exists and is not a trace' err &&
		[ "$(cat file)" = precious ]
}
ok "other files are not replaced" not_ours

private() {
	rm -f t.trace
	(umask 0 && "$HEAPCORE" record -q -o t.trace -- true) &&
		[ "$(stat -c %a t.trace)" = 600 ]
}
ok "a trace is its owner's alone" private

sampled() {
	"$HEAPCORE" record --rate=1k -q -o t.trace -- ./events threads
	[ $? = 7 ] && "$HEAPCORE" trace verify t.trace &&
	"$HEAPCORE" trace info --json t.trace | tee info | jq -e '
		.trace.unknown_frees == 0 and .trace.sampled_rate_bytes == 1024
		and ([.kinds[] | select(.kind == "sample").events][0] |
			. > 12500 and . < 27500)' || { cat info; return 1; }
}
ok "--rate samples" sampled

# With a sample, all blocks are counted: as a recording of all of them has it,
# by class of size, also when the program is killed; and with threads, as many
# as the witness has.
counted() {
	for end in exit kill; do
		"$HEAPCORE" record -q -o a.trace -- ./events all_functions $end
		"$HEAPCORE" record --rate=$1 -q -o t.trace -- \
			./events all_functions $end
		"$HEAPCORE" trace verify t.trace &&
		"$HEAPCORE" trace pack -q -o p.trace t.trace || return
		"$HEAPCORE" trace dump a.trace | awk '
			function class(n, c) {
				if (n < 1024)
					return int(n / 16) * 16
				for (c = 1024; c * 2 <= n; c *= 2)
					;
				return c
			}
			$3 == "realloc" || $3 ~ /^free/ ||
				$3 == "realloc-from" { frees++ }
			$3 !~ /^free|realloc-from/ {
				n[class($5)]++
				bytes[class($5)] += $5
			}
			END {
				for (c in n)
					print c, n[c], bytes[c] | "sort -n"
				close("sort -n")
				print frees
			}' >a
		for f in t.trace p.trace; do
			"$HEAPCORE" trace info --json $f >info
			jq -r '(.classes[] | "\(.from_bytes) \(.blocks) "
				+ "\(.bytes)"), .trace.counted_frees' info |
				diff a - || return
			"$HEAPCORE" replay --json $f | jq -e --slurpfile i info \
				'.totals.counted_bytes ==
				$i[0].trace.counted_bytes' || return
		done
	done
}
ok "--rate counts all blocks" counted 1M
ok "--rate=1 counts the same" counted 1

counted_threads() {
	for end in exit kill; do
		rm -f witness
		COUNT_FILE=$TMP/witness COUNT_PROGRAM=events \
		LD_PRELOAD=$TMP/count.so "$HEAPCORE" record --rate=100k -q \
			-o t.trace -- ./events threads $end
		"$HEAPCORE" trace info --json t.trace >info
		live=$(jq '.trace.counted_blocks - .trace.counted_frees' info)
		echo "$live, $(od -An -t u8 -N 8 witness)"
		[ "$live" = "$(od -An -t u8 -N 8 witness | tr -d ' ')" ] &&
			jq -e '.trace.counted_blocks > 150000' info || return
	done
}
ok "--rate counts in threads, too" counted_threads

# Of a child that is recorded too, only what it did itself.
counted_children() {
	"$HEAPCORE" record --rate=1M --children -q -o n.%p.trace -- \
		./events forks
	for f in n.*.trace; do
		"$HEAPCORE" trace verify $f &&
		"$HEAPCORE" trace info --json $f | jq -c '.trace |
			[.counted_blocks, .counted_frees]' || return
	done | tee info
	[ "$(grep -c '^\[' info)" -gt 2 ]
}
ok "--rate and --children" counted_children

# Blocks got and given back, by the threads' own counters and by the trace.
counts() { tr -d '\0' <counters | grep -qa .; }
killed() {
	runs=0
	while [ $runs -lt "${KILLS:-10}" ]; do
		runs=$((runs + 1))
		rm -f counters k.trace
		dd if=/dev/zero of=counters bs=4096 count=1 2>/dev/null
		"$HEAPCORE" record -q -o k.trace -- ./events until_killed \
			"$TMP/counters" 2>/dev/null &
		recorder=$!
		until_ok counts || return
		sleep "0.0$(((runs * 7919 + $$) % 90 + 10))"
		kill -9 "$(ps -o pid= --ppid $recorder | head -1)"
		wait $recorder
		"$HEAPCORE" trace info --json k.trace >info ||
			{ cat info; return 1; }
		od -An -v -t u8 -w64 counters | awk -v got="$(jq '[.kinds[] |
			select(.kind == "aligned").events][0]' info)" \
			-v freed="$(jq '[.kinds[] |
			select(.kind == "free").events][0]' info)" '
			{ a += $1; f += $2 }
			END {
				print a, got, f, freed
				exit !(got >= a && got <= a + 4 &&
					freed >= f && freed <= f + 8)
			}' || return
	done
}
if ps -o pid= --ppid 1 >/dev/null 2>&1; then
	ok "kill -9: nothing is lost" killed
else
	skip "kill -9" "no ps"
fi

packed() {
	"$HEAPCORE" record -q -o t.trace -- ./events threads
	"$HEAPCORE" trace pack -q -o p.trace t.trace &&
	"$HEAPCORE" trace verify p.trace || return
	"$HEAPCORE" trace dump t.trace | awk '{ print $2, $3, $5, $6 }' >a
	"$HEAPCORE" trace dump p.trace | awk '{ print $2, $3, $5, $6 }' >b
	cmp a b &&
	[ "$(wc -c <p.trace)" -lt $(($(wc -l <a) * 2)) ] &&
	"$HEAPCORE" trace info --json t.trace | jq '.trace.live_bytes' >a &&
	"$HEAPCORE" trace info --json p.trace | jq '.trace.live_bytes' |
		cmp a -
}
ok "packed: the same events, below 2 bytes each" packed

if command -v heaptrack >/dev/null && command -v zstd >/dev/null; then
	heaptracks() {
		heaptrack --raw -o h /usr/bin/perl -e \
			'my %h;
			$h{$_} = "x$_" for 1 .. 5000' >/dev/null 2>&1
		"$HEAPCORE" trace convert -q -o h.trace h.raw.zst &&
		"$HEAPCORE" trace verify h.trace || return
		zstd -dc h.raw.zst | awk '/^[+]/ { a++ } /^-/ { f++ }
			END { print a, f }' >a
		"$HEAPCORE" trace info --json h.trace | jq -r '"\([.kinds[] |
			select(.kind == "malloc").events][0]) \([.kinds[] |
			select(.kind == "free").events][0])"' | diff a -
	}
	ok "heaptrack's files" heaptracks

	# What heaptrack_print says of a file is what a replay of it says.
	printed() {
		# A line of its file would be cut by a newline in here.
		heaptrack -o i /usr/bin/perl -e \
			'for (1 .. 9000) { $h{$_} = "x$_"; delete $h{$_ - 500} }' \
			>/dev/null 2>&1
		# To the byte: the sums of its flame graphs.
		for cost in allocations peak leaked; do
			heaptrack_print --disable-builtin-suppressions \
				--disable-embedded-suppressions -F folded \
				--flamegraph-cost-type "$cost" -f i.zst \
				>/dev/null 2>&1 || return
			awk '{ n += $NF } END { printf "%.0f\n", n }' folded
		done >b
		"$HEAPCORE" trace convert -q -o i.trace i.zst &&
		"$HEAPCORE" replay --json i.trace | jq '.totals.allocations,
			.peak.exact_bytes, .end.exact_bytes' >a
		cat a
		[ "$(wc -l <b)" = 3 ] && diff a b
	}
	ok "heaptrack_print's figures" printed
else
	skip "heaptrack's files" "no heaptrack"
	skip "heaptrack_print's figures" "no heaptrack"
fi

mtraces() {
	cat >m.txt <<-'END'
		= Start
		@ ./prog:(main+0x10)[0x401136] + 0x1000 0x10
		@ ./prog:[0x401140] + 0x2000 0
		@ ./prog:[0x401150] < 0x1000
		@ ./prog:[0x401150] > 0x3000 0x40
		@ ./prog:[0x401160] - 0x2000
		nonsense
		= End
	END
	"$HEAPCORE" trace convert -o m.trace m.txt 2>err
	[ $? = 3 ] && grep -q '1 lines were not understood.*line 7' err &&
	"$HEAPCORE" trace info --json m.trace |
		jq -e '.trace | [.live_blocks, .live_bytes, .call_stacks?,
			.events] | .[0] == 1 and .[1] == 64 and .[3] == 5'
}
ok "mtrace's text" mtraces

finish
