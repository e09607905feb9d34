# SPDX-License-Identifier: MIT
# What heapcore diff says of a program that was run with two sizes, of reports
# that were saved, and of a process that grows.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
need_cores
need jq

# prog BLOCKS FREED ANON THREADS [wait]: so many blocks of 112 bytes with
# their header, of 1008 bytes that were freed, megabytes that malloc does not
# know, and threads with 1000 blocks of 512 bytes each.  SIGUSR1 makes it keep
# 20000 blocks more.
cat >"$TMP/prog.c" <<'END'
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_barrier_t barrier;
static volatile sig_atomic_t grow;

static void *keep(long n, size_t size)
{
	char **list = NULL;

	while (n--) {
		char **block = malloc(size);

		memset(block, 1, size);
		*block = (char *)list;
		list = block;
	}
	return list;
}

static void *work(void *unused)
{
	static __thread void *list;

	list = keep(1000, 500);
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	return unused;
}

static void on_usr1(int unused)
{
	grow = 1;
}

static void *kept[3];

int main(int argc, char **argv)
{
	long threads = atol(argv[4]);
	size_t anon = (size_t)atol(argv[3]) << 20;
	char **list, **next;
	pthread_t t;
	sigset_t usr1, old;

	pthread_barrier_init(&barrier, NULL, threads + 1);
	kept[0] = keep(1000, 200);
	kept[1] = keep(atol(argv[1]), 104);
	list = keep(atol(argv[2]), 1000);
	/* So that the top does not swallow it all. */
	kept[2] = keep(1, 104);
	for (; list; list = next) {
		next = (char **)*list;
		free(list);
	}
	if (anon)
		memset(mmap(NULL, anon, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			    MAP_ANONYMOUS, -1, 0), 1, anon);
	/* Before there are threads that could take it. */
	signal(SIGUSR1, on_usr1);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, &old);
	for (long i = 0; i < threads; i++)
		pthread_create(&t, NULL, work, NULL);
	pthread_barrier_wait(&barrier);
	if (argc < 6)
		abort();
	write(1, "ready\n", 6);
	for (;;) {
		sigsuspend(&old);
		if (grow)
			kept[1] = keep(20000, 104);
		if (grow)
			write(1, "ready\n", 6);
		grow = 0;
	}
}
END
cd "$TMP"
$CC -O0 -fno-builtin -w -pthread -o prog prog.c
cp prog other
make_core small "$TMP/prog" 1000 0 0 0
make_core large "$TMP/prog" 101000 0 0 0
make_core kept "$TMP/prog" 1000 20000 0 0
make_core mixed "$TMP/prog" 30000 0 30 5
make_core foreign "$TMP/other" 1000 0 0 0
diff() {
	"$HEAPCORE" diff "$@"
}
"$HEAPCORE" analyze -q --json small >small.json || [ $? = 3 ]
"$HEAPCORE" analyze -q --json large >large.json || [ $? = 3 ]
# A debugger's cores are not complete.
full=$(jq -r 'if .complete then 0 else 3 end' small.json)

# said STATUS WORDS COMMAND...: the report has these words, whatever its lines.
said() {
	want=$1 words=$2
	shift 2
	is "$want" "$@" || return 1
	tr -s ' \n' '  ' <out >line
	grep -qF -e "$words" line && return
	cat out
	return 1
}

# json FILTER COMMAND...: the filter is true of the document.
json() {
	filter=$1
	shift
	"$@" >doc 2>err || [ $? = 3 ] || { cat err; return 1; }
	jq -e "$filter" doc >/dev/null && return
	jq -c '.totals, .changed, .classes[0], .arenas[0]' doc
	return 1
}

ok "grown: the sentence" said "$full" \
	"10.7M more is in use (from" diff -q small large
ok "grown: names the size" said "$full" \
	"all of it in 100000 more blocks of 112 bytes" diff -q small large
ok "grown: the document" json '
	.schema == "heapcore-diff/1" and
	.totals.used_change_bytes == 11200000 and
	.totals.used_blocks_change == 100000 and
	.classes[0].min_bytes == 112 and
	.classes[0].used_change_bytes == 11200000 and
	.classes[0].used_blocks_change == 100000 and
	.arenas[0].name == "glibc main" and
	.arenas[0].used_change_bytes == 11200000 and
	.where[0].what == "used" and
	.changed[0].rule == "used" and
	.changed[0].change_bytes == 11200000' diff -q --json small large
