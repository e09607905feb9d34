# SPDX-License-Identifier: MIT
# What judges the other tests: a test must be able to fail.
. "$SRC/tests/sh/tap"
cd "$TMP"

# judged SUMMARY STATUS OUTPUT: what becomes of this output and status?
judged() {
	printf '\001begin x\n%b\n\001end %s\n' "$3" "$2" |
		awk -f "$SRC/tests/judge" >out && status=0 || status=$?
	[ "$(tail -n 1 out)" = "$1" ] || { cat out; return 1; }
	case $1 in
	*' 0 failed'*) [ $status = 0 ] ;;
	*) [ $status = 1 ] ;;
	esac
}

ok "passed" judged "2 passed, 0 failed, 0 skipped" 0 '1..2\nok 1\nok 2 - b'
ok "failed" judged "1 passed, 1 failed, 0 skipped" 1 '1..2\nok 1\nnot ok 2'
ok "a skip with its reason" \
	judged "0 passed, 0 failed, 1 skipped" 0 '1..1\nok 1 # SKIP no x'
ok "a skip without one" \
	judged "0 passed, 1 failed, 0 skipped" 1 '1..1\nok 1 # SKIP'
ok "all skipped" judged "0 passed, 0 failed, 1 skipped" 77 'no x here'
ok "all skipped without a reason" \
	judged "0 passed, 1 failed, 0 skipped" 77 ''
ok "nothing" judged "0 passed, 1 failed, 0 skipped" 0 ''
ok "an empty plan" judged "0 passed, 1 failed, 0 skipped" 0 '1..0'
ok "no plan" judged "1 passed, 1 failed, 0 skipped" 0 'ok 1'
ok "cut short" judged "1 passed, 1 failed, 0 skipped" 0 '1..2\nok 1'
ok "a crash after the last result" \
	judged "1 passed, 1 failed, 0 skipped" 139 '1..1\nok 1'
ok "a last line without its end" \
	judged "0 passed, 1 failed, 0 skipped" 1 '1..1\nnot ok 1'

# The last lines say which; the very last one remains what it is.
named() {
	printf '\001begin %s\n%b\n\001end %s\n' \
		a '1..3\nok 1\nnot ok 2 - b c\nnot ok 3' 1 d '1..1\nok 1' 139 |
		awk -f "$SRC/tests/judge" >out && return 1
	tail -n 5 out >last
	cat last
	printf '%s\n' 1..5 'failed: a: b c' 'failed: a' 'failed: d: status 139' \
		'2 passed, 3 failed, 0 skipped' | cmp - last
}
ok "what failed is named at the end" named

slow() {
	printf '\001begin %s\n1..1\nok 1\n\001end 0\n\001times %s\n' \
		a '0m9.000000s 0m0.900000s' b '1m2.500000s 0m3.000000s' |
		awk -f "$SRC/tests/judge" >out || return
	grep '^#' out >slow
	cat slow
	printf '%s\n' '# 66 s of processor: b' '# 75 s of processor in all' |
		cmp - slow
}
ok "what is slow is named" slow

# What a sanitizer writes of a program fails the test, whatever its status.
reported() {
	mkdir -p build/tests/unit
	cat >build/tests/unit/test_num <<-'END'
		#!/bin/sh
		file=${ASAN_OPTIONS#*log_path=}
		echo overflow >"${file%%:*}.1"
		echo 1..1
		echo ok 1
	END
	chmod +x build/tests/unit/test_num
	BUILD=$TMP/build "$SRC/tests/run" unit/test_num >out && return 1
	cat out
	grep -qx '# overflow' out &&
		grep -qx 'failed: unit/test_num: status 66' out
}
ok "what a sanitizer reports is a failure" reported

# matches WANT GOT
matches() {
	printf "$1" >want
	printf "$2" >got
	awk -f "$SRC/tests/match" want got
}
differs() { ! matches "$@"; }

ok "the same lines" matches '| a\n! b\n? 0\n' '| a\n! b\n? 0\n'
ok "another line" differs '| a\n? 0\n' '| b\n? 0\n'
ok "a line on the other stream" differs '| a\n? 0\n' '! a\n? 0\n'
ok "a line more" differs '| a\n? 0\n' '| a\n| a\n? 0\n'
ok "a line less" differs '| a\n| a\n? 0\n' '| a\n? 0\n'
ok "another status" differs '| a\n? 0\n' '| a\n? 1\n'
ok "any lines" matches '| a\n| ...\n| d\n? 0\n' '| a\n| b\n| c\n| d\n? 0\n'
ok "any lines, none" matches '| ...\n? 0\n' '? 0\n'
ok "any lines, but of one stream" differs '| ...\n? 0\n' '| a\n! b\n? 0\n'
ok "an expression" matches '|~ ^[0-9]+$\n? 0\n' '| 17\n? 0\n'
ok "an expression that does not" differs '|~ ^[0-9]+$\n? 0\n' '| 1x\n? 0\n'

# The tree with one include that looks up.
layers() {
	mkdir -p src/base
	echo '#include "report/table.h"' >src/base/up.c
	! awk -f "$SRC/tests/layers" src/base/up.c
}
ok "an include that looks up" layers

finish
