# SPDX-License-Identifier: MIT
# The browser on recorded traces and on saved reports: keys from a script,
# screens as text, held against what the program does and against replay.
. "$SRC/tests/sh/tap"
without_debug_files "$@"
need jq
cd "$TMP"

cp "$SRC/tests/truth/sites.c" prog.c
${CC:-cc} -O1 -fno-inline -w -o prog prog.c || skip_all "no compiler"
"$HEAPCORE" record -q -o p.trace -- ./prog || skip_all "cannot record"
LC_ALL=C
export LC_ALL

# tui KEYS [OPTION...] [FILE]: what a script prints.
tui() {
	printf '%b' "$1" >keys
	shift
	case ${1-} in
	*.trace | *.json) ;;
	*) set -- "$@" p.trace ;;
	esac
	"$HEAPCORE" tui -q --script=keys "$@"
}

# shows KEYS RE [FILE]: the screen after these keys has a line like this.
shows() {
	tui "$1\n:screen it\n" ${3+"$3"} >screen || return 1
	grep -qE -e "$2" screen && return
	echo "no $2 in"
	cat screen
	return 1
}

# typed N KEYS: there are at most N of them.
typed() {
	n=$(printf '%s' "$2" | sed 's/<[A-Za-z]*>/x/g' | wc -c)
	[ "$n" -le "$1" ] || { echo "$n keys"; return 1; }
}

# ---- a trace that is a sample ----

"$HEAPCORE" record -q --rate=4k -o sample.trace -- ./prog
ok "a sample: no rates are tried on it" shows 8 \
	'^ > Rates and sizes cannot be tried on a sample' sample.trace
ok "a sample: and no rate is advised" sh -c '! grep -q "a rate of" screen'
ok "a sample: nor sizes" shows 6 'cannot be tried on a sample' sample.trace
more_works() {
	"$HEAPCORE" replay sample.trace >said &&
		! grep -E 'replay --rate|cannot be tried' said
}
ok "a sample: no command that is refused" more_works

# ---- what it opens with ----

ok "overview: the peak" shows '' '^ > at the peak  *2929.7K  *1010  '
ok "overview: the end" shows '' '^   at the end  *976.6K  *1000  '
ok "overview: freed at once" shows '' '^   freed at once  *1250.0K  *20000  '
ok "overview: a curve" shows '' '2.86M  .*#'
holders=3
ok "who holds the peak: few keys" typed 4 "$holders"
ok "who holds the peak" shows "$holders" '^ > bulge .* 1953.1K  *66.7%  *10 '
ok "who holds the peak: then" shows "$holders" '^   keep .* 976.6K  *33.3% '
ok "who holds it: on the first screen already" \
	shows '' '^   bulge .* 1953.1K  *66.7% '
digit=1
for word in 'THE HEAP OVER TIME' 'LIVE HEAP at' 'WHO HOLDS THE PEAK' \
	'CALLS THAT LED' 'FUNCTIONS' '^ SIZE ' 'WHO HOLDS FOR LONG' '^ RATES'
do
	ok "view $digit" shows "$digit" "$word"
	digit=$((digit + 1))
done

# ---- rows lead on ----

ok "a moment leads to who it is" shows '<Down><Enter>' 'WHO HOLDS THE END'
ok "a site leads to its callers" shows '3<Enter>*' '^ +bulge +1953.1K '
callers_of_one() {
	shows '3<Enter>' '- main ' && ! grep -qE '^ .* keep' screen
}
ok "and to nobody else's" callers_of_one
beside() {
	tui '3\n:screen it\n' --size=120x40 >screen &&
		grep -qE '[|] *bulge +1953.1K' screen &&
		! grep -qE '[|] *keep' screen
}
ok "which stand beside it on a wide screen" beside
ok "and back" shows '3<Enter><Left>' '^ > bulge'
ok "o: the end" shows '3o' '^ > keep .* 976.6K  *100.0%'
ok "o: all that was allocated" shows '3oo' '^ > bulge .* 1953.1K  *46.7% '
ok "o: freed at once" shows '3ooo' '^ > churn .* 20000  *100.0%'
ok "o: and round" shows '3oooo' 'WHO HOLDS THE PEAK'
ok "m: estimates" shows '3m' 'estimate  *\+-95%  *exact'
ok "m: and exact again" shows '3mm' '^ > bulge .* 1953.1K  *66.7% '
ok "another view knows what was chosen" shows '3o4' 'LED TO THE END'
ok "no instant is marked elsewhere" shows '3d' 'marked on the Timeline: 2'

