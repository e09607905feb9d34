# SPDX-License-Identifier: MIT
# Damaged cores: see fuzz/mutate.c.  MUTATIONS is how many of each core.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
: "${MUTATIONS:=1000}"
# What a child of mutate may take; sanitizers take some for themselves.
most=64
! grep -q '^SANITIZE = .*address' "$BUILD/config.mk" || most=256
export ASAN_OPTIONS=quarantine_size_mb=8

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

ok "build" build
ok "one arena" mutated one.core large
ok "threads and mmapped blocks" mutated many.core threads mmapped
if build -m32; then
	ok "32 bits, with foreign memory" mutated small.core foreign large
else
	build -static
	ok "static, with foreign memory" mutated static.core foreign large
fi
finish
