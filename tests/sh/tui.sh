# SPDX-License-Identifier: MIT
# The browser: keys from a script, screens as text.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

. "$SRC/tests/sh/tui_prog"

ok "a larger one" make_core core.2 "$TMP/prog" many 50000
core=core.1

# tui KEYS [OPTION...]: what a script prints.
tui() {
	printf '%b' "$1" >keys
	shift
	"$HEAPCORE" tui -q --script=keys "$@" "$core"
}

# shows KEYS RE: the screen after these keys has a line like this.
shows() {
	tui "$1\n:screen it\n" >screen || return 1
	grep -qE -e "$2" screen && return
	echo "no $2 in"
	cat screen
	return 1
}

ok "it opens with where the memory is" \
	shows '' '^ > in use by the program  '
digit=1
for word in 'WHERE THE MEMORY' 'SIZE CLASSES' 'WHAT THE BLOCKS ARE' \
	'^ ADDRESS .*SIZE' 'MAPPINGS' 'WHO KEEPS IT' 'THREADS' 'LEAKED'; do
	ok "view $digit" shows "$digit" "$word"
	digit=$((digit + 1))
done

# A newcomer knows arrows, Enter and ?, and nothing else.
newcomer() {
	n=$(printf '%s' "$1" | sed 's/<\(Up\|Down\|Enter\)>/?/g')
	[ "${#n}" -le 8 ] && [ -z "$(printf '%s' "$n" | tr -d '?')" ] && return
	echo "$1: ${#n} keys"
	return 1
}
retained='?<Up><Up><Up><Enter>'
leaked='?<Up><Enter>'
ok "a newcomer: keys to who retains" newcomer "$retained"
ok "a newcomer: keys to what is leaked" newcomer "$leaked"
core=core.2
ok "a newcomer: help has a cursor" shows '?<Up><Up><Up>' \
	'^ > 6 Retainers  *who keeps'
ok "a newcomer: g_sessions retains 8.8 MB" shows "$retained" \
	'^ > . g_sessions in prog  *100000  *8593.8K'
ok "which are 8800000 bytes" shows "${retained}u" \
	'^ > . g_sessions in prog  *100000  *8800000 '
ok "a newcomer: 300 unreachable blocks of 336" shows "$leaked" \
	'^ > 336 bytes  *300  *98.4K .* certain'
ok "who is leaked: the blocks" shows "$leaked<Enter>" ' 300 blocks  98.4K$'
core=core.1
ok "a sentence leads to its table" shows '<Tab><Down><Enter>' LEAKED

ok "a variable, and what it points to" \
	shows '6<Enter><Tab><Enter>' 'of type +session$'
ok "one more step, and back to the same row" \
	shows '6<Enter><Tab><Enter><Tab><Tab><Left><Left>' \
	'^ > . g_sessions in'
ok "members of a structure" \
	shows '3<Enter><Enter><Tab>' '^   user  *8  0x[0-9a-f]*  char \[\]'

ok "x: its words alone" shows '3<Enter><Enter>x' '^ > 0  *0x0  0'
ok "x: and no bytes" sh -c '! grep -q "^ BYTES\|ITS MEMBERS" screen'
ok "words: zeros in one row" grep -qx '   16  *0x0  13 words of zeros' screen
ok "words: one that points leads there" shows \
	'3<Enter><Enter>x<Down><Enter>' '^   of type  *char'
ok "words: a text" shows '3<Down><Enter><Enter>x' \
	'^ > 0  *0x[0-9a-f]*  "user000000@mail.example.org"$'
text=$(sed -n 's/.*\(0x[0-9a-f]*\)$/\1/p' screen | head -n 1)
redacted() {
	"$HEAPCORE" analyze -q --at="$text" core.1 | grep -q '"user0' &&
		"$HEAPCORE" analyze -q --redact --at="$text" core.1 >at &&
		[ -s at ] && ! grep 'user0\|words of zeros\|^WORDS' at
}
ok "words: no text with --redact" redacted
ok "x: its bytes" shows '3<Enter><Enter>xx' '^ > 0x[0-9a-f]*  [0-9a-f]{4} '
ok "x: its members" shows '3<Enter><Enter>xxx' '^ > next  *0  0x'
ok "x: all again" shows '3<Enter><Enter>xxxxG' '^ > 0x[0-9a-f]*  [0-9a-f]{4} '

# ---- blocks: as analyze --blocks, row by row ----