# ---- the tree ----

ok "tree: it begins where ways part" shows 4 '^ > - main .* 2929.7K  *100.0%'
ok "tree: largest first" shows '4<Down>' '^ >    bulge  *1953.1K .* 1953.1K$'
ok "tree: closed" shows '4-' '^ > \+ main '
closed() {
	tui '4-\n:screen it' >screen && ! grep -q bulge screen
}
ok "tree: what is below is hidden" closed
ok "tree: open again" shows '4-+<Down>' '^ >    bulge '
ok "tree: Enter does both" shows '4<Enter><Enter><Down>' '^ >    bulge '
ok "tree: minus goes up" shows '4<Down>-' '^ > \+ main '
ok "tree: it stays in its order" shows '4s' 'a tree stays in its order'

# ---- instants ----

# The same heap at times that no machine's load can move, of heaptrack's form:
# milliseconds and all other numbers are hexadecimal.
awk 'BEGIN {
	print "v 10400 3\nX ./prog\nI 1000 40"
	n = split("/prog main keep bulge", s, " ")
	for (i = 1; i <= n; i++)
		printf "s %x %s\n", length(s[i]), s[i]
	for (i = 1; i < n; i++)
		printf "i %x 1 %x\nt %x %x\n", 4096 + i, i + 1, i, (i > 1)
	print "a 3e8 2\na 30d40 3\n+ 0\n- 0\nc 64"	# 100 ms: keep
	for (i = 0; i < 1000; i++)
		print "+ 0"
	print "c 12c"				# 300 ms: bulge
	for (i = 0; i < 10; i++)
		print "+ 1"
	print "c 15e"				# 350 ms: gone
	for (i = 0; i < 10; i++)
		print "- 1"
	print "c 190\n+ 0\n- 0"			# 400 ms: the end
}' >timed.heaptrack
"$HEAPCORE" trace convert -q -o timed.trace timed.heaptrack

# at KEYS RE: as shows, of that trace.
at() {
	shows "$1" "$2" timed.trace
}
# The instant on the screen, in seconds.
seconds() {
	sed -nE 's/^ LIVE HEAP[^0-9]*([0-9.]+ [mun]?s).*/\1/p' screen |
		awk '{ split("s 1 ms 1e-3 us 1e-6 ns 1e-9", u, " ")
			for (i = 1; i < 9; i += 2) if ($2 == u[i])
				printf "%.9f\n", $1 * u[i + 1] }'
}
ten="<Left><Left><Left><Left><Left><Left><Left><Left><Left><Left>"
# More than the plot has columns.
left=$ten$ten$ten$ten$ten$ten$ten$ten$ten$ten
right=$(printf '%s' "$left" | sed 's/Left/Right/g')
ok "time: at first the peak" at 2 '^ > bulge .* 1953.1K  *66.7%'
ok "time: at the end" at "2$right" '^ > keep .* 976.6K  *100.0%'
ok "time: the cursor is there" at "2$right" '^ .*\^$'
ok "time: nothing at the start" at "2$left" '^   total  *0  '
row_as_csv() {
	tui '8<Enter>erow.csv<Enter>' >/dev/null
	head -n 1 row.csv | grep -q '^rate_bytes,' && [ "$(wc -l <row.csv)" -gt 1 ]
}
ok "what a row shows, as CSV" row_as_csv

ok "time: d marks, arrows compare" at "2d$right" '^ > bulge .* -1953.1K '
ok "time: what is marked is said" at 2d 'marked 300 ms: Left'
ok "time: d again drops it" at 2dd 'no instant is marked'
ok "time: the other way" at "2${right}d$ten" \
	'^ LIVE HEAP, from [0-9.]+ ms to 400 ms'
as_replay() {
	tui "2$ten\n:screen it" timed.trace --size=100x40 >screen &&
		at=$(seconds) && [ -n "$at" ] || return 1
	# What is shown is rounded: the heap is the same around it.
	"$HEAPCORE" replay -q --exact --at="$at" --only=sites --rows=all \
		timed.trace |
		sed -n 's/^  \(keep\|total\) .* \([0-9.]*K\) .*%.*/\1/p' >want
	sed -n 's/^ [> ] \(keep\|total\) .* \([0-9.]*K\) .*%.*/\1/p' screen |
		head -n 2 >got
	[ -s want ] && diff want got
}
ok "time: as replay --at" as_replay
ok "time: a site's callers then" at "2$right<Enter>*" '^ +keep +976.6K '