ok "the rows of where add up to private memory" json '
	([.where[].old_bytes // 0] | add) == .totals.private_old_bytes and
	([.where[].new_bytes // 0] | add) == .totals.private_new_bytes and
	([.where[].change_bytes] | add) == .totals.private_change_bytes' \
	diff -q --json small mixed
ok "sizes and arenas add up to what is in use" json '
	([.classes[].used_change_bytes] | add) == .totals.used_change_bytes and
	([.arenas[].used_change_bytes] | add) == .totals.used_change_bytes' \
	diff -q --json small mixed
ok "the other way round it shrank" said "$full" \
	"10.7M less is in use (-97" diff -q large small
ok "the other way round all signs change" json '
	.totals.used_change_bytes == -11200000 and
	.classes[0].used_blocks_change == -100000' diff -q --json large small
ok "only kept: said so" said "$full" \
	"is free, kept by the allocators (from" diff -q small kept
ok "only kept: none in use" said "$full" \
	"none of which is in use" diff -q small kept
ok "only kept: the document" json '
	.totals.used_change_bytes == 0 and .totals.free_change_bytes > 19e6 and
	([.changed[].rule] == ["free"])' diff -q --json small kept
ok "mixed: not malloc first" json '
	.changed[0].rule == "anonymous" and .changed[1].rule == "used" and
	.changed[0].change_bytes == 31457280 and
	([.changed[].rule] | index("arenas")) != null' \
	diff -q --json small mixed
ok "mixed: arenas that are new have no old amount" json '
	[.arenas[] | select(.name != "glibc main" and .address)] |
	length == 5 and
	all(has("mapped_old_bytes") | not) and
	all(.mapped_change_bytes == .mapped_new_bytes)' \
	diff -q --json small mixed
ok "mixed: a dash in the text" sh -c \
	'"$HEAPCORE" diff -q small mixed |
	grep -qE "^  glibc 1 +- +[0-9.]+[KM] +\+"'

ok "itself: nothing changed" said "$full" "Nothing changed: no kind" \
	diff -q small small
ok "itself: no change anywhere" json '
	.changed == [.changed[0] | select(.rule == "nothing")] and
	([.. | objects | to_entries[] |
	  select(.key | test("_change|^change_")) | .value] |
	 length > 20 and all(. == 0))' diff -q --json small small
ok "its saved report: nothing changed" said "$full" \
	"Nothing changed: no kind" diff -q small.json small
ok "and the other way round" said "$full" "Nothing changed: no kind" \
	diff -q small small.json
diff -q --json small large >cores.doc || [ $? = 3 ]
diff -q --json small.json large.json >saved.doc || [ $? = 3 ]
without_sides() {
	jq 'del(.old, .new)' "$1"
}
without_sides cores.doc >cores.rest
without_sides saved.doc >saved.rest
ok "of cores and of their saved reports: the same" cmp cores.rest saved.rest
"$HEAPCORE" analyze -q --json --only=all small >all.json || [ $? = 3 ]
ok "a report of all sections lacks nothing" said "$full" \
	"10.7M more is in use" diff all.json large
ok "and nobody says it does" test ! -s err
ok "standard input" said "$full" "10.7M more is in use" sh -c \
	'"$HEAPCORE" diff -q - large <small.json'
ok "a pipe" said "$full" "10.7M more is in use" sh -c \
	'mkfifo pipe; cat small.json >pipe & "$HEAPCORE" diff -q pipe large'
if command -v zstd >/dev/null; then
	zstd -q small
	ok "a packed core" said "$full" "Nothing changed" \
		diff -q small.zst small.json
fi

ok "condition holds" is 1 diff -q --fail-if='used_change>10M' small large
ok "condition does not" is "$full" diff -q --fail-if='used_change>11M' \
	small large
ok "condition on a share" is 1 diff -q --fail-if='used_growth_share>200%' \
	small.json large
ok "one of several" is 1 diff -q --fail-if='free_change>1G' \
	--fail-if='used_blocks_change>=100000' small large
ok "what shrank" is 1 diff -q --fail-if='used_change<-10M' large small

ok "exact bytes" said "$full" "+11200000" diff -q --bytes small large
ok "rows" sh -c '"$HEAPCORE" diff -q --only=arenas --rows=2 small mixed |
	grep -qE "^  4 more"'
ok "no row of nothing but zeros" sh -c '
	"$HEAPCORE" diff -q --only=classes --rows=all small large >zeros
	cat zeros
	grep -q " bytes " zeros && ! grep -E " bytes( +(0|-))+$" zeros'
ok "csv" sh -c '"$HEAPCORE" diff -q --csv --only=classes small large |
	sed -n 2p | grep -q "^glibc,112,112,.*,11200000,"'
ok "sorted by a change: by its size" sh -c '
	"$HEAPCORE" diff -q --only=where --sort=change --csv kept mixed |
	awk -F, "NR > 1 { n = \$4 < 0 ? -\$4 : \$4
		if (NR > 2 && n > last) exit 1; last = n }"'
ok "no paths" sh -c '"$HEAPCORE" diff -q --redact "$TMP/small" \
	"$TMP/large.json" >out || [ $? = 3 ]; ! grep -F "$TMP" out &&
	grep -q "^new  large.json" out'
ok "to a file, of mode 600" sh -c '"$HEAPCORE" diff -q --json -o doc2 small \
	large || [ $? = 3 ]; [ "$(stat -c %a doc2)" = 600 ] && jq -e . doc2'
ok "which is replaced" is "$full" diff -q -o doc2 small large
ok "and again, as text" is "$full" diff -q -o doc2 small large
ok "other files are not" is 2 diff -q -o prog.c small large
ok "the same bytes each time" sh -c '
	"$HEAPCORE" diff -q --json small mixed >a || :
	"$HEAPCORE" diff -q --json small mixed >b || :; cmp a b'

# warns STATUS WORDS COMMAND...: on standard error.
warns() {
	want=$1 words=$2
	shift 2
	is "$want" "$@" || return 1
	grep -qF -e "$words" err && return
	cat err
	return 1
}
ok "different programs: a warning" warns "$full" \
	"these are of different programs: prog and other" diff small foreign
ok "and a note" json '[.notes[].code] == ["program"]' \
	diff --json small foreign
ok "quiet: none" sh -c '"$HEAPCORE" diff -q small foreign 2>&1 >/dev/null |
	cmp - /dev/null'

sed 's|heapcore-report/1|heapcore-report/2|' small.json >newer.json
ok "a newer report: said, compared as far as it goes" warns 3 \
	"newer.json: it is of a newer kind, heapcore-report/2" \
	diff newer.json large
ok "and what is there is compared" said 3 "100000 more blocks of 112 bytes" \
	diff -q newer.json large
"$HEAPCORE" analyze -q --json --only=where small >where.json || [ $? = 3 ]
ok "lists are missing: said" warns 3 \
	"where.json: it has no size classes: these are not compared" \
	diff where.json large
ok "and where is compared" said 3 "10.7M more is in use" \
	diff -q where.json large
ok "a condition on what is missing does not hold" is 3 \
	diff -q --fail-if='used_change>0' where.json large
"$HEAPCORE" analyze -q --json --filter='size>200' small >some.json ||
	[ $? = 3 ]
ok "blocks are missing: said" warns 3 "was it made with --filter?" \
	diff some.json large
jq 'del(.arenas[0].used_bytes)' small.json >hole.json
ok "a key is missing: said" warns 3 "lack used_bytes" diff hole.json large

for bad in '' '{}' '[]' '{"schema":"heapcore-diff/1"}' 'not json' '{"a"'; do
	printf '%s' "$bad" >bad
	ok "no report: $bad" is 2 diff bad large
done
ok "a comparison is none" warns 2 "not a report: it is a comparison" \
	diff cores.doc large
ok "a file that is not there" is 2 diff nowhere large
ok "a program is none" warns 2 "not a core file" diff prog large
full_disk() {
	is 2 sh -c '"$HEAPCORE" diff -q small large >/dev/full' &&
		grep -q 'No space left' err
}
[ ! -w /dev/full ] || ok "a full disk" full_disk

# A report cut off anywhere is refused, with one message, in no time.
size=$(wc -c <small.json)
cut_off() {
	for n in 1 2 9 10 50 $((size / 3)) $((size / 2)) $((size - 3)); do
		head -c "$n" small.json >cut
		is 2 diff cut large || { echo "at $n"; return 1; }
	done
}
ok "a report that is cut off" cut_off

# ---- a process ----

mkfifo ready
./prog 1000 0 0 2 wait >ready &
PID=$!
trap 'kill -KILL $PID 2>/dev/null || :' EXIT
exec 3<ready
read -r word <&3
if "$HEAPCORE" analyze -q --json -p $PID >before.json 2>refused; then
	ok "a process as it was: nothing changed" said 0 "Nothing changed" \
		diff -q before.json -p $PID
	ok "it is the new side" json '
		.new.kind == "process" and .old.schema == 1 and
		.new.pid == .old.pid and .new.path == "process '$PID'"' \
		diff -q --json before.json -p $PID
	ok "or the old one" json '.old.path == "process '$PID'" and
		.new.schema == 1' diff -q --json -p $PID before.json
	ok "or both" said 0 "Nothing changed" diff -q --pid=$PID --pid $PID
	ok "against a core of the same program" json '
		.changed[0].rule == "used" and .new.kind == "core"' \
		diff -q --json -p$PID large
	kill -USR1 $PID
	read -r word <&3
	ok "a process that grew" said 0 \
		"2.14M more is in use" diff -q before.json -p $PID
	ok "what grew, and where" said 0 \
		"all of it in 20000 more blocks of 112 bytes; all of it in arena glibc main" \
		diff -q before.json -p $PID
	# The list of before lost its head.
	ok "what was lost" said 0 "109K more is lost: nothing was found" \
		diff -q before.json -p $PID
	ok "a check of that" is 1 diff -q --fail-if='leaked_change>100k' \
		before.json -p $PID
	ok "a check" is 1 diff -q --fail-if='used_change>2M' before.json \
		-p $PID
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/s/^\.Dl \$ //p' \
		"$SRC/man/heapcore-diff.1" >examples
	cp small core.1
	cp large core.2
	mkdir -p bin
	ln -sf "$HEAPCORE" bin/heapcore
	example() {
		case $1 in
		*fail-if*) is 1 sh -c "$1" ;;
		*core.1*) is "$full" sh -c "$1" ;;
		*) is 0 sh -c "$1" ;;
		esac
	}
	export PID
	PATH=$TMP/bin:$PATH
	rm -f before.json
	while read -r line; do
		ok "manual: $line" example "$line"
	done <examples
	ok "manual: four examples" [ "$(wc -l <examples)" -ge 4 ]
