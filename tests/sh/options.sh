# SPDX-License-Identifier: MIT
# --help, the manual and the completions name the same options and words.
. "$SRC/tests/sh/tap"

completion=$SRC/docs/completion

# Two sorted lists, by file: what only one of them has is a failure.
same() {
	comm -3 "$1" "$2" >"$TMP/only"
	[ -s "$1" ] && [ -s "$2" ] && [ ! -s "$TMP/only" ] && return
	echo "left: only in $1; right: only in $2"
	cat "$TMP/only"
	return 1
}

cd "$TMP"
"$HEAPCORE" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' |
	sort >commands
"$HEAPCORE" analyze --help | awk '
	/^ *--only=/ { on = 1; sub(/^ *--only=[^ ]*/, "") }
	/^ *(-., )?--/ { on = 0 }
	on { gsub(/[, ]+/, "\n"); print }' |
	sed '/^$/d; /^and$/d; /^or$/d' | sort -u >sections

for command in $(cat commands); do
	"$HEAPCORE" "$command" --help | grep -oE '^ *(-., )?--[a-z-]*' |
		sed 's/.*--/--/' | sort -u >"help-$command"
done

ok "help names commands and sections" [ -s commands -a -s sections ]

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
	for command in $(cat commands); do
		offer "$command" -- >bash
		ok "bash: options of $command" same "help-$command" bash
	done
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

# The arrays of zsh and the conditions of fish have the names of commands.
for command in $(cat commands); do
	sed -nE "/^(common|$command)=\(/,/^\)/p" "$completion/_heapcore" |
		grep -oE -- '--[a-z][a-z-]*' | sort -u >zsh
	ok "zsh: options of $command" same "help-$command" zsh
	sed -nE "s/^complete.* -n [$](common|$command) .*-l ([a-z-]*).*/--\2/p" \
		"$completion/heapcore.fish" | sort -u >fish
	ok "fish: options of $command" same "help-$command" fish
	manual=$SRC/man/heapcore-$command.1
	if [ -e "$manual" ]; then
		# Options of other programs do not stand in Fl macros.
		grep -oE 'Fl -[a-z][a-z-]*' "$manual" | sed 's/Fl /-/' |
			sort -u >man
		ok "manual: options of $command" same "help-$command" man
	else
		ok "manual of $command" false
	fi
done
sed -n '/^sections=(/,/)/p' "$completion/_heapcore" |
	sed 's/.*(//; s/).*//' | tr -s ' \t' '\n\n' | sed '/^$/d' |
	sort >zsh-sections
ok "zsh: words of --only" same sections zsh-sections

# Allocators: those of --version, wherever they are listed.
"$HEAPCORE" --version | sed -n 's/.*allocators: //p' | tr -s ', ' '\n\n' |
	sort >allocators
# all_of FILE WORD: each line of FILE with WORD names all of them.
all_of() {
	grep -e "$2" "$1" >lines || return 1
	while IFS= read -r line; do
		for allocator in $(cat allocators); do
			case $line in
			*[\ \"\(]"$allocator"[\ \"\)]*) ;;
			*) echo "no $allocator: $line"; return 1 ;;
			esac
		done
	done <lines
}
"$HEAPCORE" analyze --help | awk '
	/^ *--|^$/ { on = 0 }
	/^ *--allocator=/ { on = 1; sub(/.*: /, "") }
	on { gsub(/,| or /, " "); printf "%s ", $0 }
	END { print "--allocator" }' | sed 's/^/ /' >help-allocators
ok "help: allocators" all_of help-allocators --allocator
ok "bash: allocators" all_of "$completion/heapcore.bash" 'W "glibc'
ok "zsh: allocators" all_of "$completion/_heapcore" '--allocator='
ok "fish: allocators" all_of "$completion/heapcore.fish" '-l allocator '
awk '/^\.It / { on = / -allocator / } on && /^\.Cm / { print $2 }' \
	"$SRC/man/heapcore-analyze.1" | sort >man-allocators
ok "manual: allocators" same allocators man-allocators

if command -v zsh >/dev/null; then
	ok "zsh: syntax" zsh -n "$completion/_heapcore"
fi
if command -v fish >/dev/null; then
	ok "fish: syntax" fish -n "$completion/heapcore.fish"
fi

finish
