# SPDX-License-Identifier: MIT
# What the report says of a process whose facts are known from outside: in
# words that fit a process, with the numbers that other tools print.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
cd "$TMP"
need jq

cat >prog.c <<'END_C'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N = 20000 };
static pthread_barrier_t barrier;

static void *work(void *name)
{
	char **p = malloc(N * sizeof(*p));

	pthread_setname_np(pthread_self(), name);
	for (int i = 0; i < N; i++)
		p[i] = memset(malloc(100 + i % 400), 1, 100);
	for (int i = 0; i < N; i++)
		if (i % 97)
			free(p[i]);
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	return name;
}

int main(int argc, char **argv)
{
	char *names[] = { "pool-one", "pool-two" };
	FILE *file = fopen(argv[0], "r");
	pthread_t t;

	/* Memory that is reserved, that is of a file, and that is shared. */
	mmap(NULL, 300 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (char *p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fileno(file),
			    0); *p == 0x7f; )
		break;
	memset(mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0), 1, 1 << 20);
	pthread_barrier_init(&barrier, NULL, 3);
	for (int i = 0; i < 2; i++)
		pthread_create(&t, NULL, work, names[i]);
	pthread_barrier_wait(&barrier);
	fclose(fopen("ready", "w"));
	for (;;)
		pause();
}
END_C
ok "build" $CC -O0 -fno-builtin -w -pthread -o prog prog.c
[ -x prog ] || finish
./prog &
pid=$!
trap 'kill -KILL $pid 2>/dev/null || :' EXIT
until_ok [ -e ready ] && until_ok all_in S || exit
kill -STOP $pid
until_ok all_in T || exit
"$HEAPCORE" analyze -q -p $pid --only=all --rows=all >out 2>err ||
	[ $? = 3 ] || skip_all "$(head -n 1 err)"
"$HEAPCORE" analyze -q -p $pid --only=all --json >out.json || [ $? = 3 ]
"$HEAPCORE" analyze -q -p $pid >short || [ $? = 3 ]

# The kernel counts in batches for each processor: a quarter of a megabyte.
rss() {
	kernel=$(awk '/^VmRSS/ { print $2 * 1024 }' /proc/$pid/status)
	jq -e --argjson kernel "$kernel" '.target | [.rss_bytes, $kernel],
		(.rss_bytes - $kernel | fabs) < 262144' out.json &&
	grep -E '^RSS [0-9.]+M: [0-9.]+M private, [0-9.]+M shared or of files$' \
		short
}
ok "RSS agrees with what the kernel says" rss
more() {
	jq -e '.target | .rss_bytes - .stored_bytes | . >= 1048576 and
		. < 16 * 1048576' out.json
}
ok "RSS has what is shared, too" more
ok "nothing is said to be in a file" sh -c '! grep -n "in file\|in the file\|core file" out'
at() {
	address=$(jq -r '.arenas[0].top_address' out.json)
	"$HEAPCORE" analyze -q -p $pid --at="$address" >at || [ $? = 3 ] ||
		return
	cat at
	grep -qE '^  its byte is +readable$' at && ! grep -q 'in the file' at
}
ok "nor a byte at an address" at
ok "shares are of what is resident, and say so" \
	grep -E '^WHERE THE MEMORY IS +size +resident +of it$' short
ok "80 columns" sh -c '! grep -E "^.{81}" out short'

threads() {
	jq -c '.threads[]' out.json
	[ "$(jq -r '[.threads[].name] | sort | join(" ")' out.json)" = \
		"pool-one pool-two prog" ] &&
	jq -e '[.threads[] | select(.at | test("^[^ ]+ in |^libc|\\+"))] |
		length == 3' out.json &&
	grep -E "^  $pid  +prog  +glibc main .*[a-z]" out
}
ok "threads: names, and where they are" threads
arenas() {
	for tid in $(jq -r '.threads[].tid' out.json); do
		grep -qE "^  glibc .*  1 \\($tid\\)$" out || return
	done
	grep -qE '^  total .*  3$' out
}
ok "arenas: whose they are" arenas
mappings() {
	sed -n '/^MAPPINGS/,/^$/p' out >maps
	cat maps
	# What was only reserved is the largest, and comes last.
	jq -e '.mappings[-1] | .bytes >= 300 * 1048576 and .stored_bytes == 0' \
		out.json ||
	jq -e '[.mappings[].stored_bytes] | . == (sort | reverse)' out.json
}
ok "mappings: what takes memory comes first" mappings
pins() {
	"$HEAPCORE" analyze -q -p $pid --only=fragmentation --rows=2 >few ||
		[ $? = 3 ] || return
	cat few
	blocks=$(jq '[.pinned_by[2:][].blocks] | add' out.json)
	pages=$(jq '[.pinned_by[2:][].pages] | add' out.json)
	sed -n '/^BLOCKS THAT PIN/,$p' few |
		grep -E "^  [0-9]+ more +$blocks +$pages +[0-9]"
}
ok "fragmentation: the rest of the kinds, added up" pins
trimmable() {
	"$HEAPCORE" analyze -q -p $pid --bytes --only=arenas,fragmentation \
		>exact || [ $? = 3 ] || return
	cat exact
	# A column of shares may stand before, where threads' ids are short.
	total=$(awk '/^ARENAS/ { p = 1 } !NF { p = 0 }
		p && $1 == "total" { print $(NF - 1) }' exact)
	[ "$total" ] && grep -qE "^  trimmable +$total$" exact
}
ok "trimmable is one figure" trimmable
evidence() {
	jq -r '.allocators[0].evidence' out.json
	jq -e '.allocators[0].evidence | test("; 3 thread caches by content, "+
		"3 of 3 threads;")' out.json
}
ok "evidence in whole words" evidence
finish
