# SPDX-License-Identifier: MIT
# Names, lines and inlined functions of a trace, by debug information: in the
# program, in a file of its own, and when both are gone.
. "$SRC/tests/sh/tap"
need jq

cat >"$TMP/prog.cc" <<'END'
#include <cstdlib>
#include <vector>

namespace app {

static inline __attribute__((always_inline)) void *get(int n)
{
	return malloc(n);	/* here */
}

__attribute__((noinline)) void *parse(int n)
{
	return get(n);		/* parse calls */
}

template <class T> __attribute__((noinline)) void fill(std::vector<T> &v)
{
	v.reserve(1000);	/* fill calls */
}

}

static void *volatile keep[100];

int main()
{
	static std::vector<long> v;

	for (int i = 0; i < 100; i++)
		keep[i] = app::parse(100);
	app::fill(v);
	_Exit(0);
}
END
cd "$TMP"
cxx=${CXX:-g++}
$cxx -O1 -g -o prog prog.cc 2>err || skip_all "no compiler of C++"
"$HEAPCORE" record -q -o prog.trace -- ./prog || skip_all "cannot record"
line() {
	grep -n "/\* $1 \*/" prog.cc | cut -d: -f1
}
here=$(line here)
calls=$(line 'parse calls')
sites() {
	"$HEAPCORE" replay --rate=1 --only=sites --json "$@" prog.trace |
		jq -r '.sites[] | select(.exact_bytes == 10000).site'
}
is() {
	[ "$1" = "$2" ] || { echo "$1, not $2"; return 1; }
}

ok "the innermost is the inlined one" is "$(sites)" \
	"app::get  prog.cc:$here"
ok "and its caller is next" is "$(sites --depth=3)" \
	"app::get < app::parse < main  prog.cc:$here"
