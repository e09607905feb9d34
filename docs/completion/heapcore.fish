# SPDX-License-Identifier: MIT
# Completion of heapcore for fish; tests/sh/options.sh compares it with --help.

set -l analyze "__fish_seen_subcommand_from analyze"
set -l snapshot "__fish_seen_subcommand_from snapshot"
set -l diff "__fish_seen_subcommand_from diff"
set -l replay "__fish_seen_subcommand_from replay"
set -l record "__fish_seen_subcommand_from record"
set -l trace "__fish_seen_subcommand_from trace"
set -l tui "__fish_seen_subcommand_from tui"
set -l watch "__fish_seen_subcommand_from watch"
set -l common "__fish_seen_subcommand_from analyze diff record \
	replay snapshot trace tui watch"
set -l sections all where standout types allocators arenas leaks \
	retainers strings duplicates patterns php \
	classes profile fragmentation residency threads mappings modules settings findings

complete -c heapcore -n "not $common" -f -a analyze \
	-d "Report on a core file or process"
complete -c heapcore -n "not $common" -f -a diff \
	-d "Compare two cores, processes or saved reports"
complete -c heapcore -n "not $common" -f -a tui \
	-d "Browse a core file or a process"
complete -c heapcore -n "not $common" -f -a watch \
	-d "A line about a process, again and again"
complete -c heapcore -n "not $common" -f -a replay \
	-d "Sample a recorded trace and report"
complete -c heapcore -n "not $common" -f -a record \
	-d "Run a program and record its allocations"
complete -c heapcore -n "not $common" -f -a trace \
	-d "Look into a trace, check it, pack it, import one"
complete -c heapcore -n "not $common" -f -a snapshot \
	-d "Write a core file of a running process"
complete -c heapcore -n "not $common" -s h -l help -d "Show help"
complete -c heapcore -n "not $common" -s V -l version -d "Show version"

complete -c heapcore -n $common -s o -l output -r -d "Write to this file"
complete -c heapcore -n $common -l force -d "Replace the file"
complete -c heapcore -n $common -s q -l quiet -d "No progress and no warnings"
complete -c heapcore -n $common -s h -l help -d "Show help"
complete -c heapcore -n $common -s V -l version -d "Show version and licence"

complete -c heapcore -n $analyze -l exe -r -d "The program"
complete -c heapcore -n $analyze -l sysroot -x -d "Look for libraries below" \
	-a "(__fish_complete_directories)"
complete -c heapcore -n $analyze -l debug-dir -x \
	-a "(__fish_complete_directories)" -d "More places for debug files"
complete -c heapcore -n $analyze -l no-files -d "Read nothing but the core"
complete -c heapcore -n $analyze -l allocator -x -a "glibc gtcmalloc jemalloc pymalloc tcmalloc zend" -d "Do not guess"
complete -c heapcore -n $analyze -l only -x -a "$sections" -d "These sections"
complete -c heapcore -n $analyze -l rows -x -a "6 20 all" -d "Rows per table"
complete -c heapcore -n $analyze -l sort -x -d "Order of the rows"
complete -c heapcore -n $analyze -s f -l filter -x \
	-d "Only blocks that match"
complete -c heapcore -n $analyze -l blocks -d "One line for each block"
complete -c heapcore -n $analyze -l leaks \
	-d "Look for leaks in a large heap too"
complete -c heapcore -n $analyze -l at -x -d "What is at this address"
complete -c heapcore -n $analyze -x -l search -d "Where this pattern is"
complete -c heapcore -n $analyze -r -l hints -d "What void * points to"
complete -c heapcore -n $analyze -x -l search-hex -d "Where these bytes are"
complete -c heapcore -n $analyze -x -l search-in -a "blocks heap all" \
	-d "Where to search"
complete -c heapcore -n $analyze -x -l limit -d "Places that a search lists"
complete -c heapcore -n $analyze -l sample -x -a "64k 512k 2M" \
	-d "What a sampler would see"
