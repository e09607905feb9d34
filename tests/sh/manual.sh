# SPDX-License-Identifier: MIT
# The manual: its examples are run, and each key of JSON is in heapcore-json(5)
# and the reverse.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
. "$SRC/tests/sh/preloaded"

without_debug_files "$@"
need_cores
need jq

cat >prog.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 40000 };
static char *all[N], *mapped, *texts[3];
static pthread_barrier_t barrier;

static void *work(void *unused)
{
	char *p[7];

	for (int i = 0; i < 7; i++)
		p[i] = malloc(1032);
	for (int i = 0; i < 7; i++)
		free(p[i]);
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t t;
	size_t n;
	int count, keep;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&t, NULL, work, NULL);
	pthread_barrier_wait(&barrier);
	*(void **)malloc(48) = (void *)work;
	mapped = memset(malloc(3 << 20), 1, 3 << 20);
	/* A profile wants samples; for all else, some blocks will do. */
	count = strcmp(argv[1], "profile") ? 6000 : N;
	for (int i = 0; i < count; i++)
		all[i] = memset(malloc(24 + i % 900), 2, 24);
	for (int i = 0; i < 3; i++)
		texts[i] = strcpy(malloc(40),
				  "a text that occurs three times");
	/* Most pages are held by blocks, or could go back. */
	keep = strcmp(argv[1], "wait") ? 4 : 1000;
	for (int i = 0; i < count; i++)
		if (i % keep)
			free(all[i]);
	while (!strcmp(argv[1], "wait"))
		pause();
	if (!strcmp(argv[1], "fault") || !strcmp(argv[1], "profile"))
		*(volatile int *)16 = 1;
	/* As a string that is too long for the last block would. */
	mapped = malloc(56);
	if (!strcmp(argv[1], "twice")) {
		free(mapped);
		free(mapped);
	}
	n = 64;
	memcpy(mapped, "a name that is longer than the block that it is for, "
	       "by a word", n);
	free(malloc(70000));
	free(mapped);
	free(malloc(70000));
	abort();
}
END

# unmdoc FILE: the commands in a page's section EXAMPLES, one a line.
unmdoc() {
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/s/^\.Dl \$ //p' "$SRC/man/$1"
}

# run_example COMMAND: from the page, as typed; its status is that in the page.
run_example() {
	want=0
	case $1 in
	*'\'* | *'" '*) echo "mdoc would change: $1"; return 1 ;;
	*fail-if*) want=1 ;;
	esac
	file=$(echo "$1" | sed -n 's/.* -o \([^ ]*\).*/\1/p')
	[ -z "$file" ] || rm -f "$file"
	status=0
	sh -c "$1" >out 2>err || status=$?
	[ -z "$file" ] || cp "$file" out || return 1
	# gdb leaves mappings out.
	[ "$core_writer" != gdb ] || [ $status != 3 ] || status=0
	# A snapshot ends with a line on standard error.
	case $1 in
	*snapshot*) ! grep -q 'stood still for' err || : >err ;;
	esac
	[ $status = $want ] && [ -s out ] && [ ! -s err ] && return
	echo "status $status, not $want; standard error:"
	cat err
	return 1
}

# keys FILE: "list.key" for each key of a document.
keys() {
	jq -r 'paths | map(strings) | join(".")' "$1" | sort -u
}

