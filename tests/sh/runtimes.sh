# SPDX-License-Identifier: MIT
# Heaps of language runtimes: their sizes are what the runtimes say themselves.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

need_cores
cd "$TMP"
need jq

# holds NAME SAID OFF: the heap has SAID bytes, at most OFF more or fewer; the
# rows add up, and one is the heap.
holds() {
	report core
	jq -c '[.allocators[] | [.name, .runtime_bytes]]' report.json
	echo "$1 says $2"
	[ "$2" ] && jq -e --arg name "$1" --argjson said "$2" \
		--argjson off "$3" '
		([.where[].bytes] | add) == .target.private_bytes and
		([.allocators[] | select(.name == $name) | .runtime_bytes] |
			add) as $found |
		($found - $said | fabs) <= $off and
		(.where[] | select(.what == "runtime") | .bytes) == $found' \
		report.json
}

cat >prog.go <<'EOT'
package main

import (
	"fmt"
	"runtime"
	"syscall"
)

var kept [][]byte

func main() {
	for i := 0; i < 100000; i++ {
		kept = append(kept, make([]byte, 200))
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Println("said", m.HeapSys+m.StackSys)
	syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
}
EOT

mkdir -p run


# The collector's buffers are in the arenas too, some spans of 32 KiB.
go_heap() {
	HOME=$TMP GOFLAGS=-ldflags=-s go build -o prog prog.go || return 1
	(
		ulimit -c unlimited
		cd run
		exec ../prog
	) >said.log 2>&1 &
	pid=$!
	while grep -qs '^State:.[^TZX]' "/proc/$pid/status"; do
		sleep 0.02
	done
	cat said.log
	gdb -batch -nx -p "$pid" -ex "gcore core" >gdb.log 2>&1
	kill -KILL "$pid"
	holds go "$(sed -n 's/^said //p' said.log)" 262144
}
if command -v go >/dev/null && command -v gdb >/dev/null; then
	ok "Go" go_heap
else
	skip "Go" "no go, or no gdb"
fi

v8_heap() {
	make_core core "$(command -v node)" --abort-on-uncaught-exception -e '
		const kept = [];
		for (let i = 0; i < 200000; i++)
			kept.push({ number: i, text: "text " + i });
		require("fs").writeSync(1, "said " +
			process.memoryUsage().heapTotal + "\n");
		process.abort()' || return 1
	# What says it may take another page.
	holds v8 "$(sed -n 's/^said //p' dump.log)" 262144
}
if command -v node >/dev/null; then
	ok "V8" v8_heap
else
	skip "V8" "no node"
fi

cat >Prog.java <<'EOT'
import java.util.ArrayList;
import java.util.List;

public class Prog {
	public static void main(String[] args) throws Exception {
		List<String> kept = new ArrayList<>();
		for (int i = 0; i < 200000; i++)
			kept.add("text " + i);
		System.out.println("ready");
		System.out.flush();
		Thread.sleep(1000000);
	}
}
EOT
# jcmd does not wait for long.
asked() { jcmd "$pid" GC.heap_info >info.log; }
jvm_heap() {
	rm -f said.log
	(
		ulimit -c unlimited
		cd run
		exec java -Xmx256m "$@" -XX:-UsePerfData -XX:+UseSerialGC \
			-XX:TieredStopAtLevel=1 ../Prog.java
	) >said.log 2>&1 &
	pid=$!
	until_ok grep -q ready said.log && until_ok asked &&
		core_of core "$pid" BUS || return 1
	# Of two survivor spaces jcmd leaves out one, of the size of "from".
	holds jvm "$(awk '/generation .* total|from space/ {
		for (i = 1; i < NF; i++)
			if ($i == "total" || $i == "space")
				n += $(i + 1) } END { print n * 1024 }' \
		info.log)" 0
}
if command -v java >/dev/null && command -v jcmd >/dev/null; then
	ok "Java" jvm_heap
	# The kernel joins its mapping with a neighbour's, or does not.
	ok "Java, pointers of 64 bits" jvm_heap -XX:-UseCompressedOops
else
	skip "Java" "no java, or no jcmd"
fi

# perl_arenas N: those of a program that has N values more than another.
perl_arenas() {
	make_core core "$(command -v perl)" -e 'my @kept;
		push @kept, $_ for 1 .. shift; kill ABRT => $$; sleep 9' "$1" ||
		return 1
	"$HEAPCORE" analyze -q --json core >report.json &&
	jq '[.types[] | select(.name == "perl SV arenas") | .blocks] |
		if length == 1 then .[0] else error("rows") end' report.json
}
# Each has 169; the last one is full or not.
perl_values() {
	few=$(perl_arenas 1690) && many=$(perl_arenas 169000) || return 1
	echo "few $few, many $many"
	[ $((many - few)) -ge 989 ] && [ $((many - few)) -le 991 ]
}
# The same core: that the arenas lead to all values is said.
perl_listed() {
	"$HEAPCORE" analyze -q --only=leaks,retainers core >words || return 1
	cat words
	tr -s ' \n' ' ' <words >line
	[ "$(grep -o "Perl's arenas list all its values:" line | wc -l)" = 2 ]
}
if command -v perl >/dev/null; then
	ok "perl: 169 values in each arena" perl_values
	ok "perl: what its arenas list counts as reached" perl_listed
else
	skip "perl" "not here"
fi
finish
