# a bare heapcore prints the help on stderr
$ heapcore
! Usage: heapcore COMMAND [OPTION]... [TARGET]
! ...
!~ ^3 report incomplete\.  Manual: man heapcore\.$
? 2

# help is 26 lines at most and ends in the statuses
$ heapcore --help >out && [ $(wc -l <out) -le 26 ] && tail -2 out
| Exit status: 0 report complete, 1 a --fail-if condition holds, 2 no report,
| 3 report incomplete.  Manual: man heapcore.

# every line of help fits a terminal
$ { heapcore --help; heapcore analyze --help; } | awk 'length > 80'

# running programs are spoken of first
$ heapcore --help | sed -n 2,5p && heapcore analyze --help | grep -c -e '-p PID' -e '-p 1234'
| Explain the heap of a core file or a running process, without symbols.
|~ .*
|~ ^  heapcore analyze core.1234 .*
|~ ^  heapcore analyze -p 1234 .*
| 3

# -h and --help of a command, before or behind other options
$ heapcore analyze -h >a; heapcore analyze core -q --help >b; cmp a b; head -1 a
| Usage: heapcore analyze [OPTION]... CORE

# the version's first line is for scripts
$ heapcore --version | sed 's/[0-9][0-9.]*$/N/; s/PCRE2 [^;]*/PCRE2 N/'
| heapcore N
| PCRE2 N; allocators: glibc, gtcmalloc, jemalloc, pymalloc, tcmalloc, zend
| Copyright (C) 2026 the heapcore authors
| Licence MIT: free software, no warranty.

# a write error of the help is not lost
$ [ -w /dev/full ] || exit 2; heapcore --help >/dev/full
!~ ^heapcore: standard output: No space left on device$
? 2

# a closed stdout is an error
$ heapcore --version >&-
! heapcore: standard output: Bad file descriptor
? 2

# a near miss of a command is named
$ heapcore analyse core
! heapcore: unknown command 'analyse'; did you mean 'analyze'?
!   Try heapcore --help.
? 2

# a far one is not
$ heapcore dump core
! heapcore: unknown command 'dump'
!   Try heapcore --help.
? 2

# an option is no command
$ heapcore --json core
! heapcore: unknown option '--json'
!   Try heapcore --help.
? 2
