# SPDX-License-Identifier: MIT
# The browser in real terminals.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

need tmux
sessions=4000
. "$SRC/tests/sh/tui_prog"

unset TMUX
# Its own terminal does not matter here.
TERM=xterm
export TERM
T="tmux -f /dev/null -S $TMP/tmux"
$T new-session -d -s stays cat || { skip "terminals" "no tmux"; finish; }
trap '$T kill-server 2>/dev/null || :' EXIT

seen() {
	$T capture-pane -p -t s >pane 2>/dev/null && grep -qE -e "$1" pane
}
wait_for() {
	until_ok seen "$1" && return
	echo "no '$1' in"
	cat pane
	return 1
}
# open_in TERM [OPTION...]: a shell in which the browser runs.
open_in() {
	term=$1
	shift
	$T kill-session -t =s 2>/dev/null || :
	$T new-session -d -s s -x 80 -y 24 \
		"PS1='ready\$ ' ENV= LC_ALL=C.UTF-8 sh" || return 1
	wait_for 'ready\$' || return 1
	$T send-keys -t s "stty -a >before; ${before-} TERM=$term $HEAPCORE tui -q $* core.1; echo status \$?" Enter
}
works_in() {
	open_in "$@" && wait_for 'in use by the program' || return 1
	$T send-keys -t s Down Down && wait_for '^ > ' || return 1
	$T send-keys -t s 6 && wait_for '^ > . g_sessions' || return 1
	$T send-keys -t s Enter && wait_for 'AT THIS ADDRESS' || return 1
	$T send-keys -t s Escape && wait_for '^ > . g_sessions' || return 1
	$T send-keys -t s q && wait_for 'status 0' || return 1
	restored
}
# Is the alternate screen there, does the mouse report?
screen_is() {
	[ "$($T display-message -p -t s '#{alternate_on}#{mouse_any_flag}')" = \
		"$1" ]
}
# The modes are as they were.
restored() {
	screen_is 00 || return 1
	rm -f after
	$T send-keys -t s 'clear; stty -a >after; echo done' Enter &&
		wait_for '^done' && cmp before after
}
for term in xterm-256color screen tmux-256color linux vt100; do
	if command -v infocmp >/dev/null && infocmp $term >/dev/null 2>&1; then
		ok "in $term" works_in $term
	else
		skip "in $term" "it is not known here"
	fi
done
ok "without colours" works_in tmux-256color --color=never
# Roles have colours, and with NO_COLOR attributes only.
colours() {
	open_in xterm-256color "$1" && wait_for 'in use by the program' ||
		return 1
	$T capture-pane -e -p -t s >ansi
	$T send-keys -t s q && wait_for 'status 0' || return 1
	esc=$(printf '\033')
	# Bold headings, reverse bars and cursor.
	grep -q "$esc\[[0-9;]*1[;m].*WHERE THE MEMORY" ansi &&
		[ "$(grep -c "$esc\[[0-9;]*7[;m]" ansi)" -ge 3 ] || return 1
	if grep -q "$esc\[[0-9;]*3[1-6][;m]" ansi; then
		[ "$1" = --color=auto ]
	else
		[ "$1" = --color=never ]
	fi
}
ok "headings, graphs in colours" colours --color=auto
ok "none, but bold and reverse" colours --color=never
unknown() {
	open_in "$1" && wait_for 'status 2' && grep -q "$2" pane &&
		grep -q 'heapcore analyze' pane
}
ok "dumb is explained" unknown dumb "'dumb' cannot show"
ok "an unknown one is explained" unknown no-such-term 'is not known'

browser() {
	$T list-panes -t s -F '#{pane_pid}' >shell &&
		child=$(cat "/proc/$(cat shell)/task/$(cat shell)/children") &&
		[ -n "$child" ]
}
mouse_on() {
	$T send-keys -t s :mouse Enter && wait_for 'clicks and wheel' &&
		screen_is 11
}
killed_by() {
	open_in tmux-256color && wait_for 'in use by the program' || return 1
	mouse_on && until_ok browser || return 1
	kill -"$1" $child && wait_for "status $2" && restored
}
ok "terminated, the terminal is as it was" killed_by TERM 143
ok "hung up" killed_by HUP 129
ok "aborted" killed_by ABRT 134
ok "a fault" killed_by SEGV 139
ok "quit" killed_by QUIT 131
ok "interrupted" killed_by INT 0
# inner: the browser itself, child being who waits for it.
children_of() {
	cat "/proc/$1/task/$1/children"
}
browser_itself() {
	browser && inner=$(children_of "${child% }") && [ -n "$inner" ] &&
		[ -z "$(children_of "${inner% }")" ]
}
# It can do nothing about it: the out-of-memory killer's way.  With keys: later.
killed_outright() {
	open_in tmux-256color && wait_for 'in use by the program' || return 1
	for key; do
		$T send-keys -t s $key && wait_for "\[$key " || return 1
	done
	mouse_on && until_ok browser_itself || return 1
	kill -KILL ${inner% } && wait_for 'status 137' && restored
}
ok "killed outright" killed_outright
ok "killed outright later" killed_outright 6 7
# Once something was computed, another process is the browser.
killed_later() {
	open_in tmux-256color && wait_for 'in use by the program' || return 1
	until_ok browser || return 1
	$T send-keys -t s 6 && wait_for '^ > . g_sessions' || return 1
	child=${child% }
	[ -n "$(cat "/proc/$child/task/$child/children")" ] && mouse_on ||
		return 1
	kill -"$1" $child && wait_for "status $2" && restored
}
ok "terminated later" killed_later TERM 143
# However often something was computed: the browser, and who waits for it.
alone() {
	inner=$(children_of "$child")
	[ "$(echo $inner | wc -w)" = 1 ] &&
		[ -z "$(children_of "${inner% }")" ]
}
few() {
	open_in tmux-256color && wait_for 'in use by the program' || return 1
	until_ok browser || return 1
	child=${child% }
	for key in 6 7 8; do
		$T send-keys -t s $key
		wait_for "\[$key " && until_ok alone || return 1
	done
	kill -KILL "$child" && until_ok [ ! -e "/proc/${inner% }" ]
}
ok "two processes, whatever was computed" few
ok "a fault later" killed_later SEGV 139
# What is computed is held until Ctrl-C has been pressed: once.
cat >hold.c <<'END'
#include <fcntl.h>
#include <signal.h>
#include <linux/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int prctl(int what, unsigned long a, unsigned long b, unsigned long c,
	  unsigned long d)
{
	sigset_t pending;

	/* The first one is the browser, the second one computes. */
	if (what == PR_SET_PDEATHSIG && access("begun", F_OK)) {
		close(creat("begun", 0600));
	} else if (what == PR_SET_PDEATHSIG && access("held", F_OK)) {
		close(creat("held", 0600));
		do {
			usleep(10000);
			sigpending(&pending);
		} while (!sigismember(&pending, SIGINT));
	}
	return syscall(SYS_prctl, what, a, b, c, d);
}
END
cancelled() {
	open_in tmux-256color && wait_for 'in use by the program' || return 1
	$T send-keys -t s 6 && until_ok [ -e held ] || return 1
	$T send-keys -t s C-c && wait_for 'cancelled' || return 1
	seen 'WHERE THE MEMORY IS' || return 1
	$T send-keys -t s 6 && wait_for '^ > . g_sessions' || return 1
	$T send-keys -t s C-c && wait_for 'status 0' && restored
}
if ! "$CC" -shared -fPIC -w -o hold.so hold.c; then
	skip "Ctrl-C ends what is computed" "no library can come before"
