# SPDX-License-Identifier: MIT
# Types by debug information, against programs that know their own.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

need_cores
need python3
: "${CXX:=g++}"
truth=$SRC/tests/truth
export DEBUGINFOD_URLS=

# typed NAME OTHERS COMPILER SOURCE OPTION...: built so, all types are right.
typed() {
	name=$1 others=$2 compiler=$3 source=$4
	shift 4
	"$compiler" "$@" -o "$name" "$truth/$source" &&
		make_core "$name.core" "$TMP/$name" && blocks "$name.core" \
		$hints && mv blocks.json "$name.blocks" || return
	grep '^T ' dump.log >"$name.truth"
	"$truth/typed" "$name.truth" "$name.blocks" "$others"
}

hints="--hints=$truth/types.hints"
ok "C, with hints" typed c 0 "$CC" types.c -g -O1
ok "C, DWARF 4 with type units" typed units 0 "$CC" types.c -g -O0 \
	-gdwarf-4 -fdebug-types-section
if [ "$(uname -m)" = x86_64 ] && echo 'int main(void) { return 0; }' |
	$CC -m32 -x c -o try - 2>/dev/null; then
	ok "C, 32-bit" typed small 0 "$CC" types.c -g -O1 -m32
else
	skip "C, 32-bit" "no 32-bit C library"
fi
hints=
# The library's pool for exceptions has no type without its debug file.
if command -v "$CXX" >/dev/null; then
	ok "C++, libstdc++" typed cc 1 "$CXX" types.cc -std=c++17 -g -O1
else
	skip "C++, libstdc++" "no $CXX"
fi
cat >try.cc <<'END'
#include <map>
int main() { return std::map<int, int>().size(); }
END
if clang++ -stdlib=libc++ -o try try.cc 2>/dev/null; then
	ok "C++, libc++" typed libcxx 1 clang++ types.cc -std=c++17 -g -O0 \
		-stdlib=libc++
else
	skip "C++, libc++" "no clang++ with libc++"
fi

# A line made wrong must be noticed, and a name of one of two namespaces.
noticed() {
	for change in 's/ =leaf$/ =tree/' 's/ =struct leaf$/ =struct tree/'; do
		sed "$change" c.truth >wrong.truth
		cmp -s c.truth wrong.truth && continue
		! "$truth/typed" wrong.truth c.blocks || return 1
		return 0
	done
	return 1
}
ok "wrong truth is noticed" noticed

without_hints() {
	"$HEAPCORE" analyze -q --json --only=types c.core >types.json &&
		! grep -q '"known_by": *"hint"' types.json &&
		! grep -q '"name": *"job"' types.json
}
ok "without hints, what they tell is not known" without_hints

# The program gave its trees a depth, and the root 6.
members() {
	at=$(sed -n 's/^T \(0x[0-9a-f]*\) =struct tree$/\1/p' c.truth | head -1)
	"$HEAPCORE" analyze -q --at="$at" c.core >at.txt && cat at.txt &&
		grep -Eq '^  of type +tree$' at.txt &&
		grep -Eq '^  left +0 +0x[0-9a-f]+ +tree' at.txt &&
		grep -Eq '^  leaf +16 +0x[0-9a-f]+ +leaf' at.txt &&
		grep -Eq '^  depth +24 +6 ' at.txt &&
		"$HEAPCORE" analyze -q --redact --at="$at" c.core >at.txt &&
		grep -Eq '^  depth +24' at.txt &&
		! grep -Eq 'left.*0x' at.txt &&
		"$HEAPCORE" analyze -q --json --at="$at" c.core >at.json &&
		python3 - at.json <<-'END'
			import json, sys
			left = json.load(open(sys.argv[1]))['members'][0]
			assert left.pop('value').startswith('0x')
			assert left == {'name': 'left', 'offset': 0,
			                'leads_to': 'tree', 'type': 'tree *'}
		END
}
ok "members and their values" members

# Keys of a std::map are what they are declared as, printable or not.
keys() {
	"$CXX" -g -O0 -o keys "$truth/keys.cc" &&
		make_core keys.core "$TMP/keys" || return 1
	for of in map list; do
		at=$(sed -n "s/^TRUTH $of //p" dump.log)
		"$HEAPCORE" analyze -q --at="$at" keys.core >$of.txt ||
			return 1
		cat $of.txt
	done
	grep -Eq '^  _M_storage.first +32 +1094861636 ' map.txt &&
		grep -Eq '^  _M_storage.second +36 +-1162233672 ' map.txt &&
		grep -Eq '^  32 .* 1094861636, -1162233672$' map.txt &&
		grep -Eq '^  _M_storage +16 +7017280452245743464 ' list.txt &&
		grep -Eq '^  16 .* 7017280452245743464$' list.txt
}
# What a vector is of, and what it leads to; the core of the case before.
accumulations() {
	"$HEAPCORE" analyze -q --only=retainers keys.core >text &&
		"$HEAPCORE" analyze -q --json --only=retainers keys.core \
			>json || return 1
	sed -n '/^ACC/,$p' text
	grep -Eq '^  thing \* \[\] +1001 .*  things in keys$' text &&
		grep -Eq '"type": "thing \* \[\]", "holds": "thing"' json
}
if command -v "$CXX" >/dev/null; then
	ok "numbers that look like texts" keys
	ok "what much comes together in" accumulations