complete -c heapcore -n $analyze -l budget -x -a "500ms 2s 10s" \
	-d "Types in about this time"
complete -c heapcore -n $analyze -l seed -x -d "Of the generator"
complete -c heapcore -n $analyze -l profile \
	-d "The heap profile that an allocator keeps"
complete -c heapcore -n $analyze -l rate -x -a "64k 512k 2M" \
	-d "Of that profile"
complete -c heapcore -n $analyze -l pprof -r -d "Also a pprof profile"
complete -c heapcore -n $analyze -l folded -r -d "Also folded stacks"
complete -c heapcore -n $analyze -l speedscope -r \
	-d "Also JSON for speedscope"
complete -c heapcore -n $analyze -l bytes -d "Exact bytes"
complete -c heapcore -n $analyze -l csv -d "Comma-separated values"
complete -c heapcore -n $analyze -l redact -d "No byte of the content"
complete -c heapcore -n $analyze -l fail-if -x -d "Exit 1 if this holds"
complete -c heapcore -n $analyze -l json -d "One JSON document"
complete -c heapcore -n $analyze -l color -x -a "auto always never" \
	-d "When to use colours"

complete -c heapcore -n $snapshot -l fork -d "Read a forked child"
complete -c heapcore -n $snapshot -l all -d "Shared memory and files too"
complete -c heapcore -n $snapshot -l compress -x -a "zstd none" \
	-d "How to pack it"

complete -c heapcore -n $diff -l exe -r -d "The program"
complete -c heapcore -n $diff -l sysroot -x -d "Look for libraries below" \
	-a "(__fish_complete_directories)"
complete -c heapcore -n $diff -l debug-dir -x \
	-a "(__fish_complete_directories)" -d "More places for debug files"
complete -c heapcore -n $diff -l no-files -d "Read nothing but the core"
complete -c heapcore -n $diff -l allocator -x -a "glibc gtcmalloc jemalloc pymalloc tcmalloc zend" -d "Do not guess"
complete -c heapcore -n $diff -l only -x \
	-a "all where changed arenas leaks classes types php" -d "These sections"
complete -c heapcore -n $diff -l rows -x -a "6 20 all" -d "Rows per table"
complete -c heapcore -n $diff -l sort -x -d "Order of the rows"
complete -c heapcore -n $diff -l bytes -d "Exact bytes"
complete -c heapcore -n $diff -l csv -d "Comma-separated values"
complete -c heapcore -n $diff -l redact -d "No paths"
complete -c heapcore -n $diff -l fail-if -x -d "Exit 1 if this holds"
complete -c heapcore -n $diff -l json -d "JSON instead of text"
complete -c heapcore -n $diff -l color -x -a "auto always never" \
	-d "When to use colours"

complete -c heapcore -n $watch -l exe -r -d "The program"
complete -c heapcore -n $watch -l sysroot -x -d "Look for libraries below" \
	-a "(__fish_complete_directories)"
complete -c heapcore -n $watch -l debug-dir -x \
	-a "(__fish_complete_directories)" -d "More places for debug files"
complete -c heapcore -n $watch -l no-files -d "Read nothing but the core"
complete -c heapcore -n $watch -l allocator -x -a "glibc gtcmalloc jemalloc pymalloc tcmalloc zend" -d "Do not guess"
complete -c heapcore -n $watch -s n -l every -x -a "500ms 10s 1m" \
	-d "From one look to the next"
complete -c heapcore -n $watch -l count -x -d "End after so many looks"
complete -c heapcore -n $watch -l for -x -d "End after this time"
complete -c heapcore -n $watch -l json -d "JSON instead of text"
complete -c heapcore -n $watch -l color -x -a "auto always never" \
	-d "When to use colours"

complete -c heapcore -n $analyze -s p -l pid -x -a "(__fish_complete_pids)" \
	-d "A running process"
