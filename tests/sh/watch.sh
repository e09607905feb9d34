# SPDX-License-Identifier: MIT
# heapcore watch: its lines, its ends, and that it takes no more memory after
# many looks than at first.
. "$SRC/tests/sh/tap"
need jq

# prog: 1000 blocks of 1008 bytes; SIGUSR1: so many more; SIGUSR2: a mapping of
# malloc's own, of 2M.
cat >"$TMP/prog.c" <<'END'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t wanted;
static void *last;

static void on_signal(int signal)
{
	wanted = signal;
}

static void grow(void)
{
	for (int i = 0; i < 1000; i++) {
		void **block = malloc(1000);

		memset(block, 1, 1000);
		*block = last;
		last = block;
	}
}

int main(void)
{
	sigset_t set, old;

	grow();
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, &old);
	write(1, "ready\n", 6);
	for (;;) {
		sigsuspend(&old);
		if (wanted == SIGUSR1)
			grow();
		else if (wanted == SIGUSR2)
			memset(malloc(2 << 20), 1, 2 << 20);
		wanted = 0;
		write(1, "ready\n", 6);
	}
}
END
cd "$TMP"
$CC -O0 -fno-builtin -w -o prog prog.c
mkfifo ready
./prog >ready &
PID=$!
trap 'kill -KILL $PID ${OTHER-} ${WATCH-} 2>/dev/null || :' EXIT
exec 3<ready
read -r word <&3
"$HEAPCORE" analyze -q -p $PID >/dev/null 2>refused ||
	skip_all "$(head -n 1 refused)"

# holds FILTER FILE: true of the list of the file's lines.
holds() {
	jq -es "$1" "$2" >/dev/null && return
	cat "$2"
	return 1
}

watch() {
	"$HEAPCORE" watch "$@" -p $PID
}

ok "so many looks" is 0 watch --every=50ms --count=3
# On a busy machine it stands still for so long that it is less often.
ok "a heading, three lines, an end" sh -c '
	grep -qE "^watch of process $0: prog, every 0.05 s( or less often:)?$" \
		out &&
	[ "$(grep -cE "^  [0-9][0-9]:[0-9][0-9]:[0-9][0-9] " out)" = 3 ] &&
	[ "$(grep -cE "^20[0-9-]+ +RSS +in use +change +free RSS +trim" out)" = 1 ] &&
	grep -qE "^  3 looks in [0-9.]+ s; in use as before" out' $PID
ok "pauses are in milliseconds" sh -c '
	[ "$(grep -cE "^  [0-9:]{8} .* [0-9]+\.[0-9]m?s$" out)" = 3 ]'
# A look every millisecond stands still for longer than that.
often() {
	is 0 watch --every=1ms --count=2 || return
	head -3 out
	sed -n 1p out | grep -qE ', every 0.001 s or less often:$' &&
	sed -n 2p out | grep -qE '^  it runs at least 4 times as long as ' &&
	is 0 watch --every=1ms --count=2 -o text &&
	is 0 watch --every=1ms --count=2 -o text
}
ok "an interval that can't be kept is said to be" often
ok "no line is longer than 80" sh -c '! grep -E "^.{81}" out'
ok "as JSON" is 0 watch --every=50ms --count=3 --json
cp out looks
ok "one object a line: looks and an end" holds '
	length == 4 and ([.[].kind] == ["look", "look", "look", "end"]) and
	.[3].why == "count" and .[3].looks == 3 and .[3].failed_looks == 0' \
	looks
ok "times go on" holds '.[0].elapsed_s < .[1].elapsed_s and
	.[1].elapsed_s >= 0.049 and .[2].elapsed_s >= 0.099 and
	.[0].time_s > 1600000000 and .[0].time_s < .[2].time_s' looks
ok "only the first look has no change" holds '
	[.[:3][] | has("used_change_bytes")] == [false, true, true]' looks
"$HEAPCORE" analyze -q --json -p $PID >report.json
ok "the numbers are those of analyze" sh -c '
	jq -n --slurpfile l looks --slurpfile r report.json "
		\$l[0] as \$l | \$r[0] as \$r |
		\$l.used_bytes == \$r.totals.used_bytes and
		\$l.free_bytes == \$r.totals.free_bytes and
		\$l.free_resident_bytes == \$r.totals.free_resident_bytes and
		\$l.used_blocks == \$r.totals.used_blocks and
		\$l.mapped_bytes == \$r.totals.mapped_bytes and
		\$l.trimmable_bytes ==
			([\$r.allocators[].trimmable_bytes] | add) and
		\$l.mmapped_bytes ==
			([\$r.allocators[].mmapped_bytes] | add) and
		\$l.arenas == ([\$r.allocators[].arenas] | add)" | grep -qx true'
