# SPDX-License-Identifier: MIT
# Completion of heapcore for fish: commands, options and their words are those
# of --help.

# What --help says of an option becomes a completion of the command.
function __heapcore_option -a command letter name value text
	set -l option -l $name -d (string trim -- $text | string collect -a)
	set letter (string trim -c "-, " -- $letter)
	test -z "$letter"; or set -a option -s $letter
	switch $value
		case ''
		case PID
			set -a option -x -a "(__fish_complete_pids)"
		case DIR
			set -a option -x -a "(__fish_complete_directories)"
		case FILE
			set -a option -r
		case 'SECTION*'
			set -a option -x -a (string replace -a , '' -- $text)
		case '*|*'
			set -a option -x -a (string replace -ar '[A-Z|]' ' ' -- $value)
		case '*'
			set -a option -x
	end
	complete -c heapcore -n "__fish_seen_subcommand_from $command" $option
end

for named in (heapcore --help 2>/dev/null |
		sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  */\1\t/p')
	set -l command (string split \t -- $named)
	complete -c heapcore -n __fish_use_subcommand -f -a $command[1] \
		-d $command[2]
	# Letter, name, value and text; the empty line ends the last one.
	set -l option
	for line in (heapcore $command[1] --help 2>/dev/null) ''
		set -l part (string match -rg \
			'^  (-.,|   ) --([a-z-]+)=?([^ ]*) *(.*)$' -- $line)
		if test -z "$line" -o (count $part) -gt 0
			test (count $option) -eq 0
			or __heapcore_option $command[1] $option
			set option $part
		else if test (count $option) -gt 0
			set option[4] "$option[4] "(string trim -- $line)
		end
	end
end
complete -c heapcore -n __fish_use_subcommand -s h -l help -d "Show help"
complete -c heapcore -n __fish_use_subcommand -s V -l version -d "Show version"
complete -c heapcore -n "__fish_seen_subcommand_from trace" \
	-f -a "info verify dump pack convert"