complete -c heapcore -n $analyze -l max-pause -x -d "Longest stop"
complete -c heapcore -n $analyze -l no-stop -d "Read it while it runs"
complete -c heapcore -n $analyze -l no-swapin -d "Leave in swap what is there"
complete -c heapcore -n $analyze -l tmpdir -x \
	-a "(__fish_complete_directories)" -d "Where to unpack or copy to"
complete -c heapcore -n $analyze -l progress -x -a "auto plain" \
	-d "How to show progress"
complete -c heapcore -n $diff -s p -l pid -x -a "(__fish_complete_pids)" \
	-d "A running process"
complete -c heapcore -n $diff -l max-pause -x -d "Longest stop"
complete -c heapcore -n $diff -l no-stop -d "Read it while it runs"
complete -c heapcore -n $diff -l no-swapin -d "Leave in swap what is there"
complete -c heapcore -n $diff -l tmpdir -x \
	-a "(__fish_complete_directories)" -d "Where to unpack or copy to"
complete -c heapcore -n $diff -l progress -x -a "auto plain" \
	-d "How to show progress"
complete -c heapcore -n $watch -s p -l pid -x -a "(__fish_complete_pids)" \
	-d "A running process"
complete -c heapcore -n $watch -l max-pause -x -d "Longest stop"
complete -c heapcore -n $watch -l no-stop -d "Read it while it runs"
complete -c heapcore -n $watch -l no-swapin -d "Leave in swap what is there"
complete -c heapcore -n $watch -l tmpdir -x \
	-a "(__fish_complete_directories)" -d "Where to unpack or copy to"
complete -c heapcore -n $watch -l progress -x -a "auto plain" \
	-d "How to show progress"
complete -c heapcore -n $snapshot -s p -l pid -x -a "(__fish_complete_pids)" \
	-d "A running process"
complete -c heapcore -n $snapshot -l max-pause -x -d "Longest stop"
complete -c heapcore -n $snapshot -l no-stop -d "Read it while it runs"
complete -c heapcore -n $snapshot -l no-swapin -d "Leave in swap what is there"
complete -c heapcore -n $snapshot -l tmpdir -x \
	-a "(__fish_complete_directories)" -d "Where to unpack or copy to"
complete -c heapcore -n $snapshot -l progress -x -a "auto plain" \
	-d "How to show progress"
complete -c heapcore -n $replay -l rate -x -a "64k 512k 2M" \
	-d "Bytes between samples"
complete -c heapcore -n $replay -l by -x -a "bytes words count" \
	-d "What the gap is counted in"
complete -c heapcore -n $replay -l estimator -x -a "ht tcmalloc statmemprof" \
	-d "What a sample stands for"
complete -c heapcore -n $replay -l seed -x -d "Of the generator"
complete -c heapcore -n $replay -l seeds -x -d "How many to try"
complete -c heapcore -n $replay -l streams -x -a "thread process" \
	-d "Who has a generator"
complete -c heapcore -n $replay -l metric -x \
	-a "peak end allocated temporary lifetime" -d "What to rank by"
complete -c heapcore -n $replay -l at -x -d "The heap at this second"
complete -c heapcore -n $replay -l peak -x -a "own exact" -d "Of which curve"
complete -c heapcore -n $replay -l depth -x -a "1 3 all" \
	-d "Frames for a site"
complete -c heapcore -n $replay -l no-exact -d "Estimates only"
complete -c heapcore -n $replay -l exact -d "No estimates"
complete -c heapcore -n $replay -l only -x \
	-a "all pauses overview timeline growth sites tree functions sizes lifetimes rates models filters notes" -d "These sections"