documents() {
	if [ "$process" ]; then
		heapcore analyze -q --json -p $PID >live.json || return 1
		keys live.json
		heapcore analyze -q --json --blocks -p $PID >blocks.json ||
			return 1
		jq -r 'keys[] | "block." + .' blocks.json | sort -u
	else
		printf 'target.%s\n' stopped_s torn rss_bytes
		printf 'block.%s\n' resident swapped
		printf 'residency.%s_bytes\n' untouched zero huge shared file
		for list in target where arenas classes mappings residency; do
			printf "$list.%s_bytes\n" resident swapped
		done
		for list in arenas classes; do
			printf "$list.%s_bytes\n" used_resident \
				used_swapped free_resident
		done
		printf '%s\n' where.resident_share advice.command
	fi
	# There is no PHP here: tests/sh/php.sh.
	grep '^php' manual
	xz -dc "$SRC/tests/cores/ocaml4/core.xz" >core.ocaml
	for core in core.1234 core.damaged core.twice core.ocaml; do
		heapcore analyze -q --json $core >$core.json || [ $? = 3 ] ||
			return 1
		keys $core.json
		heapcore analyze -q --json --only=retainers,strings,duplicates,patterns $core \
			>retainers.json || [ $? = 3 ] || return 1
		keys retainers.json
		heapcore analyze -q --json --only=threads $core \
			>threads.json || [ $? = 3 ] || return 1
		keys threads.json
		printf 'threads.frames.%s\n' file line inlined guess \
			signal_handler
		echo threads.frames_left_out
		heapcore analyze -q --json --blocks --leaks $core \
			>blocks.json ||
			[ $? = 3 ] || return 1
		jq -r 'keys[] | "block." + .' blocks.json | sort -u
		heapcore analyze -q --json --only=where --sample=4k $core \
			>sample.json || [ $? = 3 ] || return 1
		keys sample.json
		printf 'sample%s.%s\n' _types exact_bytes _types exact_blocks \
			_types error_bytes_share _types error_blocks_share \
			_types covers_bytes '' covers_blocks
		# What is likely has a holder, and a small heap is looked at.
		heapcore analyze -q --json --search='three times' $core \
			>search.json || [ $? = 3 ] || return 1
		keys search.json
		echo search.rows.type
		printf '%s\n' types.object_bytes
		printf 'records.rows.%s\n' record_bytes records
		# Nor has it an allocator with spans: tests/sh/tcmalloc.sh.
		printf '%s\n' free_levels releases spans spans_held_by \
			python_arenas
		printf 'python_arenas.%s\n' arenas empty nearly_empty \
			to_half above_half held_bytes blocks block_bytes
		printf 'free_levels.%s\n' allocator span_bytes cache_bytes \
			page_bytes page_stored_bytes returned_bytes
		printf 'releases.%s\n' allocator bytes call setting
		printf 'spans.%s\n' allocator size spans bytes idle_bytes \
			unused nearly_empty to_half above_half full \
			used_blocks used_bytes cached_blocks cached_bytes \
			free_blocks free_bytes
		printf 'spans_held_by.%s\n' allocator size blocks spans \
			idle_bytes example first_words
		# Nor classes of its own: tests/sh/pymalloc.sh.
		printf '%s.redacted_name\n' types leaks.rows
		# The program has no debug information: tests/sh/dwarf.sh.
		printf 'members.%s\n' name offset value leads_to type
		printf 'accumulations.%s\n' type holds
		printf 'words.%s\n' offset value leads_to
		printf '%s\n' strings.why_not leaks.why_not leaks.rows.held_by \
			leak.leak_kind leak.held_by referrers.block
		if [ -s core.tcmalloc ]; then
			heapcore analyze -q --json --profile core.tcmalloc \
				>profile.json || return 1
			keys profile.json
		else
			grep '^profile' manual
		fi
		# What tcmalloc does not keep.
		printf 'profile_ages.%s\n' min_s samples estimate_bytes \
			low_bytes high_bytes bound_bytes_share
		printf 'profiles.samples.%s\n' weight_bytes before_newest_s
		printf 'profile_stacks.frames.%s\n' file line inlined
		for at in $(addresses $core.json); do
			heapcore analyze -q --json --at="$at" $core >at.json ||
				[ $? = 3 ] || return 1
			keys at.json
		done
	done
}

# A block in a thread's cache, one that is a mapping, a damaged place.
addresses() {
	jq -r 'select(.mmapped or .thread) | .address' blocks.json |
		sed -n '1p;$p'
	jq -r '.findings[] | .address // empty' "$1"
}

# Two sorted lists that must be equal.
same() {
	comm -3 "$1" "$2" >only
	[ -s "$1" ] && [ -s "$2" ] && [ ! -s only ] && return
	echo "left: only in $1; right: only in $2"
	cat only
	return 1
}

# Numbers that readers of JSON may round: none in any document.
exact() {
	jq -e '[.. | numbers | select(. > 9007199254740992)] == []' "$@"
}