# The kernel counts in steps, each thread some pages of its own.
rss=$(awk '/^VmRSS/ { print $2 * 1024 }' /proc/$PID/status)
ok "resident memory is that of the kernel" holds \
	".[0].rss_bytes - $rss | fabs < 1048576" looks
# A busy machine leaves out looks that are late.
ok "a time to end after" is 0 watch --every=100ms --for=350ms --json
ok "four looks in 350 ms" holds '.[-1].why == "time" and
	.[-1].looks <= 4 and .[-1].looks == length - 1' out
ok "the first look comes at once" sh -c '
	timeout 300 "$HEAPCORE" watch --every=1d --count=1 -p $0' $PID

# next: the next line of the watch, which writes to the pipe "lines".
next() {
	read -r line <&4
	printf '%s\n' "$line" >line
}
start() {
	rm -f lines
	mkfifo lines
	"$HEAPCORE" watch --json "$@" -p $PID >lines 2>errors &
	WATCH=$!
	exec 4<lines
	next
}
# finish_watch SIGNAL: its status, the rest of its lines in "rest".
finish_watch() {
	kill "-$1" $WATCH
	cat <&4 >rest
	status=0
	wait $WATCH || status=$?
}

# Background jobs of a shell ignore SIGINT; so does what they start.
sum=0
# grown_by BYTES: by the next line.  A look may have been in the middle.
grown_by() {
	next && sum=$((sum + $(jq .used_change_bytes line))) && [ $sum = "$1" ]
}
mapped() {
	until_ok grown_by 2101248 && jq -e '.mmapped_bytes == 2101248' line
}
start --every=200ms
kill -USR1 $PID
read -r word <&3
ok "growth is seen, line by line, while it runs" until_ok grown_by 1008000
kill -USR2 $PID
read -r word <&3
ok "and a mapping of malloc's" mapped
finish_watch TERM
ok "a signal ends it" [ $status = 0 ]
ok "with a last line" holds '.[-1].kind == "end" and
	.[-1].why == "signal" and .[-1].used_change_bytes == 3109248' rest
exec 4<&-
# ends_by SIGNAL FILE [OPTION]...: once its first line is there.
ends_by() {
	signal=$1 file=$2
	shift 2
	rm -f "$file"
	"$HEAPCORE" watch --every=1h -p $PID "$@" >out &
	WATCH=$!
	until_ok grep -qs '^  ..:..:.. ' "$file" && kill "-$signal" $WATCH &&
		wait $WATCH && grep -q '^IN ALL' "$file"
}
ok "Ctrl-C ends it too" ends_by INT out
ok "the process is as before: not traced, not stopped" sh -c '
	grep -q "^TracerPid:.0$" /proc/$0/status &&
	grep -q "^State:.S" /proc/$0/status' $PID

# hangup IGNORE END: lines printed one by one until a SIGHUP, or until END
# seconds have passed.
hangup() {
	rm -f hup
	sh -c '[ -z "$1" ] || trap "" HUP
		exec "$HEAPCORE" watch --json --every=50ms --for=$2 -p $0' \
		$PID "$1" "$2" >hup &
	WATCH=$!
	until_ok [ -s hup ] || return
	kill -HUP $WATCH
	wait $WATCH && jq -es ".[-1].why == \"$3\"" hup
}
ok "the end of the terminal ends it" hangup "" 1h signal
ok "unless that is to be ignored" hangup ignore 2s time

# Nobody reads any more: it ends by SIGPIPE, without a word.
ok "a closed pipe" sh -c '
	("$HEAPCORE" watch --every=20ms -p $0 2>words; echo $? >status) |
		head -n 1
	[ "$(cat status)" = 141 ] && [ ! -s words ]' $PID
[ ! -w /dev/full ] || ok "a full disk" is 2 sh -c \
	'"$HEAPCORE" watch --every=20ms -p $0 >/dev/full' $PID

# ---- files ----