"$HEAPCORE" analyze -q --blocks core.1 >blocks
row() {
	sed 's/^ [> ] //; s/ *$//' screen | grep -E '^0x' | cut_row >got
}
# Types are cut to the width of a screen.
cut_row() {
	tr -s ' ' | cut -d ' ' -f 1-5
}
same_rows() {
	[ -s want ] && cmp want got
}
tui '4\n:screen a' >screen
row
sed -n '2,19p' blocks | cut_row >want
ok "blocks: the first of them" same_rows
tui '4G\n:screen a' >screen
row
tail -n 19 blocks | cut_row >want
ok "blocks: the last of them" same_rows
tui '4<PgDn><PgDn><PgDn>G<PgUp><PgUp>g<PgDn>\n:screen a' >screen
row
sed -n '3,21p' blocks | cut_row >want
ok "blocks: pages" same_rows
tui '4s\n:screen a' --size=100x60 >screen
row
sed 1d blocks | cut_row | sort -s -k2,2nr | head -n 54 >want
ok "blocks: sorted by size, equal ones by address" same_rows
tui '4:sort -size<Enter>\n:screen a' --size=100x60 >screen
row
sed 1d blocks | cut_row | sort -s -k2,2n | head -n 54 >want
ok "blocks: the other way" same_rows
tui '4fretained>0<Enter>:sort retained<Enter>\n:screen a' --size=100x60 >screen
row
"$HEAPCORE" analyze -q --blocks --leaks --csv --filter='retained>0' core.1 |
	cut -d , -f 1-2,15 >csv
# Address and size, by what each keeps alive.
awk -F, 'NR == 1 && $3 != "retained" { exit 1 }
	NR > 1 { print $3, $1, $2 }' csv |
	sort -s -k1,1nr | head -n 54 | cut -d ' ' -f 2- >want
cut -d ' ' -f 1-2 got >got2
ok "blocks: sorted by one of ten thousand values" \
	eval '[ -s want ] && cmp want got2'
at=$(sed -n '2000s/ .*//p' blocks)
ok "blocks: an address" shows "4:$at<Enter>" "^ > $at "
ok "blocks: and the last digits of it within" \
	shows "4:${at%?}1<Enter>" "^ > $at "
ok "blocks: a filter" shows '4fsize=336<Enter>' ' 300 blocks  98.4K$'
ok "blocks: nothing matches" shows '4fsize=1<Enter>' 'Nothing matches'
ok "blocks: a wrong filter says so" shows '4fsise=1<Enter>' "unknown key"
ok "search" shows '3/char<Enter>' '^ > char \[\]'
ok "search: a capital counts" shows '3/Char<Enter>' 'no match: Char'
ok "search goes round" shows '3/char<Enter>nn' '^ > char \[\]'
ok "a filter of rows, and without it" \
	shows '3fblocks>1000<Enter><Esc>' '^   (pieces of )?text'
ok "a filter leaves shares what they were" \
	shows '3fblocks<lt>300<Enter>' '^ > zeros  *10  *6080  *0[.]3%'
ok "a filter keeps the order" \
	shows '3:sort -blocks<Enter>fblocks>100<Enter>' '^ > .*  300  '
ok "units" shows '3u' '^ > session  *10000 *1280000 '
ok "bars" sh -c '! grep -q "##" screen'
ok "all columns of a row" shows '3i' '^   object_bytes  *120$'
ok "an unknown key says so" shows '~' 'that key does nothing'

# ---- the picture of a mapping ----

ok "map: Enter draws a mapping" \
	shows '5<Tab><Enter>' 'A CELL IS 4.0K$'
# 3000 bytes of each of the last blocks are used: a full cell.
ok "map: what is in use" shows '5<Tab><Enter>' '^ *[0-9a-f]{12}  [#*]{32}'
cells() {
	shows "5<Tab><Enter>$1" "$2"
}
ok "map: the cell's blocks" cells '<Down><Enter>' \
	'filter: address>=0x[0-9a-f]+ address<0x[0-9a-f]+'
ok "map: magnified" cells '++' 'A CELL IS 1.0K$'
ok "map: and back" cells '++--' 'A CELL IS 4.0K$'
ok "map: residency" cells z '^ in the file: - <25%'
ok "map: arrows move, Backspace leaves" cells '<Left><Right>h<Backspace>' \
	'^ MAPPINGS'

# ---- who keeps what: a tree ----

