# two sides are needed
$ heapcore diff core
! heapcore: two of files and --pid are needed
!   Try heapcore diff --help.
? 2

# and no more
$ heapcore diff a b -p 1
! heapcore: two of files and --pid can be compared, not 3
!   Try heapcore diff --help.
? 2

# a process is a number
$ heapcore diff a -p appd
! heapcore: --pid: 'appd' is not the number of a process
!   Try heapcore diff --help.
? 2

# what is for processes only
$ heapcore diff --no-stop a b
! heapcore: --no-stop is for processes: give --pid
!   Try heapcore diff --help.
? 2

# standard input is read once
$ heapcore diff - -
! heapcore: standard input can be read once only
!   Try heapcore diff --help.
? 2

# an unknown section names the others
$ heapcore diff --only=threads a b
! heapcore: --only: no section 'threads'
!   There are where, changed, arenas, leaks, classes, types, php, all.
? 2

# an unknown condition names the others
$ heapcore diff --fail-if='used>1M' a b
! heapcore: --fail-if: unknown key 'used'
!~ ^  Known are private_old_bytes, private_new_bytes, private_change_bytes,$
! ...
!~ used_growth_share\.$
? 2

# one table only for CSV and sorting
$ heapcore diff --csv a b || heapcore diff --sort=change a b
! heapcore: --csv needs one section
!   Name it with --only.
! heapcore: --sort needs one section
!   Name it with --only.
? 2

# a column that is not there
$ echo '{"schema":"heapcore-report/1"}' >a
$ heapcore diff -q --only=where --sort=blocks a a
! heapcore: --sort: no column 'blocks' in section where
!~ ^  It has what, old_bytes, new_bytes, change_bytes, .*,$
! ...
!~ ^  swapped_new_bytes, swapped_change_bytes\.$
? 2

# two empty reports: nothing is there to compare, and that is said
$ echo '{"schema":"heapcore-report/1","complete":true}' >a
$ heapcore diff a a
| old  a: ?, ? of private memory, INCOMPLETE as a report
| new  a: ?, ? of private memory, INCOMPLETE as a report
|
| WHAT CHANGED
|   Nothing changed of what can be compared.
|
| More: heapcore diff --only=classes --rows=20 a a
! heapcore: a: it has no description of the process: these are not compared
! heapcore: a: it has no totals: these are not compared
! heapcore: a: it has no rows of where: these are not compared
! heapcore: a: it has no arenas: these are not compared
! heapcore: a: it has no size classes: these are not compared
! heapcore: a: it has no description of the process: these are not compared
! heapcore: a: it has no totals: these are not compared
! heapcore: a: it has no rows of where: these are not compared
! heapcore: a: it has no arenas: these are not compared
! heapcore: a: it has no size classes: these are not compared
? 3

# a section that neither has
$ echo '{"schema":"heapcore-report/1","complete":true}' >a
$ heapcore diff -q --only=types a a
| old  a: ?, ? of private memory, INCOMPLETE as a report
| new  a: ?, ? of private memory, INCOMPLETE as a report
|
| TYPES
|   none
? 3

# what JSON is not a report
$ echo '{"schema":"other/1"}' >a
$ heapcore diff a a
! heapcore: a: not a report: it is other JSON
!   heapcore analyze --json -o FILE writes one.
? 2

# JSON that is cut off, and other errors, by their place
$ printf '{"schema":"heapcore-report/1",\n"where":[' >a
$ printf '{"schema":\nheapcore}' >b
$ heapcore diff a a || heapcore diff b b
! heapcore: a: is cut off: the JSON ends too soon, in line 2
! heapcore: b: malformed JSON in line 2, column 8
? 2

# nothing of a report reaches the terminal as it is
$ printf '{"schema":"heapcore-report/1","target":{"program":"a\\u001b[2J"},"arenas":[{"name":"\\u001b[31m","mapped_bytes":5,"used_bytes":5,"free_bytes":0,"used_blocks":1}]}' >a
$ printf '{"schema":"heapcore-report/1","target":{"program":"b"},"arenas":[]}' >b
$ heapcore diff --only=arenas a b
| old  a: a\x1b[2J, ? of private memory, INCOMPLETE as a report
| new  b: b, ? of private memory, INCOMPLETE as a report
|
| ARENAS                     old       new    change    in use      free
|   \x1b[31m                   5         -        -5        -5         0
|   total                      5         -        -5        -5         0
|
| Incomplete (status 3): both reports are: heapcore analyze says why.
! heapcore: a: it has no totals: these are not compared
! heapcore: a: it has no rows of where: these are not compared
! heapcore: a: it has no size classes: these are not compared
! heapcore: b: it has no totals: these are not compared
! heapcore: b: it has no rows of where: these are not compared
! heapcore: b: it has no size classes: these are not compared
! heapcore: these are of different programs: a\x1b[2J and b
? 3
