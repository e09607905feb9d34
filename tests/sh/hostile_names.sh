# SPDX-License-Identifier: MIT
# A file's name may hold escape sequences, newlines and bytes that are no
# UTF-8.  The sentence that says which allocator is in it must not.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
. "$SRC/tests/sh/preloaded"

need_cores
cd "$TMP"
need python3 jq
name=$(printf 'x\033[31m\n\\\377y')
harmless='x\x1b[31m\x0a\x5c\xffy'

# printable FILE: ASCII without control bytes, in lines.
printable() {
	[ -s "$1" ] && ! LC_ALL=C grep -an '[^ -~]' "$1"
}

# harmless ALLOCATOR: in each form of the report.
harmless() {
	report core
	jq -e --arg name "$1" --arg in " in $harmless," '[.allocators[] |
		select(.name == $name) | (.evidence | contains($in)) and
		(has("evidence_hex") | not)] == [true]' report.json &&
	for form in --csv --color=always --color=never; do
		"$HEAPCORE" analyze -q --only allocators $form core >out ||
			[ $? = 3 ]
		[ $form != --color=always ] || sed -i 's/\x1b\[[0-9;]*m//g' out
		printable out && tr -d '\n ' <out | grep -qaF "in$harmless," ||
			{ cat -v out; return 1; }
	done
}

# preloaded LIBRARY ALLOCATOR
preloaded() {
	cp "$1" "$TMP/$name" &&
	make_core core env LD_PRELOAD="$TMP/$name" "$TMP/spans" \
		"$TMP/truth.txt" one 11 && harmless "$2"
}

ok "build" $CC -O1 -o spans "$SRC/tests/truth/spans.c" -pthread -ldl
[ -x spans ] || finish
for pair in libjemalloc.so.2:jemalloc libtcmalloc_minimal.so.4:tcmalloc; do
	path=$(library ${pair%:*})
	if [ -z "$path" ]; then
		skip "${pair#*:}" "not here"
		continue
	fi
	ok "${pair#*:}" preloaded "$path" "${pair#*:}"
done

static() {
	cat >static.c <<-'END'
	#include <stdlib.h>
	int main(void)
	{
		void *volatile p;
		for (int i = 0; i < 1000; i++)
			p = malloc(40 + i);
		abort();
	}
	END
	$CC -static -o "$name" static.c &&
	make_core core "$TMP/$name" && harmless glibc
}
ok "glibc" static
finish