ok "a file has its lines at once" ends_by TERM log -o log
ok "nobody else may read it" sh -c '
	[ "$(stat -c %a log)" = 600 ] && [ "$(ls log*)" = log ]'
ok "it is replaced by another watch" is 0 watch --count=1 -o log --json
ok "and again" is 0 watch --count=1 -o log
echo "mine" >own
ok "other files are not" is 2 watch --count=1 -o own
ok "unless forced" is 0 watch --count=1 -o own --force

# ---- the end of the process ----

./prog >ended &
OTHER=$!
until grep -q ready ended; do sleep 0.02; done
# After the first look, it ends.
gone() {
	rm -f out
	"$HEAPCORE" watch --every=1h --json -p $OTHER >out 2>err &
	WATCH=$!
	until_ok [ -s out ] || return
	kill -ALRM $OTHER
	status=0
	wait $WATCH || status=$?
	cat err
	[ $status = 3 ] &&
		grep -qx "heapcore: process $OTHER: has ended" err &&
		holds 'length == 2 and .[-1].why == "gone"' out
}
ok "the process ends: said at once, 3" gone
wait $OTHER || :
ok "no such process: 2" is 2 "$HEAPCORE" watch -p $OTHER
ok "nothing was printed" [ ! -s out ]

# ---- memory ----

# after COUNT: reads so many lines; then what memory of its own heapcore has, in
# KiB, and what its blocks in use come to, by our own account.  In a look it
# holds a copy of the process: it has to stand in ppoll, until the next one, or
# in write, until somebody reads.
after() {
	for i in $(seq "$1"); do next || return; done
	pid=$WATCH
	until_ok stop_in "271 1 73 64" || return
	rss=$(awk '/^RssAnon/ { print $2 }' /proc/$WATCH/status)
	held=$("$HEAPCORE" analyze -q --json -p $WATCH | jq .totals.used_bytes)
	maps=$(wc -l </proc/$WATCH/maps)
	fds=$(ls /proc/$WATCH/fd | wc -l)
	kill -CONT $WATCH
}
flat() {
	start --every=5ms
	# What it needs for the first time, it has by then.
	after 20 || return
	early_rss=$rss early_held=$held
	after 180 || return
	finish_watch TERM
	echo "after 20 looks ${early_rss}K, after 200 ${rss}K; blocks" \
		"$early_held, $held; $maps mappings, $fds descriptors"
	[ "$rss" -lt $((early_rss + 256)) ] && [ "$early_held" -gt 0 ] &&
		[ "$held" -lt $((early_held + 2048)) ] &&
		[ "$maps" -lt 150 ] && [ "$fds" -lt 20 ]
}
if sanitized; then
	skip "200 looks take no more memory than 20" "built with sanitizers"
else
	ok "200 looks take no more memory than 20" flat
fi

# The peak has none of that doubt: a leak of a page a look would be 720K.
peak() {
	high=$(./peak "$HEAPCORE" watch --every=2ms --count="$1" -p $PID)
}
same_peak() {
	$CC -o peak "$SRC/tests/truth/peak.c" && peak 20 && first=$high &&
		peak 200 || return
	echo "peak of 20 looks ${first}K, of 200 ${high}K"
	[ "$high" -lt $((first + 512)) ]
}
if sanitized; then
	skip "nor is their peak any higher" "built with sanitizers"
else
	ok "nor is their peak any higher" same_peak
fi

# ---- the manual ----

mkdir bin
ln -s "$HEAPCORE" bin/heapcore
PATH=$TMP/bin:$PATH
export PID PATH
sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/s/^\.Dl \$ //p' \
	"$SRC/man/heapcore-watch.1" >examples
while read -r line; do
	rm -f appd.log
	ok "manual: $line" is 0 sh -c "$line"
done <examples
ok "manual: three examples" [ "$(wc -l <examples)" -ge 3 ]
awk '
	/^\.Ss look/ { on = "look." }
	/^\.Ss end/ { on = "end." }
	/^\.Sh/ { on = "" }
	on && /^\.It Cm/ {
		for (i = 3; i <= NF; i++)
			if ($i != ",")
				print on $i
	}' "$SRC/man/heapcore-watch.1" | sort -u >told
jq -r '.kind as $k | keys[] | $k + "." + .' looks | sort -u >printed
ok "JSON: each key is in the manual, and the reverse" cmp told printed

finish
