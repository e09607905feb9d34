# SPDX-License-Identifier: MIT
# Resident and swapped bytes of mappings, rows, arenas, classes and blocks:
# against smaps, and against what the program knows that it touched.
. "$SRC/tests/sh/tap"
without_debug_files "$@"
cd "$TMP"
need jq
"$HEAPCORE" analyze -q --only=where -p $$ >/dev/null 2>err || [ $? = 3 ] ||
	skip_all "$(cat err)"

cat >threads.cc <<'END'
#include <map>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

/* Each thread keeps something of its own, and drops a part of it. */
static void work(int n)
{
	std::map<int, std::string> names;
	std::vector<std::vector<char>> rows;

	for (int i = 0; i < 2000; i++) {
		names[i * 7 % 1999] = std::string(n * 10 + i % 300, 'x');
		rows.emplace_back(i * 97 % 5000 + 1, 'y');
	}
	for (int i = 0; i < 2000; i += 3)
		names.erase(i);
	rows.resize(500);
	rows.reserve(1000000);
	if (write(1, ".", 1) != 1)
		return;
	for (;;)
		pause();
}

int main()
{
	std::vector<std::thread> threads;

	for (int n = 0; n < 16; n++)
		threads.emplace_back(work, n);
	for (auto &t : threads)
		t.join();
}
END


# start COMMAND...: it runs until it is quiet, and stands still from then on.
start() {
	: >said
	"$@" >>said &
	pid=$!
	until_ok settled "$1" || return 0
	kill -STOP $pid
	until_ok all_in T || :
}

# settled PROG: it has done what it does, and all its threads sleep.
settled() {
	case $1 in
	./pages) grep -q ready said || return ;;
	*) [ "$(wc -c <said)" = 16 ] || return ;;
	esac
	all_in S
}

# looked: the kernel may take pages away meanwhile; then once more.
looked() {
	for i in 1 2 3 4 5 6 7 8 9 10; do
		! taken || return 0
		sleep 0.1
	done
	return 1
}

# What does not change by what other processes do.
steady='^[0-9a-f]+-|^(Rss|Swap|AnonHugePages):'
taken() {
	cat /proc/$pid/smaps >smaps || return
	"$HEAPCORE" analyze --no-swapin --json --only="$sections" \
		-p $pid >report.json || return
	"$HEAPCORE" analyze -q --no-swapin --json --blocks -p $pid \
		>blocks.json || return
	grep -E "$steady" smaps >before
	grep -E "$steady" /proc/$pid/smaps >after
	diff before after
}

finish_swap() {
	[ -z "$swap" ] || swapoff "$TMP/swap"
	swap=
}

gone() {
	kill -KILL $pid
	wait $pid 2>/dev/null || :
	pid=
}
pid= swap=
trap '[ -z "$pid" ] || gone; finish_swap' EXIT

