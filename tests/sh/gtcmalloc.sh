# SPDX-License-Identifier: MIT
# google/tcmalloc, which is only found linked into programs: workerd, the
# JavaScript runtime, has it and exports malloc, so that truth/spans.c can run
# inside it.  Its npm package is fetched once into the build directory.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
. "$SRC/tests/sh/preloaded"

need_cores
cd "$TMP"
command -v python3 >/dev/null || skip_all "no python3"
command -v jq >/dev/null || skip_all "no jq"
[ "$(uname -m)" = x86_64 ] || skip_all "not x86_64"

# The layout of this one is known; later ones may have another.
package=@cloudflare/workerd-linux-64@1.20261117.1
workerd=$BUILD/npm-packages/workerd-1.20261117.1
fetch() {
	command -v npm >/dev/null || return 1
	mkdir -p "$BUILD/npm-packages"
	timeout 120 npm pack --silent "$package" >/dev/null 2>&1 &&
	tar xzf ./*.tgz package/bin/workerd && rm -f ./*.tgz &&
	mv package/bin/workerd "$workerd"
}
[ -x "$workerd" ] || fetch || skip_all "no npm package $package"

# whole WORKLOAD RSEQ: 1: the C library has the kernel's restartable
# sequences and tcmalloc thread caches; 0: tcmalloc has slabs for each CPU.
whole() {
	make_core core env LD_PRELOAD="$TMP/spans.so" \
		GLIBC_TUNABLES=glibc.pthread.rseq="$2" \
		INSIDE="$TMP/truth.txt,$1,11" "$workerd" || return 1
	both_reports 0 &&
	"$SRC/tests/truth/spans_compare" truth.txt blocks.json report.json \
		gtcmalloc $([ "$1" = many ] && echo 2 || echo 0) tagged
}

ok "build" $CC -O1 -shared -fPIC -Dmain=inside_main -o spans.so \
	"$SRC/tests/truth/spans.c" "$SRC/tests/truth/inside.c" -pthread -ldl
[ -e spans.so ] || finish
ok "thread caches: many" whole many 1
ok "thread caches: large" whole large 1
ok "slabs: many" whole many 0
ok "slabs: empty" whole empty 0
finish
