# SPDX-License-Identifier: MIT
# --help and the manual name the same options and words; the completions offer
# those of --help.
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
	"$HEAPCORE" "$command" --help | grep -oE '^  (-.,|   ) --[a-z-]*' |
		sed 's/.*--/--/' | sort -u >"help-$command"
done

ok "help names commands and sections" [ -s commands -a -s sections ]

# What do bash, zsh and fish offer for these words, sorted?
PATH=${HEAPCORE%/*}:$PATH
offer_bash() {
	bash -c '
		compopt() { :; }
		. "$1"
		shift
		COMP_WORDS=(heapcore "$@") COMP_CWORD=$#
		_heapcore
		printf "%s\n" "${COMPREPLY[@]}"' - "$completion/heapcore.bash" \
		"$@" | sed 's/=$//' | sort -u
}
offer_zsh() {
	zsh -f -c '
		_arguments() { print -rl -- "$@" }
		_describe() { print -rl -- $names }
		_call_program() { shift; "$@" }
		f=$1
		shift
		words=(heapcore "$@") CURRENT=$#+1
		. "$f"' - "$completion/_heapcore" "$@" |
		sed -n 's/\*\(--[a-z-]*\).*/\1/p; s/^\([a-z]*\):.*/\1/p' | sort -u
}
offer_fish() {
	fish --no-config -c "source '$completion/heapcore.fish'
		complete -C 'heapcore $*'" | sed 's/\t.*//; s/.*=//' | sort -u
}
for shell in bash zsh fish; do
	if ! command -v $shell >/dev/null; then
		skip "$shell" "no $shell here"
		continue
	fi
	offer_$shell '' >offered
	ok "$shell: commands" same commands offered
	for command in $(cat commands); do
		offer_$shell "$command" -- >offered
		ok "$shell: options of $command" same "help-$command" offered
	done
done
if command -v fish >/dev/null; then
	offer_fish analyze --only= >offered
	ok "fish: words of --only" same sections offered
fi
if command -v bash >/dev/null; then
	offer_bash analyze --only = '' >offered
	ok "bash: words of --only" same sections offered
	offer_bash analyze --only = where,are >offered
	echo where,arenas >list
	ok "bash: a list of words" same list offered
	offer_bash analyze --color '' >offered
	printf '%s\n' always auto never >list
	ok "bash: words of --color" same list offered
	touch core.7 other
	offer_bash analyze '' >offered
	ok "bash: cores come first" grep -qx core.7 offered
	ok "bash: other files do not" sh -c '! grep -qx other offered'
fi

for command in $(cat commands); do
	# Options of other programs do not stand in Fl macros.
	grep -oE 'Fl -[a-z][a-z-]*' "$SRC/man/heapcore-$command.1" |
		sed 's/Fl /-/' | sort -u >man
	ok "manual: options of $command" same "help-$command" man
done

# Allocators: those of --version, wherever they are listed.
"$HEAPCORE" --version | sed -n 's/.*allocators: //p' | tr -s ', ' '\n\n' |
	sort >allocators
"$HEAPCORE" analyze --help | sed -n 's/.*--allocator=//p' | tr '|' '\n' |
	sort >help-allocators
ok "help: allocators" same allocators help-allocators
awk '/^\.It / { on = / -allocator / } on && /^\.Cm / { print $2 }' \
	"$SRC/man/heapcore-analyze.1" | sort >man-allocators
ok "manual: allocators" same allocators man-allocators

finish
