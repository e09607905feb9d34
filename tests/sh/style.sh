# SPDX-License-Identifier: MIT
# The rules of CONTRIBUTING.md that a machine can check.
. "$SRC/tests/sh/tap"
cd "$SRC"

# What is built inside the tree is not ours; without git it has no #! line.
if files=$(git ls-files 2>/dev/null) && [ "$files" ]; then
	files=$(for f in $files; do [ ! -f "$f" ] || echo "$f"; done)
else
	files=$(find configure Makefile .ci bench docs man src tests -type f)
fi
named() { printf '%s\n' $files | grep "$@" | sort; }
sources=$(named '\.[ch]$')
ours=$(named '^src/.*\.[ch]$')
scripts=$(for f in $(named -v '\.[ch]$'); do
	case $f in
	Makefile | *.sh) echo "$f" ;;
	*)	[ ! -x "$f" ] || [ "$(head -c 2 "$f" | tr '\0' 0)" != '#!' ] ||
			echo "$f" ;;
	esac
done)

# none AWK-PROGRAM FILE...: whatever it prints is a failure.
none() {
	found=$(awk "$@") || return
	printf '%s\n' "$found"
	[ -z "$found" ]
}

ok "the files are there" [ "$(printf '%s\n' $ours | wc -l)" -gt 100 ]
ok "and the scripts" [ "$(printf '%s\n' $scripts | wc -l)" -gt 20 ]

ok "licence lines" none '
	FNR == 1 { ok = 0 }
	/SPDX-License-Identifier: MIT/ { ok = 1 }
	FNR == 2 && !ok { print FILENAME ": no SPDX line" }' $sources $scripts

ok "80 columns, no blanks at the end" none '
	/[ \t]$/ { print FILENAME ":" FNR ": blank at the end" }
	{
		for (n = i = 1; i <= length; i++)
			if (substr($0, i, 1) == "\t")
				n += 8 - (n - 1) % 8
			else
				n++
	}
	n > 81 { print FILENAME ":" FNR ": " n - 1 " columns" }' $sources

ok "at most 800 lines a file, 1200 an allocator" none '
	FNR == (FILENAME ~ /corewalk.(alloc|glibc)_/ ? 1201 : 801) { print FILENAME }' $ours

ok "at most 60 lines a function" none '
	/^{/ { start = FNR }
	/^}/ && start {
		if (FNR - start - 1 > 60)
			print FILENAME ":" start ": " FNR - start - 1 " lines"
		start = 0
	}' $ours

ok "guards are named by the path" none '
	FNR == 1 {
		guard = toupper(FILENAME)
		sub(/^SRC\//, "", guard)
		gsub(/[\/.]/, "_", guard)
		seen = 0
	}
	/^#ifndef/ && !seen {
		seen = 1
		if ($2 != guard)
			print FILENAME ": " $2 ", not " guard
	}' $(printf '%s\n' $ours | grep '\.h$')

ok "what is ours is included on every machine" none '
	FNR == 1 { depth = -(FILENAME ~ /\.h$/) }
	/^#if/ { depth++ }
	/^#endif/ { depth-- }
	/^#include "/ && depth > 0 { print FILENAME ":" FNR ": " $0 }' $ours

# compiles HEADER...: these and nothing else, each twice.
compiles() {
	for header; do
		printf '#include "%s"\n' "${header#src/}" "${header#src/}"
	done | $CC -std=gnu11 -D_GNU_SOURCE -Isrc -fsyntax-only -x c -
}
# Of one that comes first in a file, the build has shown it.
alone() {
	first=$(awk 'FNR == 1 { seen = 0 }
		/^[ \t]*#/ && !seen++ && /^#include "/ {
			print "src/" substr($2, 2, length($2) - 2)
		}' $(printf '%s\n' $ours | grep '\.c$'))
	for header in $(printf '%s\n' $ours $first $first | grep '\.h$' |
		sort | uniq -u); do
		echo "$header"
		compiles "$header" || return
	done
}
ok "headers compile alone" alone
# By folder, as two may have a struct of the same name.
twice() {
	for folder in $(dirname $ours | sort -u); do
		compiles $(printf '%s\n' $ours | grep "^$folder/[^/]*\.h$") ||
			return
	done
}
ok "and twice" twice

finish
