# SPDX-License-Identifier: MIT
# Completion of heapcore for fish; tests/sh/options.sh compares it with --help.

set -l analyze "__fish_seen_subcommand_from analyze"

complete -c heapcore -n "not $analyze" -f -a analyze \
	-d "Report on a core file"

complete -c heapcore -s o -l output -r -d "Write the report to a file"
complete -c heapcore -l force -d "Replace the file even if it is no report"
complete -c heapcore -l json -d "One JSON document instead of text"
complete -c heapcore -l color -x -a "auto always never" -d "When to use colours"
complete -c heapcore -l progress -x -a "auto plain" -d "How to show progress"
complete -c heapcore -s q -l quiet -d "No progress and no warnings"
complete -c heapcore -s h -l help -d "Show help"
complete -c heapcore -s V -l version -d "Show version and licence"

complete -c heapcore -n $analyze -l exe -r -d "The program"
complete -c heapcore -n $analyze -l sysroot -x -d "Look for libraries below" \
	-a "(__fish_complete_directories)"
complete -c heapcore -n $analyze -l debug-dir -x \
	-a "(__fish_complete_directories)" -d "More places for debug files"
complete -c heapcore -n $analyze -l no-files -d "Read nothing but the core"
complete -c heapcore -n $analyze -l tmpdir -x \
	-a "(__fish_complete_directories)" -d "Where to unpack a compressed core"
complete -c heapcore -n $analyze -l allocator -x -a glibc -d "Do not guess"
complete -c heapcore -n $analyze -l only -x -d "These sections" -a \
	"all where standout allocators arenas classes fragmentation residency threads mappings modules settings findings"
complete -c heapcore -n $analyze -l rows -x -a "6 20 all" -d "Rows per table"
complete -c heapcore -n $analyze -l sort -x -d "Order of the rows"
complete -c heapcore -n $analyze -s f -l filter -x \
	-d "Only blocks that match"
complete -c heapcore -n $analyze -l at -x -d "What is at this address"
complete -c heapcore -n $analyze -l blocks -d "One line for each block"
complete -c heapcore -n $analyze -l csv -d "Comma-separated values"
complete -c heapcore -n $analyze -l bytes -d "Exact bytes"
complete -c heapcore -n $analyze -l redact -d "No byte of the content"
complete -c heapcore -n $analyze -l fail-if -x -d "Exit 1 if this holds"
