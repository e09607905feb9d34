# SPDX-License-Identifier: MIT
# What analyze does with a report: formats, files, statuses, secrets.  One
# core of a small program whose heap and surroundings hold planted words.
. "$SRC/tests/sh/tap"
without_debug_files "$@"
. "$SRC/tests/sh/core"
need_cores

cat >"$TMP/prog.c" <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

char in_data[64] = "SECRET-in-data";
char *row[1000];

int main(int argc, char **argv)
{
	char on_stack[64] = "SECRET-on-stack";
	int fd = open(argv[2], O_RDWR | O_CREAT, 0600);
	char *file;

	if (fd < 0 || ftruncate(fd, 2 << 20))
		return 1;
	file = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	/* Much enough for a finding. */
	memset(file, 1, 2 << 20);
	strcpy(file, "SECRET-in-file");
	for (int i = 0; i < 1000; i++) {
		row[i] = malloc(1000);
		snprintf(row[i], 1000, "SECRET-in-heap %d", i);
	}
	for (int i = 0; i < 1000; i++)
		if (i % 3)
			free(row[i]);
	malloc(1 << 20);
	/* A size field and the bytes around it: a finding quotes them. */
	if (argc > 3)
		memcpy(row[900] + 1000, "SECRET-overflow-of-a-block", 26);
	if (on_stack[0])
		abort();
	return 0;
}
END
cd "$TMP"
mkdir SECRET-folder
$CC -O0 -w -o SECRET-folder/prog prog.c
# The compiler leaves no name of a secret in the program: only the core has.
make_core core "$TMP/SECRET-folder/prog" SECRET-argument "$TMP/SECRET-map"
make_core bad "$TMP/SECRET-folder/prog" SECRET-argument "$TMP/SECRET-map" 1
analyze() {
	"$HEAPCORE" analyze -q "$@"
}

ok "complete: 0" is 0 analyze core
ok "a condition that holds: 1" is 1 analyze --fail-if='used>100k' core
ok "one that does not: 0" is 0 analyze --fail-if='used>100M' core
ok "one of several" is 1 analyze --fail-if='used>100M' \
	--fail-if='free_share>1%' core
ok "damaged: 3" is 3 analyze bad
# Behind a hint too: this core's file is cut off, and stderr has warned of it.
cut=$SRC/tests/cores/truncated/core.xz
reason() {
	where=$1 what=$2
	shift 2
	is 3 "$HEAPCORE" "$@" && tr '\n' ' ' <"$where" | tr -s ' ' |
		grep -q "$what.*mappings are not in the file" && return
	cat out err
	return 1
}
ok "3 has a reason" reason out 'Incomplete (status 3): ' analyze "$cut"
ok "3 of one section" reason out 'Incomplete (status 3): ' analyze \
	--only=where "$cut"
ok "3 as JSON" reason out '"incomplete": "' analyze --json "$cut"
ok "3 as CSV" reason err 'incomplete (status 3): ' analyze --csv \
	--only=where "$cut"
ok "3 of a list" reason err 'incomplete (status 3): ' analyze --blocks "$cut"
differs() {
	is 3 "$HEAPCORE" diff -q core "$cut" &&
		grep -qF "Incomplete (status 3): the new report is: " out
}
ok "3 of a difference" differs
ok "1 beats 3" is 1 analyze --fail-if='undecoded>0' bad
ok "findings count" is 1 analyze --fail-if='findings>0' bad
ok "conditions work with --blocks" is 1 analyze --blocks \
	--fail-if='used>100k' core

if [ -w /dev/full ]; then
	full() {
		is 2 sh -c '"$HEAPCORE" analyze -q "$@" >/dev/full' - "$@" &&
		echo "heapcore: standard output: No space left on device" |
			cmp - err
	}
	ok "a full disk: 2" full core
	ok "2 beats 1" full --fail-if='used>0' core
	ok "a full disk, --blocks" full --blocks core
else
	skip "a full disk" "no /dev/full"
fi
quiet() {
	analyze --blocks --json core 2>err | head -1 >/dev/null
	[ ! -s err ]
}
ok "a closed pipe is no news" quiet

same() {
	analyze "$@" >one
	analyze "$@" >two
	cmp one two
}
ok "the same bytes every time: text" same --only=all --rows=all core
ok "the same bytes every time: JSON" same --json core

file() {
	rm -f report
	analyze -o report "$@" core >out && [ ! -s out ] &&
	[ "$(stat -c %a report)" = 600 ] &&
	analyze "$@" core | cmp - report &&
	analyze -o report "$@" core
}
ok "-o: text" file
ok "-o: JSON" file --json
ok "-o: CSV" file --csv --only=where
ok "-o: blocks" file --blocks
ok "-o: blocks as NDJSON" file --blocks --json
other() {
	rm -f report
	analyze -o report --csv --only=where core
	cp report kept
	is 2 analyze -o report --csv --only=arenas core &&
	cmp report kept && analyze --force -o report --only=arenas core &&
	! cmp -s report kept && [ "$(ls -d report*)" = report ]
}
ok "-o: no other table's place, unless forced" other
ok "-o -: standard output" sh -c \
	'[ "$("$HEAPCORE" analyze -q -o - core | head -c 5)" = core: ]'

