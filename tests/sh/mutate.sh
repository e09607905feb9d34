# SPDX-License-Identifier: MIT
# Damaged cores: see fuzz/mutate.c.  MUTATIONS is how many of each core, a
# tenth of it where the core is that of another allocator than malloc.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
. "$SRC/tests/sh/preloaded"
: "${MUTATIONS:=500}"
# What a child of mutate may take; sanitizers take some for themselves.
most=64
! grep -q '^SANITIZE = .*address' "$BUILD/config.mk" || most=256
export ASAN_OPTIONS=${ASAN_OPTIONS-}:quarantine_size_mb=8

need_cores

build() {
	${CC:-cc} -O1 -fno-builtin -pthread "$@" -o shapes \
		"$SRC/tests/fuzz/shapes.c"
}

# mutated CORE SHAPE...
mutated() {
	core=$1
	shift
	make_core "$core" "$TMP/shapes" "$@" && nice "$BUILD/tests/fuzz/mutate" \
		-n "$MUTATIONS" -m "$most" "$core" >mutate.out 2>&1
	status=$?
	cat mutate.out
	return $status
}

# other LIMIT COMMAND...: the limit is 64 MB and twice the core.
other() {
	MUTATIONS=$((MUTATIONS / 10)) most=$((most + $1))
	shift
	make_core other.core "$@" && nice "$BUILD/tests/fuzz/mutate" \
		-n "$MUTATIONS" -m "$most" other.core >mutate.out 2>&1
	status=$?
	cat mutate.out
	return $status
}
under() {
	name=$(library "$2")
	if [ "$name" ]; then
		ok "$1" other $3 env LD_PRELOAD="$name" "$TMP/shapes" threads \
			large
	else
		skip "$1" "no $2"
	fi
}

ok "build" build
ok "one arena" mutated one.core large
ok "threads and mmapped blocks" mutated many.core threads mmapped
if build -m32; then
	ok "32 bits, with foreign memory" mutated small.core foreign large
else
	build -static
	ok "static, with foreign memory" mutated static.core foreign large
fi
rm -f ./*.core
build
under "tcmalloc" libtcmalloc_minimal.so.4 24
under "jemalloc" libjemalloc.so.2 48
if command -v python3 >/dev/null; then
	ok "pymalloc" other 24 "$(command -v python3)" -S -E -c 'import os
kept = [str(i) for i in range(2000)]
os.abort()'
else
	skip "pymalloc" "no python3"
fi
if command -v php >/dev/null && php -r 'posix_getpid();' 2>/dev/null; then
	ok "zend" other 24 "$(command -v php)" -r 'for ($i = 0; $i < 300; $i++)
		$kept[] = str_repeat("x", $i * 7);
	for ($i = 0; $i < 300; $i += 3)
		unset($kept[$i]);
	posix_kill(posix_getpid(), 6);'
else
	skip "zend" "no php with posix"
fi
# fixture NAME: a core that is there already.
fixture() {
	xz -dc "$SRC/tests/cores/$1/core.xz" >"$1" &&
		"$BUILD/tests/fuzz/mutate" -n $((MUTATIONS / 10)) -m "$most" \
			"$1"
}
for name in ocaml4 ocaml5; do
	ok "$name" fixture $name
done
finish