else
	before="LD_PRELOAD=$TMP/hold.so"
	ok "Ctrl-C ends what is computed, then the browser" cancelled
	before=
fi
# The shell has the terminal in between.
stopped() {
	open_in tmux-256color && wait_for 'in use by the program' || return 1
	$T send-keys -t s 6 && wait_for '^ > . g_sessions' || return 1
	mouse_on || return 1
	$T send-keys -t s C-z && wait_for 'status 148' && restored || return 1
	$T send-keys -t s fg Enter && wait_for '^ > . g_sessions' || return 1
	until_ok screen_is 11 || return 1
	$T send-keys -t s 2 && wait_for 'SIZE CLASSES' || return 1
	$T send-keys -t s Q && wait_for '^ready.$' && restored
}
ok "stopped, and gone on with" stopped
# Bytes as terminals send them: xterm's, and those of the older way.
clicked() {
	open_in "$1" && wait_for 'in use by the program' || return 1
	mouse_on || return 1
	$T send-keys -t s -l "$2" && wait_for '[[]3 Types[]]' || return 1
	$T send-keys -t s -l "$3" && wait_for '^ > zeros ' || return 1
	$T send-keys -t s q && wait_for 'status 0' && restored
}
ok "clicked, of xterm" clicked xterm-256color "$(printf '\033[<0;26;2M')" \
	"$(printf '\033[<65;9;9M')"
ok "clicked, of tmux" clicked tmux-256color "$(printf '\033[M :\042')" \
	"$(printf '\033[Ma))')"
no_mouse() {
	open_in vt100 && wait_for 'in use by the program' || return 1
	$T send-keys -t s :mouse Enter && wait_for 'tells of no mouse' &&
		screen_is 00 && $T send-keys -t s q && wait_for 'status 0'
}
ok "a terminal without a mouse says so" no_mouse
resized() {
	open_in tmux-256color && wait_for 'in use by the program' || return 1
	for size in '20 5' '120 40' '61 16' '200 60' '80 24'; do
		$T resize-window -t s -x ${size% *} -y ${size#* } || return 1
	done
	$T send-keys -t s 3 && wait_for '^ > session' || return 1
	$T resize-window -t s -x 20 -y 5 && wait_for '^make it 60x15' ||
		return 1
	$T resize-window -t s -x 100 -y 30 && wait_for '^ > session'
	$T send-keys -t s Q && wait_for 'status 0'
}
ok "resized" resized
finish