"$HEAPCORE" replay --rate=1 --only=functions --json prog.trace >f.json
held() {
	is "$(jq -r ".functions[] | select(.function == \"$1\") |
		[.exact_bytes, .own_exact_bytes] | join(\" \")" f.json)" "$2"
}
ok "own bytes are of the inlined one" held app::get '10000 10000'
ok "its caller holds them" held app::parse '10000 0'
ok "a template has a name that can be read" held 'app::fill<long>' '8000 0'

"$HEAPCORE" replay -q --rate=1 --metric=allocated --folded=folded \
	--speedscope=s.json --massif=massif --pprof=p.gz prog.trace >text
ok "folded" grep -q ';main;app::parse;app::get 10000$' folded
ok "speedscope has files and lines" is "$(jq -r '.shared.frames[] |
	select(.name == "app::get" or .name == "app::parse") |
	"\(.name) \(.file | sub(".*/"; "")) \(.line)"' s.json | sort)" \
	"$(printf 'app::get prog.cc %s\napp::parse prog.cc %s' "$here" \
		"$calls")"
ok "massif has files and lines" grep -q ": app::get (.*prog.cc:$here)$" \
	massif

# Of files, what a report that is redacted has: last parts.
"$HEAPCORE" replay -q --rate=1 --redact --metric=allocated \
	--speedscope=red.json --massif=red.massif --pprof=red.gz prog.trace \
	>text
no_folders() {
	gzip -dc red.gz >red.pb && grep -q prog.cc red.pb &&
		grep -q prog.cc red.massif && grep -q prog.cc red.json &&
		grep -q "$PWD" s.json &&
		! grep -F "$PWD" red.pb red.massif red.json &&
		! grep -aE '/(usr|lib)' red.pb red.massif red.json
}
ok "redacted exports have no folders" no_folders

# One location of the profile has both functions: field 4 of it, twice.
ok "pprof: a location with two lines" python3 - "$here" "$calls" <<'END'
import gzip, sys

def fields(b):
    i = 0
    def varint():
        nonlocal i
        v = shift = 0
        while True:
            v |= (b[i] & 127) << shift
            shift += 7
            i += 1
            if not b[i - 1] & 128:
                return v
    while i < len(b):
        tag = varint()
        n = varint()
        if tag & 7 == 2:
            yield tag >> 3, b[i:i + n]
            i += n
        else:
            yield tag >> 3, n

profile = list(fields(gzip.open("p.gz").read()))
strings = [v.decode() for k, v in profile if k == 6]
names = {}
for k, v in profile:
    if k == 5:
        f = dict(fields(v))
        names[f[1]] = strings[f[2]]
got = []
ids = []
for k, v in profile:
    if k == 4:
        lines = [dict(fields(x)) for j, x in fields(v) if j == 4]
        ids.append(dict(fields(v))[1])
        got.append([(names[x[1]], x.get(2, 0)) for x in lines])
used = set()
for k, v in profile:
    if k == 2:
        b = dict(fields(v))[1]
        i = 0
        while i < len(b):
            n = shift = 0
            while b[i] & 128:
                n |= (b[i] & 127) << shift
                shift += 7
                i += 1
            used.add(n | b[i] << shift)
            i += 1
want = [("app::get", int(sys.argv[1])), ("app::parse", int(sys.argv[2]))]
assert want in got, got
assert used <= set(ids), used - set(ids)
END

# The symbol of what is called by address has that of its PLT, and no size.
cat >plt.c <<'END'
#include <stdlib.h>
#include <string.h>

int (*volatile compare)(const char *, const char *);
void *volatile kept;

int main(void)
{
	compare = strcmp;
	kept = malloc(70000);
	return compare("a", "a");
}
END
${CC:-cc} -O1 -no-pie -fno-pie -s -o plt plt.c
"$HEAPCORE" record -q -o plt.trace -- ./plt
imported() {
	"$HEAPCORE" replay --exact --only=sites --json plt.trace |
		jq -e '.sites | length == 1 and
			(.[0].site | startswith("plt+0x"))'
}
ok "an imported symbol names no code" imported

# Of some units the table of ranges is not there: clang writes none.
two_units() {
	cat >one.c <<-'END'
		#include <stdlib.h>
		void *two(int n);
		void *volatile kept[2];
		int main(void)
		{
			kept[0] = malloc(3000);	/* one */
			kept[1] = two(5000);
			return 0;
		}
	END
	cat >two.c <<-'END'
		#include <stdlib.h>
		void *two(int n)
		{
			return malloc(n + 1);	/* two */
		}
	END
	$CC -O0 -g -c one.c && $CC -O0 -g -c two.c &&
	objcopy -R .debug_aranges -R .rela.debug_aranges two.o &&
	$CC -o units one.o two.o &&
	"$HEAPCORE" record -q -o units.trace -- ./units &&
	"$HEAPCORE" replay --exact --only=sites --json units.trace |
		jq -r '.sites[].site' | grep "^two  two.c:4$\|^main  one.c:6$" |
		sort >got
	is "$(cat got)" "$(printf 'main  one.c:6\ntwo  two.c:4')"
}

if command -v objcopy >/dev/null; then
	ok "a unit that the table of ranges lacks" two_units
	mkdir -p "debug$PWD"
	objcopy --only-keep-debug prog "debug$PWD/prog.debug"
	objcopy --strip-all --add-gnu-debuglink="debug$PWD/prog.debug" prog
	ok "a file of its own" is "$(sites --debug-dir="$PWD/debug")" \
		"app::get  prog.cc:$here"
	packed=debug$PWD/prog.debug
	objcopy --compress-debug-sections=zlib "$packed"
	ok "one that is compressed" is "$(sites --debug-dir="$PWD/debug")" \
		"app::get  prog.cc:$here"
	# By build id, since what is damaged has another checksum.
	id=$(LC_ALL=C readelf -n prog | sed -n 's/.*Build ID: //p')
	by_id=ids/.build-id/${id%"${id#??}"}
	mkdir -p "$by_id"
	cp "$packed" "$by_id/${id#??}.debug"
	# Bytes of the stream of .debug_info: no name, or the right one.
	damaged() {
		at=$((0x$(readelf -SW "$packed" | sed -n \
			's/.* \.debug_info *[A-Z]* *[0-9a-f]* \([0-9a-f]*\) .*/\1/p')))
		for i in 3 26 60 200 500 900; do
			cp "$packed" "$by_id/${id#??}.debug"
			printf '\251' | dd of="$by_id/${id#??}.debug" bs=1 \
				seek=$((at + i)) conv=notrunc 2>err
			case $(sites --debug-dir="$PWD/ids") in
			"app::get  prog.cc:$here" | prog+0x*) ;;
			*) return 1 ;;
			esac
		done
		cp "$packed" "$by_id/${id#??}.debug"
		is "$(sites --debug-dir="$PWD/ids")" "app::get  prog.cc:$here"
	}
	if [ "$id" ]; then
		ok "damaged, it names nothing else" damaged
	else
		skip "damaged, it names nothing else" "no build id"
	fi
	ok "no names at all" sh -c '"$HEAPCORE" replay --rate=1 --only=sites \
		--json prog.trace | grep -q "\"site\": \"prog+0x"'
	mkdir -p "root$PWD"
	$cxx -O1 -g -o "root$PWD/prog" prog.cc
	ok "below a sysroot" is "$(sites --sysroot="$PWD/root")" \
		"app::get  prog.cc:$here"
fi
finish
