# SPDX-License-Identifier: MIT
# Completion of heapcore for bash; needs nothing but bash and sed.  Commands,
# options and their words are those of --help.

# What an option takes, and then the rest of what help says of it.
_heapcore_option()
{
	local line on=

	while IFS= read -r line; do
		if [[ $line =~ ^\ \ (-.,|\ \ \ )\ --([a-z-]+)=?([^ ]*)(.*) ]]; then
			[[ ! $on ]] || return
			[[ $1 != "--${BASH_REMATCH[2]}" &&
				"$1," != "${BASH_REMATCH[1]}" ]] && continue
			on=1
			echo "${BASH_REMATCH[3]}"
			line=${BASH_REMATCH[4]}
		fi
		[[ $line ]] || on=
		[[ ! $on ]] || echo "${line//,/}"
	done
}

_heapcore()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
	local program=${COMP_WORDS[0]/#\~/$HOME} done= words= help about value

	# "=" splits words: --only=where is three of them.
	if [[ $word == "=" ]]; then
		word=
	elif [[ $before == "=" ]]; then
		before=${COMP_WORDS[COMP_CWORD-2]}
	fi
	COMPREPLY=()
	if ((COMP_CWORD == 1)) && [[ $word != -* ]]; then
		words=$("$program" --help 2>/dev/null |
			sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  .*/\1/p')
		COMPREPLY=($(compgen -W "$words" -- "$word"))
		return
	fi
	((COMP_CWORD > 1)) || words="--help --version"
	[[ $words ]] || help=$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null)
	[[ $before != -* ]] || about=$(_heapcore_option "$before" <<<"$help")
	value=${about%%$'\n'*}
	case $value in
	'')
		;;
	PID)
		words=$(cd /proc && echo [1-9]*) ;;
	DIR | FILE)
		compopt -o filenames
		[[ $value == DIR ]] && value=-d || value=-f
		COMPREPLY=($(compgen $value -- "$word"))
		return ;;
	SECTION*)
		# A list: what is before the last comma stays.
		words=${about#*$'\n'}
		[[ $word == *,* ]] && done=${word%,*},
		word=${word##*,} ;;
	*'|'*)
		words=${value//[A-Z|]/ } ;;
	*)
		return ;;
	esac
	if [[ $words ]]; then
		COMPREPLY=($(compgen -P "$done" -W "$words" -- "$word"))
	elif [[ $word == -* ]]; then
		words=$(sed -nE 's/^  (-.,|   ) (--[a-z-]+=?).*/\2/p' <<<"$help")
		COMPREPLY=($(compgen -W "$words" -- "$word"))
		[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
	else
		# Files that look like cores first.
		compopt -o filenames
		local IFS=$'\n'
		COMPREPLY=($(compgen -f -X '!*core*' -- "$word"))
		[[ ${COMPREPLY[0]-} ]] || COMPREPLY=($(compgen -f -- "$word"))
	fi
}
complete -F _heapcore heapcore
