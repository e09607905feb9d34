# SPDX-License-Identifier: MIT
# Valgrind finds no byte that is used before it was written, and none that is
# lost: the first is what the sanitizers do not see.
. "$SRC/tests/sh/tap"
cd "$TMP"

need valgrind
sanitized && skip_all "built with sanitizers"
valgrind -q true >out 2>err ||
	skip_all "valgrind does not run: $(head -n 1 err)"

# clean STATUS COMMAND...
clean() {
	want=$1
	shift
	is "$want" valgrind -q --log-file=log --error-exitcode=99 \
		--leak-check=full --show-leak-kinds=definite \
		--errors-for-leak-kinds=definite "$HEAPCORE" "$@" ||
		{ cat log; return 1; }
	[ ! -s log ] || { cat log; return 1; }
}

for name in plain threads; do
	xz -dc "$FIXTURES/$name/core.xz" >$name
done
seeds=$SRC/tests/fuzz/seeds
ok "a report" clean 0 analyze -q --only=all --no-files threads
ok "a difference" clean 0 diff -q --no-files plain threads
ok "a trace of another tool" clean 0 trace convert -q -o trace \
	"$seeds/import/heaptrack"
ok "a replay" clean 0 replay -q --rate=64k "$seeds/trace/sealed"
finish