ok "tree: a root is closed" shows 6 '^ > [+] g_sessions in prog  *20000 '
ok "tree: opened, what it keeps" shows '6+<Down>' \
	'^ >   [+] session 0x[0-9a-f]*  *-  *1718.8K '
ok "tree: closed again" shows '6+-<Down>' '^ > [+] g_'
ok "tree: along what keeps most" shows '6*' \
	'^ {22,24}[+-] session 0x[0-9a-f]*  *-  *171[0-9][.]'
ok "tree: from a branch to what it is of" shows '6+<Down>+<Down>-' \
	'^ >   [+] session'
ok "tree: Enter goes to the block, and back to its row" \
	shows '6+<Down><Enter><Left>' '^ >   [+] session'
# Two variables keep 4000 blocks of 64 bytes, which a table has.
cat >alias.c <<'END'
#include <stdlib.h>
void **g_table, **g_alias;
int main(void)
{
	g_table = g_alias = malloc(4000 * sizeof(void *));
	for (int i = 0; i < 4000; i++)
		g_table[i] = calloc(1, 48);
	abort();
}
END
ok "two variables that share" "$CC" -O1 -g -fno-builtin -o alias alias.c
ok "a core of that" make_core core.3 "$TMP/alias"
core=core.3
ok "tree: what two share has a branch" \
	shows 6 '^ > [+] g_(table|alias), g_(table|alias) in alias  *4001 '
ok "tree: Enter opens it" shows '6<Enter><Down>' \
	'^ >   [+] [^ ].* 0x[0-9a-f]*  *-  *2[0-9]*[.][0-9]K'
ok "tree: and closes it" sh -c 'printf "6<Enter><Enter>\n:screen it\n6\n\
:screen it\n" >keys; "$HEAPCORE" tui -q --script=keys core.3 >both
	awk "/^ > [+] g_/ { n++ } END { exit n != 2 }" both'
core=core.1
ok "tree: its sum stays" shows '6+' '^   total  *20410  *21[0-9]*[.]'
ok "tree: what is open is not sorted" shows '6+s' 'close the tree first'

# ---- wide screens ----

# wide KEYS RE: on a screen that is split.
wide() {
	shows ":size 120x40\n$1" "$2"
}
ok "wide: a row's columns" wide 2 '[|] > name  *glibc main$'
ok "wide: a block and what it holds" wide '3<Enter>' '[|]   next  *0  0x'
ok "wide: its members lead on" \
	wide '3<Enter><Tab><Tab><Down><Enter>' '^   of type  *char'
ok "wide: and back to the list" \
	wide '3<Enter><Tab><Tab><Left><Down>' '^ > 0x.* 128 .*[|]   what it is'
ok "wide: Enter's page of a sentence" wide '<Tab><Down>' '[|] LEAKED'
ok "wide: a picture" wide '5<Tab>' '[|] 0x[0-9a-f]* .* A CELL IS'

# ---- the mouse, which is off until it is asked for ----

mouse() {
	shows ":mouse<Enter>$1" "$2"
}
ok "mouse: off, a click does nothing" shows '<Click 7,10><Again 7,10>' \
	'^ > in use by the program  '
ok "mouse: switched off again" mouse ':mouse<Enter><Click 7,10>' \
	'^ > in use by the program  '
ok "mouse: a click moves the cursor" mouse '3<Click 6,10>' '^ > char '
ok "mouse: on the cursor's row it opens" mouse '3<Click 7,10><Click 7,9>' \
	'^ ADDRESS .*SIZE'
ok "mouse: a double click opens" mouse '3<Click 7,10><Again 7,10>' \
	'^ ADDRESS .*SIZE'
ok "mouse: one on the cursor's row opens once" \
	mouse '3<Click 5,10><Again 5,10>' '^ > 0x[0-9a-f]*  *128  used'
ok "mouse: a heading is no row" mouse '3<Click 4,10>' '^ > session '
ok "mouse: the views" mouse '<Click 2,33>' '[[]4 Blocks[]]'
ok "mouse: a view of the help" mouse '?<Click 7,9>' '[[]3 Types[]]'
ok "mouse: the wheel scrolls" mouse '4<WheelDown><WheelDown><WheelUp>' \
	"^ > $(sed -n 7p blocks | cut -d ' ' -f 1) "
ok "mouse: the pane beside, and a row there" \
	shows ':size 120x40\n:mouse<Enter>2<Click 6,80>' '[|] > mapped_bytes'
ok "mouse: a cell of a picture" mouse \
	'5<Tab><Enter>:<Esc><Click 8,18>' 'in use .*, free'