narrow() {
	awk '
		length > 80 { print; bad = 1 }
		/[^ -~]/ { print "not ASCII: " $0; bad = 1 }
		/ $/ { print "blank at the end: " $0; bad = 1 }
		END { exit bad || !NR }'
}
width() {
	"$HEAPCORE" analyze -q "$@" >out || [ $? = 3 ] || return
	narrow <out
}
ok "80 columns of ASCII" width --only=all --rows=all core
ok "80 columns: damaged" width bad
long=a-folder-with-a-long-name/and-one-more-that-is-no-shorter-than-that
mkdir -p "$long"
head -c 70000 core >"$long/cut"
cp bad "$long"
long_path() {
	"$HEAPCORE" analyze -q -o long.txt "$@" || [ $? = 3 ] || return
	cat long.txt
	# The path is never broken: only what is behind it goes on elsewhere.
	narrow <long.txt &&
	[ "$(sed -n '2,5s/^\([0-9.]*[KMG]\) of private memory,.*/\1/p' \
		long.txt | wc -l)" = 1 ]
}
ok "80 columns: a long path" long_path "$long/bad"
ok "80 columns: a long path, cut off" long_path "$long/cut"
ok "-o: such a report gives way too" long_path "$long/cut"
# The shell puts what was broken together again.
more() {
	"$HEAPCORE" analyze -q "$1" >out || [ $? = 3 ] || return
	sed -n '/^More:/,$p' out | sed 's/^More: /      /' >commands
	sed 's/^ *heapcore/"$HEAPCORE"/; s/analyze/& -q/' commands >script
	grep -c HEAPCORE script | grep -qx 2 || return
	sh script >out || [ $? = 3 ] || return
	cat commands
	grep -e "$2" commands
}
ok "More: what goes on from here" more core 'analyze --[bo]'
ok "More: the block to blame" more bad --at=0x
ok "More: with a long path" more "$long/bad" --at=0x
hints() {
	! "$HEAPCORE" analyze "$@" 2>&1 | tee hint | narrow || {
		grep -q '^  ' hint && tail -1 hint | grep -q "$last"'\.$'
		return
	}
	cat hint
	return 1
}
last=all
ok "80 columns: hints about --only" hints --only=nothing core
last=locked
ok "80 columns: hints about --sort" hints --only=arenas --sort=nothing core
colour() {
	analyze core >plain
	analyze --color=always core >coloured
	grep -q "$(printf '\033')" coloured &&
	sed "s/$(printf '\033')\[[0-9;]*m//g" coloured | cmp - plain &&
	NO_COLOR=1 analyze --color=always core | cmp - coloured
}
ok "colour changes nothing else; the option beats NO_COLOR" colour
progress() {
	"$HEAPCORE" analyze --progress=plain core 2>err >/dev/null
	grep -q '^heapcore: walking' err &&
	"$HEAPCORE" analyze core 2>err >/dev/null && ! grep walking err
}
ok "progress, if asked for" progress

count() {
	[ "$(analyze --blocks "$@" core | tail -n +2 | wc -l)" = "$n" ]
}
n=$(analyze --blocks --json core | grep -c '"state":"used"')
ok "filter: used" count -f used
n=1
ok "filter: one mmapped" count -f 'mmapped size>1M'
n=$(analyze --blocks --json core | grep -c '"size":1008,.*"state":"used"')
ok "filter: used blocks of a size" count -f 'used size=1008'
ok "blocks: 334 of 1000 rows are in use" [ "$n" = 334 ]
classes() {
	analyze --csv --only=classes -f 'used size=1008' core >out
	[ "$(sed -n '2s/^glibc,\([0-9]*\),\([0-9]*\),\([0-9]*\),.*/\1 \3/p' out)" \
		= "1008 334" ]
}
ok "filter: size classes of those that match" classes

if command -v jq >/dev/null; then
	json() {
		analyze --json core | jq -e '
			.schema == "heapcore-report/1" and .complete and
			.target.private_bytes ==
				([.where[].bytes] | add) and
			(.allocators[0] | .mapped_bytes == .used_bytes +
				.free_bytes + .overhead_bytes +
				.foreign_bytes + .undecoded_bytes) and
			([.arenas[].used_bytes] | add) == .totals.used_bytes
			and ([.. | nulls] | length) == 0'
	}
	ok "JSON adds up" json
	ndjson() {
		analyze --blocks --json core | jq -es '
			([.[] | select(.state == "used") | .size] | add) ==
				'"$(analyze --json core |
					jq .totals.used_bytes)"
	}
	ok "NDJSON adds up to the report" ndjson