# MAPPINGS against smaps: a line can stand for several entries, and an entry
# be several lines.  [vvar] and the like are the kernel's own.
as_smaps() {
	jq -r '.mappings | sort_by(.address | length, .)[] |
		[.address[2:], .end[2:], .resident_bytes, .swapped_bytes,
		.what] | @tsv' report.json >lines
	awk -F'\t' '
	function wide(hex) {
		while (length(hex) < 16)
			hex = "0" hex
		return hex
	}
	FILENAME == "smaps" {
		split($0, part, /[ \t]+/)
		if (part[1] ~ /^[0-9a-f]+-[0-9a-f]+$/) {
			split(part[1], at, "-")
			end[++n] = wide(at[2])
		} else if (part[1] == "Rss:") {
			rss[n] = part[2] * 1024
		} else if (part[1] == "Swap:") {
			swap[n] = part[2] * 1024
		}
		next
	}
	{
		r += $3
		s += $4
		what = what " " $1 " " $5
		kernel = kernel || $5 ~ /^\[/
		lines++
		while (i < n && end[i] < wide($2)) {
			i++
			r -= rss[i]
			s -= swap[i]
		}
		if (i < n && end[i] > wide($2))
			next
		if (!kernel && (r || s)) {
			printf "%s: resident %+d, swapped %+d\n", what, r, s
			bad++
		}
		r = s = kernel = 0
		what = ""
	}
	END {
		print n " in smaps, " lines " lines"
		exit bad || i != n || lines < 10
	}' smaps lines
}

# Rows add up to the mappings, arenas to their rows, classes to the arenas,
# and blocks to the classes.
adds_up() {
	jq -e -s '
	def total($of; $key): [$of[] | .[$key]] | add;
	def rows($of; $names): [$of[] | select(.what | IN($names[]))];
	.[0] as $r | .[1:] as $blocks |
	rows($r.where; ["used"]) as $used |
	rows($r.where; ["free", "cached"]) as $free |
	rows($r.where; ["used", "free", "cached", "overhead"]) as $heap |
	[$r.mappings[] | select(.private)] as $private |
	("resident_bytes", "swapped_bytes") | . as $key |
	[
		total($private; $key) == total($r.where; $key),
		total($private; $key) == total($r.residency; $key),
		total($private; $key) == $r.target[$key],
		total($r.arenas; $key) == total($heap; $key),
		total($r.classes; $key) ==
			total($blocks; $key | sub("_bytes"; "")),
		total($r.arenas; "used_" + $key) == total($used; $key),
		total($r.classes; "used_" + $key) == total($used; $key),
		total($r.arenas; "free_resident_bytes") ==
			total($free; "resident_bytes"),
		total($r.classes; "free_resident_bytes") ==
			total($free; "resident_bytes"),
		total($r.mappings; "resident_bytes") == $r.target.rss_bytes,
		all($r.residency[]; .resident_bytes + .swapped_bytes +
			.zero_bytes + .untouched_bytes == .bytes)
	] | ., error(if all then empty else "does not add up" end)' \
		report.json blocks.json
}

# What the program touched, block by block.
as_touched() {
	grep -c 0x said
	while read -r name address resident; do
		[ "$resident" ] || continue
		got=$(jq "select(.address == \"$address\").resident" \
			blocks.json)
		echo "$name: $got, touched $resident"
		[ "$got" = "$resident" ] || return
	done <said
}

# The row of blocks in use, and what else is told of it.
used() { jq ".residency[] | select(.what == \"used\").$1" report.json; }

only_read() {
	echo "only read: $(used zero_bytes)"
	# 16 MB, but for the first page.
	[ "$(used zero_bytes)" = $((16 * 1048576 - 4096)) ]
}

sections=where,standout,arenas,classes,fragmentation,residency,mappings
narrow() {
	"$HEAPCORE" analyze -q --no-swapin --only="$sections" -p $pid >text ||
		return
	awk 'length > 80 { print; bad++ } END { exit bad > 0 }' text
}

says() {
	"$HEAPCORE" analyze -q --no-swapin -p $pid >text || [ $? = 3 ] ||
		return
	cat text
	grep -q "$1" text
}

# ---- a page of each kind ----

ok build $CC -O1 -o pages "$SRC/tests/truth/pages.c"
start ./pages
ok "pages: looked at" looked
ok "pages: as smaps" as_smaps
ok "pages: all adds up" adds_up
ok "pages: blocks as they were touched" as_touched
ok "pages: only read" only_read
ok "pages: never touched is said" says 'was never touched and costs no memory'
ok "pages: 80 columns" narrow
gone

start ./pages fork
shared() {
	looked || return
	want=$(awk '/^[0-9a-f]+-/ { heap = /\[heap\]/ }
		heap && /^Shared/ { sum += $2 } END { print sum * 1024 }' smaps)
	got=$(jq '[.residency[] | select(.what |
		IN("used", "free", "cached", "overhead")).shared_bytes] |
		add' report.json)
	echo "shared: $got, smaps $want"
	[ "$got" = "$want" ] && [ "$got" -gt 0 ]
}
ok "a forked relative: its pages are shared" shared
ok "a forked relative: as smaps" as_smaps
ok "a forked relative: all adds up" adds_up
ok "a forked relative: 80 columns" narrow
gone

start ./pages huge
huge() {
	looked || return
	want=$(awk '/^AnonHugePages/ { sum += $2 } END { print sum * 1024 }' \
		smaps)
	got=$(jq '[.residency[].huge_bytes] | add' report.json)
	echo "huge: $got, smaps $want"
	[ "$got" = "$want" ]
}
ok "huge pages: as many as in smaps" huge
ok "huge pages: as smaps" as_smaps
ok "huge pages: all adds up" adds_up
gone

# ---- swap ----

# A machine without swap space gets a little, where that is allowed.
PATH=$PATH:/usr/sbin:/sbin
make_swap() {
	(umask 077; dd if=/dev/zero of=swap bs=1M count=32 2>/dev/null) &&
		mkswap swap >/dev/null 2>&1 && swapon swap 2>/dev/null
}
! make_swap || swap=yes
start ./pages swap
swapped() {
	looked || return
	address=$(sed -n 's/^swapped //p' said)
	jq -c "select(.address == \"$address\")" blocks.json >block
	cat block
	jq -e '.resident + .swapped == .size and
		.swapped >= 4 * 1048576' block
}
if grep -q '^VmSwap:.*[0-9][0-9][0-9][0-9] kB' /proc/$pid/status; then
	ok "swap: of a block" swapped
	ok "swap: as smaps" as_smaps
	ok "swap: all adds up" adds_up
	ok "swap: is said" says 'is in swap; the program waits for it'
	ok "swap: 80 columns" narrow
else
	skip "swap" "no swap space, and none may be made"
fi
gone
finish_swap

# ---- threads ----

ok build $CC -x c++ -O1 -pthread -o threads threads.cc -lstdc++
if [ -x threads ]; then
	start ./threads
	ok "16 threads of C++: looked at" looked
	ok "16 threads of C++: as smaps" as_smaps
	ok "16 threads of C++: all adds up" adds_up
	ok "16 threads of C++: 80 columns" narrow
	gone
fi
finish
