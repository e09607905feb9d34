# a process is needed
$ heapcore watch
! heapcore: no process given: --pid=PID
!   Try heapcore watch --help.
? 2

# and nothing else
$ heapcore watch -p 1 core
! heapcore: 'core' is too much: the process is --pid
!   Try heapcore watch --help.
? 2

# times
$ for t in 0 -1s 1w 10sec x 1s1 nan 1e9d ''; do heapcore watch --every="$t" -p 1 || s=$?; done; exit $s
! heapcore: --every: '0' is no time from 1ms to 1000d, such as 500ms, 10s or 1m
!   Try heapcore watch --help.
! heapcore: --every: '-1s' is no time from 1ms to 1000d, such as 500ms, 10s or 1m
!   Try heapcore watch --help.
! heapcore: --every: '1w' is no time from 1ms to 1000d, such as 500ms, 10s or 1m
!   Try heapcore watch --help.
! heapcore: --every: '10sec' is no time from 1ms to 1000d, such as 500ms, 10s or 1m
!   Try heapcore watch --help.
! heapcore: --every: 'x' is no time from 1ms to 1000d, such as 500ms, 10s or 1m
!   Try heapcore watch --help.
! heapcore: --every: '1s1' is no time from 1ms to 1000d, such as 500ms, 10s or 1m
!   Try heapcore watch --help.
! heapcore: --every: 'nan' is no time from 1ms to 1000d, such as 500ms, 10s or 1m
!   Try heapcore watch --help.
! heapcore: --every: '1e9d' is no time from 1ms to 1000d, such as 500ms, 10s or 1m
!   Try heapcore watch --help.
! heapcore: option '--every' has an empty value: --every=TIME
!   Try heapcore watch --help.
? 2

# a number of looks
$ heapcore watch --count=0 -p 1
! heapcore: --count: '0' is not a number from 1 on
!   Try heapcore watch --help.
? 2

# a time to end after
$ heapcore watch --for=never -p 1
! heapcore: --for: 'never' is no time from 1ms to 1000d, such as 500ms, 10s or 1m
!   Try heapcore watch --help.
? 2

# no such process
$ heapcore watch -p 2147483647 -o log; s=$?; ls; exit $s
!~ ^heapcore: process 2147483647: .*
! ...
? 2

# a full disk
$ heapcore watch --count=2 --every=10ms -p $$ >/dev/full
! heapcore: standard output: No space left on device
? 2
