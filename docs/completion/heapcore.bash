# SPDX-License-Identifier: MIT
# Completion of heapcore for bash; needs nothing but bash.
# tests/sh/options.sh compares it with --help.

_heapcore()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
	local common="--pid= --max-pause= --no-stop --no-swapin --tmpdir=
		--output= --force --progress= --quiet --help --version"
	local how="--exe= --sysroot= --debug-dir= --no-files --allocator=
		--json --color="
	local shape="--only= --rows= --sort= --bytes --csv --redact
		--fail-if="
	local analyze="$how $shape --filter= --blocks --at="
	local diff="$how $shape"
	local watch="$how --every= --count= --for="
	local snapshot="--fork --all --compress="
	local sections="all where standout allocators arenas classes
		fragmentation residency threads mappings modules settings
		findings"
	[[ ${COMP_WORDS[1]} != diff ]] ||
		sections="all where changed arenas leaks classes types"

	# "=" splits words: --only=where is three of them.
	if [[ $word == "=" ]]; then
		word=
	elif [[ $before == "=" ]]; then
		before=${COMP_WORDS[COMP_CWORD-2]}
	fi

	COMPREPLY=()
	case $before in
	--color)
		COMPREPLY=($(compgen -W "auto always never" -- "$word"))
		return ;;
	--progress)
		COMPREPLY=($(compgen -W "auto plain" -- "$word"))
		return ;;
	--compress)
		COMPREPLY=($(compgen -W "zstd none" -- "$word"))
		return ;;
	--pid | -p)
		COMPREPLY=($(compgen -W "$(cd /proc && echo [1-9]*)" \
			-- "$word"))
		return ;;
	--allocator)
		COMPREPLY=($(compgen -W "glibc" -- "$word"))
		return ;;
	--rows)
		COMPREPLY=($(compgen -W "6 20 all" -- "$word"))
		return ;;
	--only)
		# A list: what is before the last comma stays.
		local done=
		[[ $word == *,* ]] && done=${word%,*},
		COMPREPLY=($(compgen -P "$done" -W "$sections" \
			-- "${word##*,}"))
		return ;;
	--every | --for | -n)
		COMPREPLY=($(compgen -W "500ms 10s 1m 1h" -- "$word"))
		return ;;
	--sort | --filter | --fail-if | --at | --max-pause | --count | -f)
		return ;;
	--sysroot | --debug-dir | --tmpdir)
		compopt -o filenames
		COMPREPLY=($(compgen -d -- "$word"))
		return ;;
	--exe | --output | -o)
		compopt -o filenames
		COMPREPLY=($(compgen -f -- "$word"))
		return ;;
	esac

	if [[ $word == -* ]]; then
		case ${COMP_WORDS[1]} in
		analyze) common+=" $analyze" ;;
		diff) common+=" $diff" ;;
		snapshot) common+=" $snapshot" ;;
		watch) common+=" $watch" ;;
		*) common="--help --version" ;;
		esac
		COMPREPLY=($(compgen -W "$common" -- "$word"))
		[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
	elif ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "analyze diff snapshot watch" \
			-- "$word"))
	else
		# Files that look like cores first.
		compopt -o filenames
		local IFS=$'\n'
		COMPREPLY=($(compgen -f -X '!*core*' -- "$word"))
		[[ ${COMPREPLY[0]-} ]] || COMPREPLY=($(compgen -f -- "$word"))
	fi
}
complete -F _heapcore heapcore
