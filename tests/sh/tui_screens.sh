# SPDX-License-Identifier: MIT
# Screens of the browser as they are wanted, from a fixture: every view in two
# sizes, with UTF-8 and without.  tests/run --accept writes them anew.
. "$SRC/tests/sh/tap"

xz -dc "$FIXTURES/threads/core.xz" >/dev/null 2>&1 || skip_all "no xz"

keys() {
	cat <<-END
	:screen overview
	2
	:screen arenas
	3
	:screen types
	4
	:screen blocks
	:0x7f2798000c40<Enter>
	<Enter>
	:screen block
	5
	:screen map
	<Tab><Enter>
	:screen picture
	z+
	:screen picture magnified, what is in the file
	6
	:screen retainers
	7
	:screen threads
	8
	:screen findings
	3i
	:screen columns
	?
	:screen help
	END
}
keys >keys

# screens SIZE [OPTION...]
screens() {
	size=$1
	shift
	"$HEAPCORE" tui -q --no-files --script="${script-keys}" --size="$size" \
		"$@" "$FIXTURES/threads/core.xz"
}
# Block elements and lines as they are without UTF-8.
without_utf8() {
	sed 's/─/-/g; s/│/|/g; s/░/-/g; s/▒/+/g; s/▓/*/g; s/█/#/g; s/·/./g'
}
wanted() {
	[ ! "${ACCEPT-}" ] || cp "$1" "$SRC/tests/tui/threads-$1"
	diff "$SRC/tests/tui/threads-$1" "$1"
}
# Each screen has its lines, and none is longer than it is wide.
bounded() {
	awk -v w="${2%x*}" -v h="${2#*x}" '
		/^== / { if (n++ && lines != h) bad = 1; lines = 0; next }
		{ lines++; if (length > w) bad = 1 }
		END { exit bad || lines != h || n != 13 }' "$1"
}
for size in 80x24 120x40; do
	screens "$size" >"$size"
	ok "$size: every view is as wanted" wanted "$size"
	ok "$size: no line is longer, none is missing" bounded "$size" "$size"
	LC_ALL=C.UTF-8 screens "$size" >utf8
	without_utf8 <utf8 >plain
	ok "$size: with UTF-8 only the glyphs differ" cmp plain "$size"
	ok "$size: and there are some" grep -q '│\|─' utf8
	LC_ALL=C.UTF-8 screens "$size" --ascii >plain
	ok "$size: --ascii has none" cmp plain "$size"
	NO_COLOR=1 screens "$size" --color=always >plain
	ok "$size: without colours the same" cmp plain "$size"
done

# However the screen got its size, it shows the same.
awk 'BEGIN {
	srand(2)
	for (i = 0; i < 60; i++)
		printf ":size %dx%d\n", 1 + rand() * 200, 1 + rand() * 60
	print ":size 20x5\n:size 80x24"
}' >storm
while IFS= read -r line; do
	[ "${line#:screen}" = "$line" ] || cat storm
	printf '%s\n' "$line"
done <keys >stormy
script=stormy screens 80x24 >after
ok "after a storm of sizes the same" cmp after 80x24

# What each cell is.
sed 's/^:screen/:roles/' keys >roles-keys
script=roles-keys screens 80x24 >roles
roles() {
	awk '
		/^== / { line = 0; screens++; next }
		{ line++ }
		line == 1 && !/^b+$/ { print "title", screens; bad = 1 }
		line == 24 && !/^b+$/ { print "foot", screens; bad = 1 }
		line == 23 && !/^d/ { print "rule", screens; bad = 1 }
		line == 2 && !/h/ { print "view", screens; bad = 1 }
		/c/ { cursors++ }
		END { exit bad || cursors != 13 }' roles
}
ok "each screen has title, rule, foot, view and one cursor" roles
ok "bars are of their own role" grep -q '^[.c]*g\+[.]*$' roles
finish