# ---- tables are those of replay ----

# same_table VIEW SECTION OPTION...: what e writes is what replay prints.
same_table() {
	rm -f page.json
	tui "$1epage.json<Enter>\n:screen it\n" >screen || return 1
	section=$2
	shift 2
	"$HEAPCORE" replay -q --exact --json --only="$section" "$@" p.trace |
		jq "{$section}" >want
	jq "{$section}" page.json >got && [ -s want ] && cmp want got
}
ok "sites: as replay" same_table 3 sites
ok "sites at the end: as replay" same_table 3o sites --metric=end
ok "tree: as replay" same_table 4 tree
ok "functions: as replay" same_table 5 functions
ok "sizes: as replay" same_table 6 sizes
ok "models: as replay" same_table 6 models
ok "lifetimes: as replay" same_table 7 lifetimes
ok "lives of sites: as replay" same_table 7 sites --metric=lifetime
ok "rates: as replay" same_table 8 rates --seeds=20 \
	--rate=1k,4k,16k,64k,256k,512k,1M,4M,16M
ok "estimates: as replay" same_table 3m sites

# ---- damage ----

size=$(wc -c <p.trace)
head -c $((size * 3 / 4)) p.trace >cut.trace
cut_opens() {
	printf ':screen it' >keys
	"$HEAPCORE" tui --script=keys cut.trace >screen 2>said
	grep -q 'heapcore: cut.trace: ' said && grep -q INCOMPLETE screen &&
		grep -q 'THE HEAP OVER TIME' screen
}
ok "a cut trace opens up to the cut" cut_opens
zstd_opens() {
	zstd -q -f p.trace -o packed.trace && shows '' 'at the peak  *2929.7K' \
		packed.trace
}
if command -v zstd >/dev/null; then
	ok "a packed one opens" zstd_opens
else
	skip "a packed one opens" "no zstd"
fi
not_any() {
	echo nothing >no.trace
	tui '' no.trace >out 2>&1
	[ $? = 2 ] && grep -q 'no.trace: not a core file' out
}
ok "what is neither is refused" not_any

# ---- screens ----

ascii() {
	for size in 80x24 120x40 61x16; do
		tui "$1\n:screen it\n" --size=$size >screen || return 1
		[ "$(sed 1d screen | wc -l)" = "${size#*x}" ] &&
			! LC_ALL=C grep -n '[^ -~]' screen || return 1
		awk -v w="${size%x*}" 'length > w { exit 1 }' screen || return 1
	done
}
utf8() {
	LC_ALL=C.UTF-8 tui "$1\n:screen it\n" --size=120x40 >screen &&
		grep -q "$(printf '\342\226\210')" screen &&
		grep -q "$(printf '\342\224\202')" screen
}
for view in 1 2 3 4 5 6 7 8; do
	ok "view $view: its lines, in ASCII" ascii "$view"
done
if [ "$(LC_ALL=C.UTF-8 locale charmap 2>/dev/null)" = UTF-8 ]; then
	ok "overview with block elements" utf8 1
	ok "time line with block elements" utf8 2
else
	skip "block elements" "no UTF-8"
fi
roles() {
	tui '2\n:roles it\n' >screen && grep -q 'g' screen
}
ok "the curve has a role of its own" roles
storm() {
	awk 'BEGIN {
		srand(2)
		split("4 3 2 6 G g j <PgDn> <Enter> <Left> s S u b <Right> d " \
		      "o m <Esc> <Tab> <Enter> + - * 7 8 1 5 <Down> <Up>", k, " ")
		for (i = 0; i < 150; i++) {
			printf ":size %dx%d\n", 1 + rand() * 150, 1 + rand() * 50
			for (j = 0; j < 4; j++)
				printf "%s", k[1 + int(rand() * 29)]
			print "\n:screen " i
		}
	}' >keys
	"$HEAPCORE" tui -q --script=keys p.trace >screens || return 1
	[ "$(grep -c '^== ' screens)" = 150 ]
}
ok "a storm of sizes and keys" storm

# ---- saved reports ----

"$HEAPCORE" replay --json --exact --only=overview,sites,tree,notes \
	-o r.json p.trace