# codes: the words that heap_note() is called with.
codes() {
	cat "$SRC"/src/corewalk/*.c | tr -s '\n\t ' '   ' |
		grep -oE 'heap_note\([a-z>-]+, [^,;]*"[a-z-]+"[^,;]*,' |
		grep -oE '"[a-z-]+"' | tr -d '"' | sort -u
}
known_codes() {
	codes >codes
	[ "$(wc -l <codes)" -ge 10 ] || { echo "few codes"; return 1; }
	while read -r code; do
		grep -qw -e "$code" "$SRC/man/heapcore-json.5" &&
			cat "$SRC"/docs/allocators/*.md | grep -qw -e "$code" &&
			continue
		echo "$code is not in heapcore-json.5 and in docs/allocators"
		return 1
	done <codes
}

mkdir bin
ln -s "$HEAPCORE" bin/heapcore
PATH=$TMP/bin:$PATH
export PATH

ok "build" "$CC" -O0 -fno-builtin -w -pthread -o prog prog.c
[ -x prog ] || finish
ok "a core" make_core core.1234 "$TMP/prog" fault "$(printf 'caf\351')"
ok "another" make_core core.damaged "$TMP/prog" damage
ok "and one of a double free" make_core core.twice "$TMP/prog" twice
[ -s core.1234 ] && [ -s core.damaged ] || finish
tcmalloc=$(library libtcmalloc.so.4)
if [ "$tcmalloc" ]; then
	ok "and one with a profile" make_core core.tcmalloc env \
		TCMALLOC_SAMPLE_PARAMETER=4096 LD_PRELOAD="$tcmalloc" \
		"$TMP/prog" profile
fi

./prog wait &
pid=$! PID=$!
export PID
trap 'kill -KILL $PID 2>/dev/null || :' EXIT
# Both of its threads sleep as soon as they have done their work.
at_work() { [ "$(ls "/proc/$PID/task" | wc -l)" = 2 ] && all_in S; }
until_ok at_work
# Not everybody may stop a process.
process=yes
heapcore analyze -q -p $PID >live.txt 2>refused || process=

for page in heapcore-analyze.1 heapcore-snapshot.1 heapcore.1 heapcore-json.5; do
	unmdoc $page >"$page"
	while read -r line; do
		case $process$line in
		heapcore*'$PID'* | heapcore*'appd.core'*)
			skip "$page: $line" "$(head -n 1 refused)"
			;;
		*core.tcmalloc*)
			if [ "$tcmalloc" ]; then
				ok "$page: $line" run_example "$line"
			else
				skip "$page: $line" "no libtcmalloc.so.4"
			fi
			;;
		*)	ok "$page: $line" run_example "$line" ;;
		esac
	done <"$page"
done
ok "heapcore-analyze.1: at least four examples" \
	[ "$(wc -l <heapcore-analyze.1)" -ge 4 ]

awk '
	/^\.Ss/ { ss = $2; next }
	/^\.Sh/ { ss = "" }
	/^\.It Cm/ && ss { print (ss == "Document" ? "" : ss ".") $3 }' \
	"$SRC/man/heapcore-json.5" | sort -u >manual
all_documents() { documents >all; }
ok "a document of each kind" all_documents
ok "text that is not UTF-8 is there in hexadecimal" \
	grep -qx target.command_hex all
sed '/_hex$/d' all | sort -u >printed
ok "JSON: printed and in the manual" same printed manual
ok "JSON: no number that readers round" exact core.*.json at.json
ok "findings: each code is in the manual" known_codes

# known OPTION: the words that the message about an unknown one lists.
known() {
	heapcore analyze "$@" core.1234 2>&1 >/dev/null | tail -n +2 |
		tr '\n' ' ' | sed -n 's/\. *$//; s/^  [TK][a-z]* are //p' |
		tr -s ', ' '\n\n' | sort
}

# told FROM TO MACRO: the words of these lines of the manual.
told() {
	awk -v from="$1" -v to="$2" -v macro="$3" '
		index($0, from) == 1 { on = 1; next }
		index($0, to) == 1 { on = 0 }
		on && index($0, macro " ") == 1 {
			rest = substr($0, length(macro) + 2)
			gsub(/[,.]/, "", rest)
			n = split(rest, word, " ")
			for (i = 1; i <= n; i++)
				print word[i]
		}' "$SRC/man/heapcore-analyze.1" | sort
}

heapcore snapshot --help | grep -oE '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' |
	sort -u >help
grep -oE 'Fl -[a-z][a-z-]*' "$SRC/man/heapcore-snapshot.1" |
	sed 's/Fl /-/' | sort -u >told-help
ok "options of snapshot: those of --help are in the manual" same help told-help
known --only=none >words
told '.Ss Sections' .Sh '.It Cm' >sections
ok "words of --only: known and in the manual" same words sections
known --blocks --filter='none=1' >keys
told '.Ss Filters' .Sh '.It Cm' >told-keys
ok "keys of --filter: known and in the manual" same keys told-keys
known --fail-if='none>1' | sed 's/_bytes$//' | sort >totals
told '.It Fl -fail-if' .It .Cm >told-totals
ok "words of --fail-if: known and in the manual" same totals told-totals

finish