else
	skip "processes" "$(head -n 1 refused)"
fi

# keys FILE: those of all objects, as "list.key".
keys() {
	jq -r 'paths | map(strings) | join(".")' "$1" | sed '/^new\./d' |
		sort -u
}
awk '
	/^\.Ss JSON/ { on = 1; ss = ""; next }
	/^\.Sh/ { on = 0 }
	on && /^\.Ss/ { ss = $2 "."; next }
	on && /^\.It Cm/ {
		for (i = 3; i <= NF; i++)
			if ($i != ",")
				print ss $i
	}' "$SRC/man/heapcore-diff.1" | sort -u >told
jq '. + {types: [{name: "a", bytes: 1, blocks: 1}],
	php_holders: [{name: "$a", kind: "global", heap: "zend",
		holds_bytes: 1}],
	php_classes: [{name: "A", heap: "zend", bytes: 1, objects: 1}],
	leaks: {rows: [{name: "a", grade: "certain", bytes: 1, blocks: 1}]}} |
	.totals.leaked_bytes = 1 | .totals.leaked_blocks = 1 |
	.where[0].resident_bytes = 1 | .where[0].swapped_bytes = 1' small.json \
	>typed.json
diff --json typed.json typed.json >typed.doc 2>/dev/null || [ $? = 3 ]
diff --json before.json -p $PID >process.doc 2>/dev/null || :
jq '.complete = false | .target.torn = false |
	.arenas[0].name = "b"' small.json >named.json
