# SPDX-License-Identifier: MIT
# A worker of php-fpm, alive: idle after a thousand requests, and in one.
. "$SRC/tests/sh/tap"

cd "$TMP"
: "${PHP_FPM:=$(ls /usr/sbin/php-fpm[0-9]* 2>/dev/null | head -n 1)}"
[ "$PHP_FPM" ] || skip_all "no php-fpm"
need python3 jq
programs=$SRC/tests/truth/php

cp "$programs/worker.php" .
cat >fpm.conf <<END
[global]
error_log = $TMP/fpm.log
daemonize = no
[pool]
listen = $TMP/socket
pm = static
pm.max_children = 1
$([ "$(id -u)" != 0 ] || printf 'user = root\ngroup = root\n')
END
"$PHP_FPM" -n -F $([ "$(id -u)" != 0 ] || echo -R) -y fpm.conf \
	>fpm.out 2>&1 &
master=$!
trap 'kill -KILL $pid $master 2>/dev/null || :' EXIT
pid=
started() {
	[ -S socket ] || return
	pid=$(cat /proc/$master/task/$master/children 2>/dev/null) || return
	pid=${pid% }
	[ "$pid" ]
}
until_ok started >late || skip_all "php-fpm does not start"

requests() { "$programs/fcgi" socket "$TMP/worker.php" "$1" | grep 'rows$'; }
ok "a thousand requests" requests 1000

# It has cleaned up behind the last one as soon as it waits for another.
until_ok all_in S
"$HEAPCORE" analyze -q --json -p "$pid" >idle.json 2>refused || [ $? = 3 ] ||
	{ head -n 1 refused; finish; }
# one FILE QUERY
one() {
	jq -e "$2" "$1" && return
	jq -c '.php, .allocators, .findings' "$1"
	return 1
}
ok "idle: nothing is in use, and one chunk is kept" one idle.json '
	(.php[0] | .memory_usage_bytes == 0 and .engine_found == false and
		.memory_real_bytes == 2097152) and
	(.allocators[] | select(.name == "zend") | .used_bytes) == 0'
ok "idle: WHERE adds up" one idle.json \
	'([.where[].bytes] | add) == .target.private_bytes'

mkdir wait
"$programs/fcgi" socket "$TMP/worker.php" 0
in_request() {
	[ -e wait/usage ] && [ "$(wc -l <wait/usage)" = 3 ] && all_in S
}
until_ok in_request
"$HEAPCORE" analyze -q --json -p "$pid" >busy.json || [ $? = 3 ]
ok "in a request: in use is what PHP says" one busy.json \
	"(.allocators[] | select(.name == \"zend\") |
		[.used_bytes, .mapped_bytes]) == [$(tail -n 1 wait/usage |
		sed -E 's/(^| )0+/\1/g; s/ /, /')]"
ok "in a request: WHERE adds up" one busy.json \
	'([.where[].bytes] | add) == .target.private_bytes'
ok "its calls" one busy.json '[.php_calls[].function] ==
	["sleep", "Page::wait", "{main}"]'
ok "its objects" one busy.json '[.php_classes[] | select(.name == "Row") |
	.objects] == [200]'
ok "and who has them" one busy.json '[.php_holders[] |
	select(.name == "static Page::$rows") | .holds_bytes > 30000] ==
	[true]'
finish