else
	skip "numbers that look like texts" "no $CXX"
	skip "what much comes together in" "no $CXX"
fi

# says TEXT COMMAND...: on stderr.
says() {
	text=$1
	shift
	"$@" >out 2>err || [ $? = 3 ] || return
	cat err
	grep -q -e "$text" err
}
echo 'leaf.no -> tree' >other.hints
ok "a hint for another program" says 'have: 1, the first in line 1' \
	"$HEAPCORE" analyze --only=types --hints=other.hints c.core
refused() {
	! "$HEAPCORE" analyze --only=types --hints="$1" c.core 2>err &&
		grep -q "line $2: .*$3" err
}
# Each with what is said of it.
none() {
	while IFS='	' read -r hint what; do
		printf '# one\n%s\n' "$hint" >bad.hints
		refused bad.hints 2 "$what" || { echo "$hint"; cat err; return 1; }
	done <<-'END'
		leaf.v -> tree when	no condition behind
		leaf.v -> tree when which	a condition is
		leaf.v -> tree when which = two	ends with a number
		leaf.v	a hint is
		leaf -> tree	is missing before
		leaf.v ->	no type behind
		leaf.v -> tree [n	without
		leaf.v -> tree []	a member that holds
		leaf.v -> tree + leaf	can only be text
		leaf.v..x -> tree	is missing before
		a.b -> c when d=1 and d=2 and d=3 and d=4 and d=5	more than 4
	END
}
ok "hints that are none" none

# ---- files that lie ----

cat >lies.c <<'END'
#include <stdlib.h>
void *root[64];
int main(void)
{
	for (int i = 0; i < 64; i++) {
		root[i] = malloc(40);
		*(void **)root[i] = *((void **)root[i] + 1) = root[i / 2];
	}
	abort();
}
END
lies() {
	"$CC" -O0 -fno-builtin -no-pie -o lies lies.c "$truth/lies.s" &&
		make_core lies.core "$TMP/lies" &&
		says "entries of debug information that make no sense: [1-9]" \
		"$HEAPCORE" analyze --only=types lies.core
}
ok "types that lead to themselves" lies

# So many types that their table moves while an array of three is looked at.
awk 'BEGIN {
	print "#include <stdlib.h>"
	for (i = 0; i < 1500; i++)
		printf "struct b%d { struct b%d *q; int n; };" \
			"struct { struct b%d ******f; struct b%d *p; }" \
			" x%d[3];\n", i, i, i, i, i
	print "int main(void) {"
	for (i = 0; i < 1500; i++)
		printf "x%d[2].p = calloc(1, sizeof(*x%d->p));\n", i, i
	print "abort(); }"
}' >many.c
many() {
	"$CC" -g -O0 -o many many.c && make_core many.core "$TMP/many" ||
		return
	# What is read of freed memory is not what was there.
	MALLOC_PERTURB_=165 MALLOC_MMAP_THRESHOLD_=1000000000 "$HEAPCORE" \
		analyze -q --only=types --json many.core |
		jq -e '[.types[] | select(.known_by == "dwarf")] |
			length == 1500'
}
ok "many types" many

# Arrays without a bound at the end of each other, and a large block.
awk 'BEGIN {
	print "#include <stdlib.h>\nstruct s20 { void *p; };"
	for (i = 19; i >= 0; i--)
		printf "struct s%d { void *p; struct s%d a[0]; };\n", i, i + 1
	print "struct s0 *all;"
	print "int main(void) { all = calloc(1, 4 << 20); abort(); }"
}' >nested.c
nested() {
	"$CC" -g -O0 -o nested nested.c &&
		make_core nested.core "$TMP/nested" &&
		timeout 600 "$HEAPCORE" analyze --only=types nested.core
}
ok "open arrays in open arrays" nested

