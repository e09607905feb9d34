# SPDX-License-Identifier: MIT
# Where malloc has no more, heapcore says so and ends with status 2, or does
# without; it does not crash.  elfutils, which may, reads no files here.
. "$SRC/tests/sh/tap"
cd "$TMP"
sanitized && skip_all "nothing can be preloaded before sanitizers"

# From the call with that number on there is no memory, or only for that one.
cat >none.c <<'END_C'
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t),
	*__libc_realloc(void *, size_t);
static atomic_long calls;

static int refuse(void)
{
	const char *from = getenv("NONE_FROM"), *at = getenv("NONE_AT");
	long n = atomic_fetch_add(&calls, 1);
	int none = (from && n >= atol(from)) || (at && n == atol(at));

	if (none)
		errno = ENOMEM;
	return none;
}

void *malloc(size_t size)
{
	return refuse() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return refuse() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return refuse() ? NULL : __libc_realloc(p, size);
}

static void __attribute__((destructor)) count(void)
{
	if (getenv("COUNT"))
		fprintf(stderr, "calls: %ld\n", calls);
}
END_C
"$CC" -O1 -shared -fPIC -o none.so none.c || skip_all "no shared libraries"

# told SETTING COMMAND...: what was refused is said, or done without.
told() {
	setting=$1 status=0
	shift
	(
		export "$setting" LD_PRELOAD="$TMP/none.so"
		exec "$HEAPCORE" "$@"
	) >out 2>err || status=$?
	case $status in
	0 | 3) ;;
	2) grep -q '^heapcore: out of memory: ' err ;;
	*) false ;;
	esac || { echo "$setting: status $status"; cat err; return 1; }
}
# at_eight COMMAND...: at eight moments of the command.
at_eight() {
	told COUNT=1 "$@" || return
	calls=$(sed -n 's/^calls: //p' err)
	said=0
	for i in 0 1 2 3 4 5 6 7; do
		told NONE_FROM=$((calls * i / 8)) "$@" || return
		said=$((said + (status == 2)))
		told NONE_AT=$((calls * i / 8)) "$@" || return
	done
	echo "said $said times of 8, $calls calls"
	[ $said -ge 6 ]
}

for name in plain threads; do
	xz -dc "$FIXTURES/$name/core.xz" >$name
done
ok "a report" at_eight analyze -q --only=all --no-files threads
ok "a difference" at_eight diff -q --no-files plain threads
ok "a replay" at_eight replay -q --rate=64k \
	"$SRC/tests/fuzz/seeds/trace/sealed"
finish
