# a file that is not there
$ heapcore analyze core.none
! heapcore: core.none: No such file or directory
? 2

# the number of a process, and no path
$ for c in analyze "tui --script=/dev/null" "diff $$"; do
$   heapcore $c $$ 2>&1 | sed "s/$$/N/g"
$ done; heapcore analyze "" || :
| heapcore: N: no file, but a process; did you mean -p N?
| heapcore: N: no file, but a process; did you mean -p N?
| heapcore: N: no file, but a process; did you mean -p N?
! heapcore: : No such file or directory

# a folder
$ heapcore analyze .
! heapcore: .: is a directory
? 2

# a program
$ cp "$HEAPCORE" prog; heapcore analyze prog
! heapcore: prog: not a core file: it is an ELF program
!   Give the core file; the program goes to --exe.
? 2

# a text, and nothing
$ echo hello >text; heapcore analyze text || : >empty; heapcore analyze empty
!~ ^heapcore: text: not a core file
!~ ^heapcore: empty: 
? 2

# a name cannot move the cursor
$ heapcore analyze "$(printf '\033[2Jx')"
! heapcore: \x1b[2Jx: No such file or directory
? 2

# the report's place is looked at before the work
$ echo precious >notes; heapcore analyze -o notes core.none || cat notes
| precious
! heapcore: notes: exists and is not a report of heapcore
!   Use --force to replace it.

# nothing is left of a report that was not made
$ heapcore analyze -o new core.none || ls
! heapcore: core.none: No such file or directory

# what is read is not what is written, by any of its names
$ echo hello >text; ln -s text link; heapcore analyze --force -o link text
! heapcore: -o link: this is the same file as text, which is read
!   Try heapcore analyze --help.
? 2