diff --json named.json foreign >named.doc 2>/dev/null || [ $? = 3 ]
jq '.arenas[0].address = "0x10"' small.json >x.json
jq '.arenas[0].address = "0x10" | .arenas += [.arenas[0]] |
	.arenas[1].address = "0x20" | .arenas[1].name = "glibc 1"' small.json \
	>first.json
jq '.arenas[1].name = "glibc 2"' first.json >second.json
diff --json first.json second.json >renamed.doc 2>/dev/null || [ $? = 3 ]
for doc in cores.doc typed.doc named.doc renamed.doc; do
	keys $doc
done | sort -u >printed
ok "JSON: each key is in the manual, and the reverse" cmp told printed

# A command that is too long for a line goes on on the next one.
more() {
	long=a-directory-with-a-rather-long-name-of-sixty-characters-here
	mkdir -p "$long"
	cp small.json "$long/old.json"
	cp large.json "$long/new.json"
	diff -q "$long/old.json" "$long/new.json" >out || [ $? = 3 ]
	sed -n '/^More:/,$p' out >command
	cat command
	[ "$(wc -l <command)" -ge 2 ] && ! grep -q '.\{80\}' command &&
		sed 's/^More: heapcore/set --/' command >command.sh &&
		[ "$(. ./command.sh && echo "$#: $4 $5")" = \
		  "5: $long/old.json $long/new.json" ]
}
ok "More: with long paths" more

# Names by debug information on one side only would all have changed.
by_debug() {
	jq '.types[0].known_by = "dwarf"' typed.json >debug.json
	diff --json typed.json debug.json >mixed.doc 2>err || [ $? = 3 ]
	cat err
	grep -q 'typed.json: its types were named without debug' err &&
		jq -e '.types == null or .types == []' mixed.doc &&
		jq -e '.types | length == 1' typed.doc
}
ok "types with debug information and without are not compared" by_debug

finish
