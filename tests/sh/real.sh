# SPDX-License-Identifier: MIT
# Cores of real programs: everything adds up, and to the kernel's own figure.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

need_cores
need python3

pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || :' EXIT

# there_or_gone COMMAND...: the command says that it is so far, which is kept
# in $there, or the process has ended.
there_or_gone() {
	there=
	! grep -qs '^State:.[^ZX]' "/proc/$pid/status" || { "$@" && there=yes; }
}

# start COMMAND...: in a folder where its core will be; $pid.
start() {
	rm -rf "$TMP/dump" "$TMP/ready"
	mkdir "$TMP/dump"
	(
		cd "$TMP/dump"
		ulimit -c unlimited
		exec "$@"
	) >"$TMP/program.log" 2>&1 </dev/null &
	pid=$!
}

# adds_up SIGNAL READY...: when READY is true, the process is stopped, its
# mappings are written down, and it is ended with SIGNAL.
adds_up() {
	signal=$1
	shift
	if ! until_ok there_or_gone "$@" || [ ! "$there" ]; then
		kill -KILL "$pid"
		cat program.log
		return 1
	fi
	kill -STOP "$pid"
	until_ok all_in T || return 1
	cat "/proc/$pid/smaps" >smaps
	[ "$core_writer" = gdb ] || { kill "-$signal" "$pid"; signal=CONT; }
	core_of core "$pid" "$signal" || return 1
	report core && "$SRC/tests/truth/sums" report.json smaps
	status=$?
	report core --no-files && "$SRC/tests/truth/sums" report.json smaps ||
		status=1
	return $status
}

# try NAME SIGNAL COMMAND...: the command makes the file $TMP/ready.  SIGQUIT
# is ignored by what a shell runs in the background; hardly a program catches
# SIGTRAP.
try() {
	name=$1
	sig=$2
	shift 2
	if ! command -v "$1" >/dev/null; then
		skip "$name" "no $1"
		return
	fi
	start "$@"
	ok "$name" adds_up "$sig" test -e ready
}

try python3 ABRT "$(python3 -c 'import sys; print(sys.executable)')" -c '
import json, re, sys, threading, time
rows = [{"id": i, "name": "row %d" % i, "tags": [str(i % 7)] * (i % 5)}
        for i in range(40000)]
text = json.dumps(rows)
words = re.findall("[a-z]+", text)
seen = {w + str(i): i for i, w in enumerate(words[:50000])}
big = bytearray(3 << 20)
threading.Thread(target=lambda: time.sleep(600), daemon=True).start()
del rows[::3]
open(sys.argv[1], "w").close()
time.sleep(600)' "$TMP/ready"

try perl TRAP perl -e '
my %h;
$h{"key $_"} = [1 .. $_ % 9, "x" x ($_ % 300)] for 1 .. 60000;
delete $h{"key $_"} for grep { $_ % 3 } 1 .. 60000;
open(my $f, ">", $ARGV[0]) and close($f);
sleep 600' "$TMP/ready"

try php TRAP php -n -r '
$a = [];
for ($i = 0; $i < 50000; $i++)
	$a[] = ["id" => $i, "text" => str_repeat("x", $i % 200)];
for ($i = 0; $i < 50000; $i += 2)
	unset($a[$i]);
touch($argv[1]);
sleep(600);' "$TMP/ready"

# git in the middle of a log, which nobody reads on.
if command -v git >/dev/null; then
	awk 'BEGIN {
		for (i = 1; i <= 1500; i++) {
			text = ""
			for (k = 0; k < 20; k++)
				text = text "line " (i * 7 + k) % 113 "\n"
			print "commit refs/heads/main"
			print "committer A <a@example.org> " i " +0000"
			print "data 7\nchange\n"
			print "M 644 inline f" i % 40 "\ndata " length(text)
			printf "%s\n", text
		}
	}' >import
	git init -q repo && git -C repo fast-import --quiet <import
	mkfifo pipe
	start sh -c 'exec git -C "$0/repo" --no-pager log -p --stat main \
		>"$0/pipe"' "$TMP"
	# Opened for both: opening a pipe waits for its other end.
	exec 3<>pipe
	blocked() { grep -q '^State:.S' "/proc/$pid/status" &&
		grep -qs git "/proc/$pid/comm"; }
	ok "git log" adds_up ABRT blocked
	exec 3<&-
else
	skip "git log" "no git"
fi

# The compiler itself, in the middle of a file.  It catches SIGABRT.
if cc1plus=$(g++ -print-prog-name=cc1plus 2>/dev/null) && [ -x "$cc1plus" ]
then
	cat >heavy.cc <<-'EOT'
		#include <functional>
		#include <iostream>
		#include <map>
		#include <regex>
		#include <unordered_map>
		#include <vector>
		template <int N> struct T {
			std::map<int, std::vector<T<N - 1>>> m;
			std::unordered_map<std::string, std::function<T<N>()>> f;
			int go() { T<N - 1> t; return m[N].size() + f.size() +
				t.go(); }
		};
		template <> struct T<0> { int go() { return 0; } };
		int main() { std::regex r("a+"); return T<60>().go(); }
	EOT
	start "$cc1plus" -quiet -imultiarch "$(g++ -print-multiarch)" \
		-O2 "$TMP/heavy.cc" -o /dev/null
	large() { awk '$1 == "VmRSS:" { exit !($2 > 120000) }' \
		"/proc/$pid/status" 2>/dev/null; }
	ok "C++ compiler" adds_up TRAP large
else
	skip "C++ compiler" "no g++"
fi

if g++ -O1 -g -o threads "$SRC/tests/truth/threads.cc" -pthread 2>build.log
then
	try "C++ program with threads" ABRT "$TMP/threads" "$TMP/ready"
else
	skip "C++ program with threads" "no g++"
fi

# Its own allocator may be jemalloc: then there is little of glibc's.
if command -v redis-server >/dev/null && command -v redis-cli >/dev/null; then
	mkdir data
	start redis-server --port 0 --unixsocket "$TMP/socket" --save '' \
		--dir "$TMP/data"
	filled() {
		[ -S socket ] && i=0 && while [ $((i += 1)) -le 5000 ]; do
			echo "SET key:$i value-$i-$((i * 7919))"
		done | redis-cli -s socket >/dev/null
	}
	ok redis-server adds_up TRAP filled
else
	skip redis-server "no redis"
fi
finish
