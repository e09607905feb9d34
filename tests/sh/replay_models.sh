# SPDX-License-Identifier: MIT
# heapcore replay --only=models against allocators themselves: what they say a
# request gets, and what glibc's blocks are.
. "$SRC/tests/sh/tap"
need jq

# Keeps some blocks; says what they add up to in the allocator it runs with:
# by nallocx() if there is such a thing, else by glibc's own header words.
cat >"$TMP/prog.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *volatile kept[4000];

int main(int argc, char **argv)
{
	size_t (*nallocx)(size_t, int) = NULL;
	unsigned long long sum = 0, n = 0, x = 1;

	if (argc > 1)
		*(void **)&nallocx = dlsym(RTLD_DEFAULT, argv[1]);
	if (argc > 1 && !nallocx)
		return 1;
	for (int i = 0; i < 4000; i++) {
		size_t size;
		size_t *p;

		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		size = (x >> 33) % (i % 50 ? 3000 : 300000);
		kept[i] = p = malloc(size);
		memset(p, 1, size);
		if (nallocx)
			sum += nallocx(size ? size : 1, 0);
		else
			sum += malloc_usable_size(p) + (p[-1] & 2 ? 16 : 8);
		n += size;
	}
	fprintf(stderr, "%llu %llu\n", n, sum);
	_Exit(0);
}
END
cd "$TMP"
cc=${CC:-cc}
$cc -O1 -fno-builtin -o prog prog.c -ldl || skip_all "no compiler"
"$HEAPCORE" record -q -o prog.trace -- ./prog 2>glibc ||
	skip_all "cannot record"
"$HEAPCORE" replay --only=models --json prog.trace >m.json
of() {
	jq -r ".models[] | select(.allocator == \"$1\" and .moment == \"end\")
		| \"\(.requested_bytes) \(.rounded_bytes)\"" m.json
}
same() {
	[ "$1" = "$2" ] || { echo "$1, not $2"; return 1; }
}

ok "glibc: the blocks as they are" same "$(of glibc)" "$(cat glibc)"
# preloaded NAME LIBRARY FUNCTION
preloaded() {
	if LD_PRELOAD=$2 ./prog "$3" 2>said; then
		ok "$1: what it says" same "$(of "$1")" "$(cat said)"
	else
		skip "$1: what it says" "no $2 here"
	fi
}
preloaded jemalloc libjemalloc.so.2 nallocx
preloaded tcmalloc libtcmalloc_minimal.so.4 tc_nallocx
ok "spans are not smaller than what is in them" sh -c 'jq -e "[.models[] |
	select(.allocator != \"glibc\") |
	select(.spans_bytes < .rounded_bytes)] | length == 0" m.json'
ok "the peak is the end of what only grows" sh -c 'jq -e "[.models[] |
	select(.allocator == \"zend\").rounded_bytes] | .[0] == .[1]" m.json'
"$HEAPCORE" replay --only=models,filters prog.trace >text
ok "text" grep -q '^  jemalloc, at the peak ' text
ok "text of filters" grep -q '^  shadow bitmap ' text
ok "in 80 columns" sh -c '! grep -q "^.\{81\}" text'
ok "CSV of one of them" sh -c '"$HEAPCORE" replay --only=filters --csv \
	prog.trace | grep -q "^footer,"'
finish
