# SPDX-License-Identifier: MIT
# What valgrind calls definitely or indirectly lost is leaked here, too, by
# programs of ours and real ones.  VALGRIND_ALL=1: all of these.
. "$SRC/tests/sh/tap"

for program in valgrind gdb python3; do
	need $program
done
[ "$(uname -m)" = x86_64 ] || skip_all "sizes of chunks are those of x86-64"
PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0 PYTHONHASHSEED=0
export PERL_HASH_SEED PERL_PERTURB_KEYS PYTHONHASHSEED

# as_valgrind EXTRA COMMAND...: at its exit, before what the C library frees.
as_valgrind() {
	extra=$1
	shift
	rm -f core
	valgrind --leak-check=full --show-leak-kinds=definite,indirect \
		--leak-resolution=high --num-callers=40 \
		--run-libc-freeres=no --run-cxx-freeres=no \
		--child-silent-after-fork=yes --log-file=valgrind.log \
		"$@" >/dev/null 2>&1 </dev/null || return 1
	gdb -batch -nx -ex 'set startup-with-shell off' \
		-ex 'catch syscall exit_group' -ex run \
		-ex 'gcore core' -ex kill --args "$@" >gdb.log 2>&1 </dev/null
	[ -s core ] || { cat gdb.log; return 1; }
	"$HEAPCORE" analyze -q --json --blocks --leaks --filter=leaked core \
		>leaked.json || [ $? = 3 ] || return 1
	"$SRC/tests/truth/as_valgrind" valgrind.log leaked.json "$extra"
}

$CC -std=gnu11 -O1 -g -fno-builtin -o loses "$SRC/tests/truth/loses.c" -pthread
for kind in single list tree ring mixed; do
	case ${VALGRIND_ALL-}$kind in
	1* | single | mixed)
		ok "what loses $kind loses" as_valgrind 0 "$TMP/loses" $kind
	esac
done

# real EXTRA PROGRAM ARGUMENT...
real() {
	path=$(command -v "$2") || { skip "$2" "no $2"; return; }
	extra=$1 name=$2
	shift 2
	ok "$name" as_valgrind "$extra" "$path" "$@"
}
# How many more may be called leaked, then the command.
real 0 perl -e 1
if [ "${VALGRIND_ALL-}" ]; then
	real 0 git -C "$SRC" log -1 --format=%h
	real 0 bash -c 'x=(1 2 3); f() { local y=$1; }; f 1'
	real 0 sqlite3 :memory: 'create table t(a); insert into t values(1)'
	real 0 make --version
	real 0 jq -n '[1, 2]'
	real 0 php -r 'echo 1;'
	real 0 openssl version
	real 0 g++ --version
fi

finish
