# no file
$ heapcore analyze
! heapcore: no core file given
!   Try heapcore analyze --help.
? 2

# two files
$ heapcore analyze a b
! heapcore: one core file, not 2
!   Try heapcore analyze --help.
? 2

# standard input cannot be read in any order
$ heapcore analyze - <"$0"
! heapcore: a core is read in any order: give a file, not a pipe
!   Try heapcore analyze --help.
? 2

# a process or a core
$ heapcore analyze -p 1 core
! heapcore: --pid or a core file, not both
!   Try heapcore analyze --help.
? 2

# what is for processes only
$ heapcore analyze --no-stop core
! heapcore: --no-stop is for processes: give --pid
!   Try heapcore analyze --help.
? 2

# a near miss of an option is named
$ heapcore analyze --onyl=where core
! heapcore: unknown option '--onyl'; did you mean '--only'?
!   Try heapcore analyze --help.
? 2

# a letter that is no option
$ heapcore analyze -qz core
! heapcore: unknown option '-z'
!   Try heapcore analyze --help.
? 2

# a value is missing
$ heapcore analyze core --rows
! heapcore: option '--rows' needs a value: --rows=N|all
!   Try heapcore analyze --help.
? 2

# a value too many
$ heapcore analyze --json=yes core
! heapcore: option '--json' takes no value
!   Try heapcore analyze --help.
? 2

# two hyphens end the options
$ heapcore analyze -- --json
! heapcore: --json: No such file or directory
? 2

# values stand behind =, behind a blank, or behind the letter
$ heapcore analyze -fsize core || heapcore analyze -f size core || heapcore analyze --filter size core || heapcore analyze --filter=size core
! heapcore: --filter: 'size' needs an operator and a value
!   Try heapcore analyze --help.
! heapcore: --filter: 'size' needs an operator and a value
!   Try heapcore analyze --help.
! heapcore: --filter: 'size' needs an operator and a value
!   Try heapcore analyze --help.
! heapcore: --filter: 'size' needs an operator and a value
!   Try heapcore analyze --help.
? 2

# an unknown section names the others
$ heapcore analyze --only=where,heaps core
! heapcore: --only: no section 'heaps'
!~ ^  There are where, standout, types, allocators, .*,$
! ...
!~ all\.$
? 2

# an unknown key names the others
$ heapcore analyze --filter='size>1k colour=red' core
! heapcore: --filter: unknown key 'colour'
!~ ^  Known are address, size, usable, state, arena, mmapped, thread, .*,$
!~ leak_grade, .*, retained, allocator,$
!~ used, free\.$
? 2

# a state that no block has names those there are
$ heapcore analyze --blocks --filter='state=free' core
! heapcore: --filter: state is never 'free'
!   It is one of used, tcache, fastbin, unsorted, bin, unlisted, top, overhead.
? 2

# a pattern that is none
$ heapcore analyze --filter='arena~[' core
!~ ^heapcore: --filter: '\[': missing terminating \] for character class at 1$
!   Try heapcore analyze --help.
? 2

# conditions have names too
$ heapcore analyze --fail-if='size>1' core
! heapcore: --fail-if: unknown key 'size'
!~ ^  Known are private_bytes, mapped_bytes, used_bytes, used_blocks, .*,$
!~ ^  free_share, undecoded_bytes, findings, leaked_bytes, leaked_blocks,$
!   free_resident_bytes, free_resident_share.
? 2

# rows
$ heapcore analyze --rows=0 core
! heapcore: --rows: '0' is neither a number from 1 on nor all
!   Try heapcore analyze --help.
? 2

# colours
$ heapcore analyze --color=red core
! heapcore: --color is auto, always or never, not 'red'
!   Try heapcore analyze --help.
? 2

# progress
$ heapcore analyze --progress=loud core
! heapcore: --progress is auto or plain, not 'loud'
!   Try heapcore analyze --help.
? 2

# one table only for CSV and sorting
$ heapcore analyze --csv core || heapcore analyze --only=where,arenas --sort=size core
! heapcore: --csv needs one section
!   Name it with --only.
! heapcore: --sort needs one section
!   Name only one with --only.
? 2

# one format
$ heapcore analyze --csv --json core
! heapcore: --json and --csv exclude each other
!   Try heapcore analyze --help.
? 2

# an allocator that is not known
$ heapcore analyze --allocator=mimalloc core
! heapcore: --allocator: 'mimalloc' is not known
!   Known are glibc, gtcmalloc, jemalloc, pymalloc, tcmalloc, zend.
? 2

# an address
$ heapcore analyze --at=0xzz core
! heapcore: --at: '0xzz' is no address
!   Try heapcore analyze --help.
? 2

# what stands alone
$ heapcore analyze --at=10 --only=where core || heapcore analyze --blocks --sort=size core
! heapcore: --at stands alone: no --only, --blocks, --filter or --sort
!   Try heapcore analyze --help.
! heapcore: --blocks is one list by address: no --only, no --sort
!   Try heapcore analyze --help.
? 2

# a filter that nothing would heed
$ heapcore analyze --only=where,arenas --filter='size>1k' core
! heapcore: --filter needs one section, or classes among them
!   Or --blocks, which lists what matches.
? 2

# what is no time, and what has no rate to choose
$ heapcore analyze --budget=soon core || heapcore analyze --budget=1s --csv core
! heapcore: --budget: 'soon' is no time from 1ms to 1000d, such as 500ms, 10s or 1m
!   Try heapcore analyze --help.
! heapcore: --budget chooses a rate for a report: no --sample, no --blocks, no --at, no --csv
!   Try heapcore analyze --help.
? 2

# paths that are not there, whatever would have been found below them
$ core=$FIXTURES/plain/core.xz
$ heapcore analyze --exe=no/such/path $core ||
$ heapcore analyze --sysroot=no/such/path $core ||
$ heapcore analyze --debug-dir=no/such/path $core
! heapcore: --exe: no/such/path: No such file or directory
! heapcore: --sysroot: no/such/path: No such file or directory
! heapcore: --debug-dir: no/such/path: No such file or directory
? 2

# a search and a budget
$ heapcore analyze --search=x --budget=1s core
! heapcore: a search stands alone: no --only, --blocks, --at, --sample or --budget
!   Try heapcore analyze --help.
? 2

# a file in place of the rate
$ heapcore analyze --sample c/leak.core || heapcore analyze --sample 0 core
! heapcore: --sample: 'c/leak.core' is no rate
!   It is a number of bytes from 1 to 1T, as in --sample=512k.
! heapcore: --sample: '0' is no rate
!   It is a number of bytes from 1 to 1T, as in --sample=512k.
? 2

# a file or a process in place of a command
$ mkdir c; touch c/leak.core; heapcore c/leak.core || heapcore -p 12 || heapcore -p
! heapcore: no command before the file 'c/leak.core'
!   Try heapcore analyze c/leak.core
! heapcore: no command before '-p'
!   Try heapcore analyze -p 12
! heapcore: no command before '-p'
!   Try heapcore analyze -p PID
? 2

# the same with the number in the word
$ heapcore --pid=12
! heapcore: no command before '--pid=12'
!   Try heapcore analyze --pid=12
? 2

# an empty value is hardly meant
$ heapcore analyze -o '' core || heapcore analyze --hints= core
! heapcore: option '--output' has an empty value: --output=FILE
!   Try heapcore analyze --help.
! heapcore: option '--hints' has an empty value: --hints=FILE
!   Try heapcore analyze --help.
? 2

# one process at a time
$ heapcore analyze -p 1 --pid=2
! heapcore: option '--pid' is there twice
!   Try heapcore analyze --help.
? 2