else
	skip "JSON adds up" "no jq here"
fi

address=$(analyze --blocks --json -f 'used size=1008' core |
	sed -n '5s/.*"address":"\([^"]*\)".*/\1/p')
at() {
	analyze --at="$address" core >out
	grep -q 'state  *used$' out && grep -q 'SECRET-in-heap' out &&
	analyze --at="${address#0x}" --json core | grep -q '"size": 1008'
}
ok "at an address" at

# No planted word, nor its first bytes in any order, in whatever is printed.
clean() {
	"$HEAPCORE" analyze --redact "$@" >out 2>err || [ $? = 3 ]
	[ -s out ] || return
	! grep -iE 'SECRET|TERCES|534543524554|544552434553|5345.?4352' out err
}
leaky() {
	analyze "$@" >out 2>err || [ $? = 3 ]
	grep -q SECRET out
}
ok "the words are there" leaky --only=all --rows=all core
in_finding() {
	analyze --json core | grep '"rule": "data", .*SECRET-map'
}
ok "a file's name is in a finding" in_finding
map=$(analyze --csv --only=mappings core | sed -n 's/,.*SECRET-map.*//p')
ok "and at an address" leaky --at="$map" core
ok "the words are there, damaged" leaky --json bad
for core in core bad; do
	ok "redact: text of $core" clean --only=all --rows=all "$core"
	ok "redact: JSON of $core" clean --json "$core"
	ok "redact: blocks of $core" clean --blocks --json "$core"
	ok "redact: --at of $core" clean --at="$address" "$core"
	ok "redact: --at of $core, JSON" clean --json --at="$address" "$core"
	for section in mappings modules fragmentation findings; do
		ok "redact: $section of $core, CSV" clean --csv \
			--only="$section" "$core"
	done
done
ok "redact: --at of a file's mapping" clean --at="$map" core
mkdir SECRET-place
cp core SECRET-place/core
ok "redact: the core's own path" clean --only=all SECRET-place/core
ok "redact: without any file" clean --no-files --only=all core
mv SECRET-folder moved
ok "the warning names the program's path" sh -c \
	'"$HEAPCORE" analyze core 2>&1 >/dev/null | grep SECRET-folder'
ok "redact: warnings do not" clean --only=all core
mv moved SECRET-folder

# A program without malloc: the table is printed, and what is missing said.
cat >bare.c <<'END'
#include <sys/mman.h>
#include <signal.h>
#include <sys/syscall.h>

static long call(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e,
		      r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(n), "D"(a), "S"(b),
			 "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

void _start(void)
{
	char *p = (char *)call(SYS_mmap, 0, 1 << 20, 3, 0x22, -1, 0);

	for (int i = 0; i < 1 << 20; i += 4096)
		p[i] = 1;
	call(SYS_kill, call(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGABRT, 0, 0, 0,
	     0);
	for (;;)
		;
}
END
if $CC -static -nostdlib -w -o bare bare.c 2>/dev/null &&
	make_core bare.core "$TMP/bare"; then
	bare() {
		is 3 analyze bare.core &&
		grep -q '^heapcore: bare.core: no known allocator found' err &&
		grep -q 'no heap decoded; no known allocator$' out &&
		grep -q 'other anonymous mappings  *1024.0K' out
	}
	ok "no heap: the table all the same, 3" bare
	ok "no heap: an allocator asked for, 2" is 2 analyze \
		--allocator=glibc bare.core
	ok "no heap: no blocks, 2" is 2 analyze --blocks bare.core
else
	skip "no heap" "no static program without libc here"
fi

head -c 70000 core >cut
cut_off() {
	is 3 "$HEAPCORE" analyze cut &&
	grep -q '^heapcore: cut: truncated, ' err &&
	grep -q 'INCOMPLETE: [0-9]* of [0-9]* mappings are not in the' out &&
	is 3 analyze cut && [ ! -s err ]
}
ok "truncated: said twice, 3; -q is silent" cut_off

no_php() {
	"$HEAPCORE" analyze --only=php core | grep -qx \
		'Nothing: there is no php in it.' &&
		! "$HEAPCORE" analyze --only=php --csv core 2>err &&
		grep -q 'there is no php in it' err
}
ok "a section that has nothing to tell of" no_php

# A program that was started by another name of its file is called so.
called() {
	ln -s SECRET-folder/prog a-name-of-16-or-more
	make_core linked "$TMP/a-name-of-16-or-more" x "$TMP/SECRET-map" &&
		{ analyze --only=where linked >text || [ $? = 3 ]; }
	head -n 1 text
	grep -q '^linked: a-name-of-16-or-more, ' text
}
if [ "$core_writer" = kernel ]; then
	ok "called by the name it was started by" called
else
	skip "called by the name it was started by" "gdb writes the file's"
fi

finish