ok "mouse: no such place" mouse '<Click 900,900><Click 1,1>' WHERE

# ---- what is written ----

# equals FILE SECTION VIEW OPTION...
equals() {
	rm -f "$1"
	tui "$3e$1<Enter>\n:screen it\n" >screen || return 1
	file=$1 section=$2
	shift 3
	"$HEAPCORE" analyze -q --only="$section" "$@" core.1 >want ||
		[ $? = 3 ]
	[ -s want ] && diff want "$file"
}
ok "export: text" equals a.txt types 3 --rows=all
ok "export: CSV" equals a.csv retainers 6 --csv
ok "export: JSON" equals a.json types 3 --json
ok "export: filtered and sorted" equals b.csv types \
	'3:sort -blocks<Enter>:filter blocks>100<Enter>' \
	--csv --sort=-blocks --filter='blocks>100'
ok "export: of two tables the one with the cursor" equals c.csv classes \
	'2<Tab>' --csv
blocks_csv() {
	tui '4fleaked<Enter>ed.csv<Enter>' && "$HEAPCORE" analyze -q --blocks \
		--leaks --csv --filter=leaked core.1 >want &&
		[ "$(wc -l <want)" = 301 ] && cmp want d.csv
}
ok "export: blocks" blocks_csv
echo mine >e.txt
ok "export: no file is overwritten" shows '3ee.txt<Enter>' 'e.txt'
ok "export: which stays" grep -qx mine e.txt

# ---- any size, any key ----

lines() {
	tui ':screen a' --size="$1" | sed 1d | wc -l
}
ok "a screen has its lines" [ "$(lines 120x40)" = 40 ]
# What does not fit is marked, and no number is cut in two.
ok "60 columns: what is cut says so" shows ':size 60x20\n3' \
	'^ WHAT THE BLOCKS ARE .* >$'
ok "60 columns: and no number is cut" sh -c '
	! grep -E "^ (>|  ) .* [0-9][0-9a-fx]*>$" screen'
ok "60 columns: the view has its name" shows ':size 60x20\n3' \
	'^ 1 2[[]3 Types[]]4 5 6 7 8$'
ok "60 columns: keys are whole" shows ':size 60x20\n' \
	'f filter  [?] help  q quit$'
ok "60 columns: title and page are two" shows ':size 60x20\n' \
	'^ heapcore  core.1: .*>  Overview$'
ok "too small is said" shows ':size 20x5' '^make it 60x15$'
storm() {
	awk 'BEGIN {
		srand(1)
		split("4 3 2 6 G g j <PgDn> <Enter> <Left> s S u b / f ? i " \
		      "<Esc> <Tab> <Enter> n 7 8 1 5 <Down> <Up>", k, " ")
		for (i = 0; i < 400; i++) {
			printf ":size %dx%d\n", 1 + rand() * 150, 1 + rand() * 50
			for (j = 0; j < 4; j++)
				printf "%s", k[1 + int(rand() * 27)]
			print "\n:screen " i
		}
	}' >keys
	"$HEAPCORE" tui -q --script=keys core.1 >screens || return 1
	[ "$(grep -c '^== ' screens)" = 400 ]
}
ok "a storm of sizes and keys" storm
narrow() {
	awk '/^== / { n++ } length > 150' screens >long
	[ ! -s long ]
}
ok "no line is longer than a screen" narrow
harmless() {
	for view in 1 2 3 4 5 6 7 8; do
		tui "$view\n:screen a\n<Enter>\n:screen b\nG<Enter>\n:screen c\n"
	done >all || return 1
	tui '4ssize<Enter>fsize>2900<Enter><Enter>\n:screen d\nG\n:screen e' \
		>>all
	[ -s all ] && ! LC_ALL=C grep -n '[^ -~]' all
}
ok "nothing of the process reaches the terminal as it is" harmless

# ---- keys are what help and the manual say ----

"$HEAPCORE" tui -q --script=/dev/stdin --size=80x90 core.1 <<'END' >help
?
:screen help
END
sed -n '/^ MOVE/,/^---/s/^   \([^ ].*\)$/\1/p' help |
	sed 's/   *.*//' | sort >help-keys
sed -n '/^\.Sh KEYS/,/^\.El/s/^\.It //p' "$SRC/man/heapcore-tui.1" |
	sed 's/\\&//; /1 to 9/d' | sort >man-keys
same_keys() {
	[ -s help-keys ] && diff help-keys man-keys
}
ok "the keys of the manual are those of the help" same_keys

