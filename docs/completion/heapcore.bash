# SPDX-License-Identifier: MIT
# Completion of heapcore for bash; needs nothing but bash.
# tests/sh/options.sh compares it with --help.

_heapcore()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
	local common="--output= --force --quiet --help --version"
	local process="--pid= --max-pause= --no-stop --no-swapin --tmpdir=
		--progress="
	local how="--exe= --sysroot= --debug-dir= --no-files --allocator=
		--json --color="
	local shape="--only= --rows= --sort= --bytes --csv --redact
		--fail-if="
	local analyze="$process $how $shape --filter= --blocks --leaks --at=
		--hints= --search= --search-hex= --search-in= --limit=
		--sample= --budget= --seed= --profile --rate= --pprof=
		--folded= --speedscope="
	local diff="$process $how $shape"
	local replay="--rate= --by= --estimator= --seed= --seeds= --streams=
		--metric= --at= --peak= --depth= --no-exact --exact --only= --rows=
		--sort= --bytes --csv --redact --pprof= --folded= --window=
		--growth= --fail-if= --speedscope= --massif= --pauses=
		--pause-unit= --pause-start= --pause-total= --sysroot=
		--debug-dir= --json --color= --progress="
	local record="--depth= --unwind= --rate= --children --mmap --max="
	local trace="--rows= --stacks --tmpdir= --json --progress="
	local watch="$process $how --every= --count= --for="
	local tui="$process --exe= --sysroot= --debug-dir= --no-files
		--allocator= --color= --script= --size= --ascii"
	local snapshot="$process --fork --all --compress="
	local sections="all where standout types allocators arenas leaks retainers
		strings duplicates patterns php
		classes profile fragmentation residency threads mappings modules settings
		findings"
	[[ ${COMP_WORDS[1]} != diff ]] ||
		sections="all where changed arenas leaks classes types php"
	[[ ${COMP_WORDS[1]} != replay ]] ||
		sections="all pauses overview timeline growth sites tree functions sizes lifetimes rates models filters notes"

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
	--search-in)
		COMPREPLY=($(compgen -W "blocks heap all" -- "$word"))
		return ;;
	--compress)
		COMPREPLY=($(compgen -W "zstd none" -- "$word"))
		return ;;
	--pid | -p)
		COMPREPLY=($(compgen -W "$(cd /proc && echo [1-9]*)" \
			-- "$word"))
		return ;;
	--allocator)
		COMPREPLY=($(compgen -W "glibc gtcmalloc jemalloc pymalloc tcmalloc zend" \
			-- "$word"))
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
	--rate | --sample)
		COMPREPLY=($(compgen -W "64k 512k 2M" -- "$word"))
		return ;;
	--by)
		COMPREPLY=($(compgen -W "bytes words count" -- "$word"))
		return ;;
	--estimator)
		COMPREPLY=($(compgen -W "ht tcmalloc statmemprof" -- "$word"))
		return ;;
	--streams)
		COMPREPLY=($(compgen -W "thread process" -- "$word"))
		return ;;
	--metric)
		COMPREPLY=($(compgen -W "peak end allocated temporary
			lifetime" -- "$word"))
		return ;;
	--peak)
		COMPREPLY=($(compgen -W "own exact" -- "$word"))
		return ;;
	--depth)
		COMPREPLY=($(compgen -W "1 3 all" -- "$word"))
		return ;;
	--every | --for | -n)
		COMPREPLY=($(compgen -W "500ms 10s 1m 1h" -- "$word"))
		return ;;
	--search | --search-hex | --limit | \
	--sort | --filter | --fail-if | --at | --max-pause | --count | -f | \
	--seed | --seeds)
		return ;;
	--sysroot | --debug-dir | --tmpdir)
		compopt -o filenames
		COMPREPLY=($(compgen -d -- "$word"))
		return ;;
	--exe | --output | -o | --pprof | --folded | --hints | \
	--speedscope | --massif | \
	--script)
		compopt -o filenames
		COMPREPLY=($(compgen -f -- "$word"))
		return ;;
	esac

	if [[ $word == -* ]]; then
		case ${COMP_WORDS[1]} in
		analyze) common+=" $analyze" ;;
		diff) common+=" $diff" ;;
		record) common+=" $record" ;;
		replay) common+=" $replay" ;;
		trace) common+=" $trace" ;;
		tui) common+=" $tui" ;;
		snapshot) common+=" $snapshot" ;;
		watch) common+=" $watch" ;;
		*) common="--help --version" ;;
		esac
		COMPREPLY=($(compgen -W "$common" -- "$word"))
		[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
	elif ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "analyze diff record replay snapshot
			trace tui watch" \
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
