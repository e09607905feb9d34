# SPDX-License-Identifier: MIT
# --help, the manual and the completions name the same options and words.
. "$SRC/tests/sh/tap"

completion=$SRC/docs/completion
manual=$SRC/man/heapcore-analyze.1

# Two sorted lists, by file: what only one of them has is a failure.
same() {
	comm -3 "$1" "$2" >"$TMP/only"
	[ -s "$1" ] && [ -s "$2" ] && [ ! -s "$TMP/only" ] && return
	echo "left: only in $1; right: only in $2"
	cat "$TMP/only"
	return 1
}

cd "$TMP"
{
	"$HEAPCORE" --help
	"$HEAPCORE" analyze --help
} | grep -oE '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' | sort -u >help
"$HEAPCORE" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' |
	sort >commands
"$HEAPCORE" analyze --help | awk '
	/^ *--only=/ { on = 1; sub(/^ *--only=[^ ]*/, "") }
	/^ *(-., )?--/ { on = 0 }
	on { gsub(/[, ]+/, "\n"); print }' |
	sed '/^$/d; /^and$/d; /^or$/d' | sort -u >sections

ok "help names options, commands and sections" \
	[ -s help -a -s commands -a -s sections ]

# What does bash offer for these words?
offer() {
	bash -c '
		compopt() { :; }
		. "$1"
		shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_heapcore
		printf "%s\n" "${COMPREPLY[@]}"' - "$completion/heapcore.bash" \
		heapcore "$@" | sed 's/=$//' | sort -u
}
if command -v bash >/dev/null; then
	offer analyze -- >bash
	ok "bash: options" same help bash
	offer '' >bash-commands
	ok "bash: commands" same commands bash-commands
	offer analyze --only = '' >bash-sections
	ok "bash: words of --only" same sections bash-sections
	offer analyze --only = where,are >bash-list
	echo where,arenas >list
	ok "bash: a list of words" same list bash-list
	touch core.7 other
	offer analyze '' >bash-files
	ok "bash: cores come first" grep -qx core.7 bash-files
	ok "bash: other files do not" sh -c '! grep -qx other bash-files'
else
	skip "bash" "no bash here"
fi

grep -oE -- '--[a-z][a-z-]*' "$completion/_heapcore" | sort -u >zsh
ok "zsh: options" same help zsh
sed -n '/^sections=(/,/)/p' "$completion/_heapcore" |
	sed 's/.*(//; s/).*//' | tr -s ' \t' '\n\n' | sed '/^$/d' |
	sort >zsh-sections
ok "zsh: words of --only" same sections zsh-sections
if command -v zsh >/dev/null; then
	ok "zsh: syntax" zsh -n "$completion/_heapcore"
fi

sed -n 's/^complete.* -l \([a-z-]*\).*/--\1/p' "$completion/heapcore.fish" |
	sort -u >fish
ok "fish: options" same help fish
if command -v fish >/dev/null; then
	ok "fish: syntax" fish -n "$completion/heapcore.fish"
fi

if [ -e "$manual" ]; then
	# Other programs' options never stand in Fl macros of ours.
	grep -oE 'Fl -[a-z][a-z-]*' "$manual" | sed 's/Fl /-/' | sort -u >man
	ok "manual: options" same help man
else
	skip "manual: options" "man/heapcore-analyze.1 is not written yet"
fi

finish