complete -c heapcore -n $replay -l rows -x -a "6 20 all" -d "Rows per table"
complete -c heapcore -n $replay -l sort -x -d "Order of the rows"
complete -c heapcore -n $replay -l bytes -d "Exact bytes"
complete -c heapcore -n $replay -l csv -d "Comma-separated values"
complete -c heapcore -n $replay -l redact -d "No paths"
complete -c heapcore -n $replay -l pprof -r -d "Also a pprof profile"
complete -c heapcore -n $replay -l folded -r -d "Also folded stacks"
complete -c heapcore -n $replay -l window -x -d "Between these seconds"
complete -c heapcore -n $replay -l growth -x -d "What changed between these seconds"
complete -c heapcore -n $replay -l fail-if -x -d "Exit 1 if this holds"
complete -c heapcore -n $replay -l speedscope -r -d "Also JSON for speedscope"
complete -c heapcore -n $replay -l massif -r -d "Also what ms_print reads"
complete -c heapcore -n $replay -l pauses -r -d "Pauses as JSON lines"
complete -c heapcore -n $replay -l pause-unit -x -a "s ms us ns" -d "Of the times of pauses"
complete -c heapcore -n $replay -l pause-start -x -d "Where their time is 0"
complete -c heapcore -n $replay -l pause-total -x -d "What they should add up to"
complete -c heapcore -n $replay -l sysroot -r -d "Look for programs below"
complete -c heapcore -n $replay -l debug-dir -r -d "More places for debug files"
complete -c heapcore -n $replay -l json -d "One JSON document"
complete -c heapcore -n $replay -l color -x -a "auto always never" \
	-d "When to use colours"
complete -c heapcore -n $replay -l progress -x -a "auto plain" \
	-d "How to show progress"

complete -c heapcore -n $record -l depth -x -a "0 8 32 64" -d "Frames to keep"
complete -c heapcore -n $record -l unwind -x -a "cfi fp" \
	-d "How to walk stacks"
complete -c heapcore -n $record -l rate -x -a "64k 512k 2M" \
	-d "Record a sample"
complete -c heapcore -n $record -l mmap -d "Also mmap, munmap, mremap, brk"
complete -c heapcore -n $record -l children -d "Also what the program starts"
complete -c heapcore -n $record -l max -x -d "Stop recording at this size"

complete -c heapcore -n $trace -f -a "info verify dump pack convert"
complete -c heapcore -n $trace -l rows -x -a "20 all" -d "Events of a dump"
complete -c heapcore -n $trace -l stacks -d "Dump: each call stack"
complete -c heapcore -n $trace -l tmpdir -x \
	-a "(__fish_complete_directories)" -d "Where to unpack"
complete -c heapcore -n $trace -l json -d "Info as one JSON document"
complete -c heapcore -n $trace -l progress -x -a "auto plain" \
	-d "How to show progress"

complete -c heapcore -n $tui -l exe -r -d "The program"
complete -c heapcore -n $tui -l sysroot -x -d "Look for libraries below" \
	-a "(__fish_complete_directories)"
complete -c heapcore -n $tui -l debug-dir -x \
	-a "(__fish_complete_directories)" -d "More places for debug files"
complete -c heapcore -n $tui -l no-files -d "Read nothing but the core"
complete -c heapcore -n $tui -l allocator -x -a "glibc gtcmalloc jemalloc pymalloc tcmalloc zend" -d "Do not guess"
complete -c heapcore -n $tui -l color -x -a "auto always never" \
	-d "When to use colours"
complete -c heapcore -n $tui -s p -l pid -x -a "(__fish_complete_pids)" \
	-d "A running process"
complete -c heapcore -n $tui -l max-pause -x -d "Longest stop"
complete -c heapcore -n $tui -l no-stop -d "Read it while it runs"
complete -c heapcore -n $tui -l no-swapin -d "Leave in swap what is there"
complete -c heapcore -n $tui -l tmpdir -x \
	-a "(__fish_complete_directories)" -d "Where to unpack or copy to"
complete -c heapcore -n $tui -l progress -x -a "auto plain" \
	-d "How to show progress"
complete -c heapcore -n $tui -l ascii -d "No other characters"
complete -c heapcore -n $tui -l script -r -d "Keys from a file"
complete -c heapcore -n $tui -l size -x -a "80x24 120x40" \
	-d "Of the screen of a script"