# A debug file beside the program, as it is, of another build, and cut off.
apart() {
	"$CC" -g -O1 -o apart "$truth/types.c" &&
		objcopy --only-keep-debug apart apart.debug && strip -g apart &&
		objcopy --add-gnu-debuglink=apart.debug apart &&
		make_core apart.core "$TMP/apart" && blocks apart.core &&
		grep '^T ' dump.log | grep -v 'pair' >apart.truth &&
		grep -q '"type":"bucket","known_by":"dwarf"' blocks.json
}
ok "a debug file beside the program" apart
# In a --debug-dir itself, by the link or, without one, by the name.
in_folder() {
	mkdir flat && mv apart.debug flat || return
	"$HEAPCORE" analyze -q --only=types apart.core >out
	! grep -q bucket out && "$HEAPCORE" analyze -q --only=types \
		--debug-dir=flat apart.core >out && grep -q bucket out &&
		"$CC" -g -O1 -Wl,--build-id -o named "$truth/types.c" &&
		objcopy --only-keep-debug named flat/named.debug &&
		strip -g named && make_core named.core "$TMP/named" &&
		"$HEAPCORE" analyze -q --only=types --debug-dir=flat \
			named.core >out && grep -q bucket out
	status=$?
	mv flat/apart.debug .
	return $status
}
ok "debug files in a folder, without more" in_folder
other_build() {
	"$CC" -g -O0 -o other "$truth/types.c" &&
		objcopy --only-keep-debug other apart.debug &&
		says "another build id: not used" "$HEAPCORE" analyze \
		--only=types apart.core && ! grep -q bucket out
}
ok "one of another build" other_build
cut_off() {
	"$CC" -g -O1 -o cut "$truth/types.c" &&
		objcopy --only-keep-debug cut whole && strip -g cut &&
		cp whole cut.debug &&
		objcopy --add-gnu-debuglink=cut.debug cut &&
		make_core cut.core "$TMP/cut" || return
	size=$(wc -c <whole)
	for part in 5 20 50 80 95; do
		head -c $((size * part / 100)) whole >cut.debug
		"$HEAPCORE" analyze --only=types cut.core >out 2>err ||
			[ $? = 3 ] || return
		grep -q 'cut.debug' err || { echo "$part %"; return 1; }
	done
}
ok "one that is cut off" cut_off
in_pieces() {
	"$CC" -g -O1 -gsplit-dwarf -c -o split.o "$truth/types.c" &&
		"$CC" -o split split.o && make_core split.core "$TMP/split" &&
		says "types in .dwo files, which are not read: 1" \
		"$HEAPCORE" analyze --only=types split.core
}
ok "split units are told" in_pieces
shared() {
	for f in share share2; do
		"$CC" -g -O1 -o $f "$truth/types.c" || return
	done
	dwz -m shared.debug share share2 && make_core share.core "$TMP/share" &&
		blocks share.core && grep '^T ' dump.log >share.truth &&
		grep -q '"type":"bucket","known_by":"dwarf"' blocks.json
}
if command -v dwz >/dev/null; then
	ok "what dwz moved to another file" shared
else
	skip "what dwz moved to another file" "no dwz"
fi
# Types that are settled soon, and one that only the end of a long array says.
near() {
	cat >near.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		struct first { struct first *next; char text[40]; };
		struct last { struct last *next; long numbers[9]; };
		struct both { struct first *one; struct last *other; };
		enum { N = 5000000 };
		struct first *first;
		struct both **all;
		int main(void)
		{
			first = calloc(1, sizeof(*first));
			first->next = calloc(1, sizeof(*first));
			all = calloc(N, sizeof(*all));
			for (int i = 0; i < N; i++)
				all[i] = i ? all[0] : calloc(1, sizeof(**all));
			all[N - 1] = calloc(1, sizeof(**all));
			all[N - 1]->other = calloc(1, sizeof(struct last));
			printf("AT %p\nAT %p\nAT %p\n", (void *)first,
			       (void *)all[N - 1], (void *)all[N - 1]->other);
			fflush(stdout);
			abort();
		}
	END
	"$CC" -g -O1 -o near near.c && make_core near.core "$TMP/near" &&
		blocks near.core || return
	for at in $(sed -n 's/^AT //p' dump.log); do
		type=$(sed -n 's/.*"address":"'$at'".*"type":"\([^"]*\)".*/\1/p' \
			blocks.json)
		"$HEAPCORE" analyze -q --at="$at" near.core >at.txt
		echo "$at: $type"
		[ "$type" ] && grep -q "of type  *$type\$" at.txt ||
			{ cat at.txt; return 1; }
	done
}
ok "one block has the type that it has among all" near

json_too() {
	"$HEAPCORE" analyze -q --json --only=types,findings cut.core |
		grep -q '"code": *"debug-file"'
}
ok "as a finding in JSON" json_too

finish