"$HEAPCORE" replay --json -o all.json p.trace
rm -f gone.trace
ok "replay: it says what it is of" shows '' 'r.json: replay of p.trace' r.json
ok "replay: the peak" shows '' '^   at the peak|^ > peak .* 2929.7K' r.json
ok "replay: sites" shows 3 '^ > bulge .* 1953.1K' all.json
ok "replay: lifetimes" shows 7 '^ > below 1 us ' all.json
ok "what it does not hold is said" shows 6 'Sizes: not in this report; open' \
	all.json
cat >report.json <<'END'
{ "schema": "heapcore-report/1", "heapcore": "0.1.0", "complete": true,
"target": { "kind": "core", "path": "/srv/core.7", "program": "appd" },
"where": [ { "what": "used", "bytes": 2048, "share": 0.75 },
  { "what": "free", "bytes": 683, "share": 0.25 } ],
"types": [ { "name": "session", "blocks": 3, "bytes": 1536,
  "example": "0x55f6c34472a0" } ],
"leaks": { "total_bytes": 512, "rows": [
  { "name": "lost", "blocks": 1, "bytes": 512 } ] } }
END
ok "report: without its core" shows '' 'report on core.7, appd, complete' \
	report.json
ok "report: where" shows '' '^ > used  *2048  *75.0%' report.json
ok "report: types" shows 3 '^ > session  *3  *1536' report.json
ok "report: sums and the list beside them" shows 7 '^   lost  *1  *512' \
	report.json
ok "report: all columns of a row" shows 3i 'example  *0x55f6c34472a0' \
	report.json
ok "report: no retainers" shows 6 'Retainers: not in this report; open the' \
	report.json
# One side of a comparison with itself.
"$HEAPCORE" diff --json report.json report.json >d.json 2>/dev/null || :
ok "diff: what changed" shows '' '^   used  *2048  *2048  *0' \
	d.json
printf '%s' '{ "schema": "heapcore-report/1", "\u001b[2J": [ { "a\u001b]0;b":
	"\u001b[31mred\u202e", "x": [[[]]], "y": -1e308, "z": 1 } ],
	"where": { "rows": [ 1, null, { "what": "\u0007" }, [] ], "k": {} },
	"types": [ { "name": "n", "bytes": -5 }, { "bytes": "0x1" } ] }' \
	>evil.json
harmless() {
	tui ':screen a\n<Enter>\n:screen b\n3\n:screen c\n8\n:screen d\ni\n:screen e\n' \
		evil.json >screen || return 1
	grep -q 'red' screen && ! LC_ALL=C grep -n '[^ -~]' screen
}
ok "nothing of a report reaches the terminal as it is" harmless
bad() {
	printf '%s' "$1" >bad.json
	tui '' bad.json >out 2>&1
	[ $? = 2 ] && grep -q "$2" out
}
ok "cut JSON is refused" bad '{ "schema": "heapcore-report/1"' 'cut off'
ok "other JSON is refused" bad '{ "schema": "what/1" }' 'other JSON'

# ---- a real terminal ----

if ! command -v tmux >/dev/null; then
	skip "a terminal" "no tmux"
	finish
fi
unset TMUX
TERM=xterm
export TERM
T="tmux -f /dev/null -S $TMP/tmux"
$T new-session -d -s stays cat || { skip "a terminal" "no tmux"; finish; }
trap '$T kill-server 2>/dev/null || :' EXIT
shown() {
	$T capture-pane -p -t s >pane 2>/dev/null && grep -qE -e "$1" pane
}
seen() { until_ok shown "$1" || { cat pane; return 1; }; }
in_terminal() {
	$T new-session -d -s s -x 80 -y 24 \
		"PS1='ready\$ ' ENV= LC_ALL=C.UTF-8 sh" || return 1
	seen 'ready\$' || return 1
	$T send-keys -t s \
		"TERM=$1 $HEAPCORE tui -q p.trace; echo status \$?" Enter
	seen 'at the peak' && $T send-keys -t s 2 && seen 'LIVE HEAP at' &&
		$T send-keys -t s Left Left && seen 'WHO HOLDS THE HEAP' &&
		$T send-keys -t s d && seen 'marked' &&
		$T send-keys -t s Right Right && seen 'WHAT GREW' &&
		$T send-keys -t s 4 && seen '> - main' &&
		$T send-keys -t s Q && seen 'status 0'
}
ok "in a terminal" in_terminal screen
finish