# ---- a heap so large that leaks are not looked for at once ----

cat >vast.c <<'END'
#include <stdlib.h>
#include <string.h>

char *g_vast;

int main(void)
{
	g_vast = calloc(1, 600 << 20);	/* never touched */
	for (volatile int i = 0; i < 1024; i++)
		memset(malloc(8000), 'l', 8000);
	abort();
}
END
"$CC" -O1 -g -fno-builtin -w -o vast vast.c
ok "a vast core" make_core core.vast "$TMP/vast"
core=core.vast
ok "vast: leaks are said to be missing" shows '' \
	'^   2[.] Leaks were not looked for yet: in a heap of this size'
ok "vast: Enter there looks for them" \
	shows '<Tab><Down><Enter>' '^   7[.]8.M in 10[0-9]* blocks cannot be'
ok "vast: so does 8, and then they stand out" shows '81' \
	'^   [12][.] 7[.]8.M in 10[0-9]* blocks cannot be reached'
ok "vast: and nothing is said to be missing" \
	sh -c '! grep -q "not looked for" screen'
ok "vast: a block's page comes before who refers to it" \
	shows '4<Down><Down><Enter>:<Esc>/Enter here<Enter>' \
	'^ > In a heap of this size'
ok "vast: Enter there looks, and for a way to it" \
	shows '4<Down><Down><Enter>/Enter here<Enter><Enter>' \
	'^ > leaked  *certain'
core=core.1

# ---- a saved report ----

"$HEAPCORE" analyze -q --json core.1 >saved.json
core=saved.json
ok "saved: sizes are exact, as in the core" shows '2' '^   3008  .* 100$'
ok "saved: a row shows its columns, and that no blocks are there" \
	shows '2<Enter>' '^- a saved report has no blocks: open the core'
ok "saved: and that is all" shows '2<Enter><Enter><Left>' 'SIZE CLASSES'
core=core.1

# ---- another look at a process ----

cat >grow.c <<'END'
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct item { struct item *next; char text[112]; } *g_items;

int main(void)
{
	char c;

	do {
		for (int i = 0; i < 5000; i++) {
			struct item *p = calloc(1, sizeof(*p));

			p->next = g_items;
			g_items = p;
		}
		if (write(1, "g", 1) != 1)
			return 1;
	} while (read(0, &c, 1) == 1);
	return 0;
}
END
# It grows once more for each byte, and says so; keys wait for that.
looks_again() {
	"$CC" -O1 -g -fno-builtin -w -o grow grow.c && mkfifo go grown live ||
		return 1
	./grow <go >grown &
	grower=$!
	rm -f screen
	exec 7>go 8<grown
	dd bs=1 count=1 <&8 >/dev/null 2>&1
	"$HEAPCORE" tui -q -p "$grower" --script=live >screen 2>err &
	browser=$!
	exec 9>live
	echo ':screen before' >&9
	until_ok grep -q before screen || return
	printf x >&7
	dd bs=1 count=1 <&8 >/dev/null 2>&1
	printf 'r\n:screen difference\n<Left>\n:screen now\n4r\nr\n' >&9
	echo ':screen the same' >&9
	exec 9>&-
	wait $browser
	exec 7>&- 8<&-
	kill $grower 2>/dev/null || :
	grep -q '^   1. 625K more is in use' screen &&
		grep -q '^ > in use by the program  *1250.0K' screen &&
		grep -q '^   Nothing changed' screen && return
	cat screen
	return 1
}
sleep 1000 &
sleeper=$!
if "$HEAPCORE" analyze -q -p $sleeper >/dev/null 2>&1; then
	ok "r: what has changed since the last look" looks_again
else
	skip "r: what has changed" "processes cannot be read here"
fi
kill $sleeper
ok "r: of a core there is no other look" shows r 'only a process can be'

# ---- a command line that cannot be ----

refused() {
	want=$1
	shift
	status=0
	"$HEAPCORE" tui "$@" >out 2>err </dev/null || status=$?
	[ $status = 2 ] && [ ! -s out ] && grep -q "$want" err && return
	echo "status $status"
	cat err
	return 1
}
ok "no terminal" refused 'needs a terminal' core.1
echo '<Nokey>' >keys
ok "no such key" refused 'line 1: no key' --script=keys core.1
ok "no such size" refused 'no size' --script=keys --size=80 core.1
ok "no such file" refused 'core.none' --script=keys core.none
finish
