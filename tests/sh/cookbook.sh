# SPDX-License-Identifier: MIT
# docs/cookbook.md: each command is run on the core that the comment before it
# names, and each line shown is in what it prints, but for numbers and widths.
# The first report of README.md is what the demonstration prints.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
need_cores
cd "$TMP"
cook=$SRC/docs/cookbook.md

# make_input PROGRAM [ARGUMENT]: core.1234 of a program of tests/truth.
make_input() {
	source=$SRC/tests/truth/$1
	rm -f core.1234
	case $1 in
	*.cc)	command -v g++ >/dev/null || return
		[ -x "${1%.cc}" ] || g++ -s -O1 -w -pthread -o "${1%.cc}" \
			"$source" || return
		rm -f done
		(ulimit -c unlimited && exec "./${1%.cc}" "$TMP/done") \
			>/dev/null 2>&1 &
		while [ ! -e done ]; do
			sleep 0.1
			kill -0 $! || return
		done
		core_of core.1234 $! ABRT ;;
	*)	[ -x "$1" ] || "$CC" -g -O1 -w -pthread -o "$1" "$source.c" ||
			return
		make_core core.1234 "$TMP/$1" ${2+"$2"} ;;
	esac
}
make_trace() {
	printf '%s\n' '#include <stdlib.h>' '#include <string.h>' \
		'char *keep[4000];' 'int main(void) {' \
		'for (int i = 0; i < 4000; i++)' \
		'keep[i] = memset(malloc(i % 7 * 300 + 8), 1, 8); }' >appd.c
	"$CC" -O1 -w -o appd appd.c &&
		"$HEAPCORE" record -q -o appd.trace -- ./appd
}

# make_recorded PROGRAM: its trace, and the core of the same run.
make_recorded() {
	[ "$core_writer" = kernel ] && make_input "$1" &&
		make_core core.1234 "$HEAPCORE" record -q \
			-o "$TMP/appd.trace" -- "$TMP/$1"
}

# plain: lines without numbers, addresses, bars and the widths of columns.
plain() {
	sed -E 's/(0x[0-9a-f]+|[+-]?[0-9]+(\.[0-9]+)?[KMG%]?)/N/g; s/#+$//' |
		sed -E 's/N( ?N)*/N/g; s/ +/ /g; s/ $//; /^(\.\.\.)?$/d'
}
shows() {
	PATH=$(dirname "$HEAPCORE"):$PATH
	status=0
	sh -c "$1" >out 2>err || status=$?
	[ "$status" = 0 ] || [ "$status" = 3 ] || { cat err; return 1; }
	plain <out >have
	plain <shown >want
	[ -s want ] && ! grep -nvxF -f have want || { cat out; return 1; }
}

# One block after the other: a comment, a fence, a command, lines.
awk '/^<!-- / { gsub(/^<!-- | -->$/, ""); input = $0 }
	/^```/ { inside = !inside; if (inside && !input) exit 1;
		 if (inside) n++; else input = ""; next }
	inside && /^\$ / { print input >("input." n)
			   print substr($0, 3) >("command." n); next }
	inside { print >("lines." n) }
	END { print n >"blocks" }' "$cook" || echo 0 >blocks
n=1
while [ $n -le "$(cat blocks)" ]; do
	read -r program argument <"input.$n" || :
	case $program in
	trace) make_trace >log 2>&1 ;;
	recorded) make_recorded "$argument" >log 2>&1 ;;
	*) make_input "$program" ${argument:+"$argument"} >log 2>&1 ;;
	esac || { skip "a core of $program" "cannot be made here"; n=$((n + 1)); continue; }
	cp "lines.$n" shown
	ok "$program: $(head -1 "command.$n" | cut -c 1-50)" shows "$(cat "command.$n")"
	n=$((n + 1))
done
ok "there are some" [ $n -gt 8 ]

# What is not shown is at least understood: options and sections are there.
understood() {
	while read -r line; do
		set -- $line
		[ "$1" = heapcore ] || continue
		for word; do
			case $word in
			--*) "$HEAPCORE" "$2" --help |
				grep -q -e "${word%%=*}" ||
				{ echo "$2 has no $word"; return 1; } ;;
			esac
		done
	done <commands
}
sed -n 's/^    \(heapcore .*\)/\1/p' "$cook" >commands
ok "the other commands' options are there" understood

# said: headings, and in one line what stands out and the advice.
said() {
	grep -oE '^[A-Z][A-Z]+( [A-Z]+)*' "$1" | grep -v LEAKED
	sed -n '/^WHAT STANDS OUT/,/^WHAT THE BLOCKS/p' "$1" | plain |
		tr -s ' \n' '  ' | sed -E 's/N( ?N)*/N/g; s/WHAT THE B.*//'
}
# same_demo PART: headings, or all, are those of README.md.
same_demo() {
	case $1 in headings) last=5 ;; *) last='$' ;; esac
	said shown | sed -n "1,${last}p" >want
	said printed | sed -n "1,${last}p" >have
	[ "$(wc -l <want)" -ge 5 ] && diff want have
}
sed -n '/^\$ heapcore analyze core.python3/,/^```/p' "$SRC/README.md" >shown
if command -v python3 >/dev/null &&
	(cd "$(dirname "$HEAPCORE")" && "$SRC/tests/demo") >printed 2>log; then
	ok "README.md: headings are the program's" same_demo headings
	case $(python3 -V) in
	*' 3.11.'*) ok "README.md: sentences too" same_demo all ;;
	*) skip "README.md: sentences too" "another Python says other things" ;;
	esac
else
	skip "README.md: its report" "no python3, or no core of it"
fi

finish
