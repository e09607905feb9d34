# SPDX-License-Identifier: MIT
# heapcore record of what becomes another program by exec: shells, env, shims
# of version managers.  The trace is that of the last one, and one line says so.
. "$SRC/tests/sh/tap"
cd "$TMP"
need jq
$CC -O0 -fno-builtin -w -o become "$SRC/tests/record/become.c" ||
	skip_all "no compiler"
PATH=$TMP:$PATH

# sizes TRACE: which of the two blocks it has.
sizes() {
	"$HEAPCORE" trace verify "$1" >/dev/null &&
	"$HEAPCORE" trace dump "$1" |
		awk '$5 == 11111 || $5 == 22222 { printf "%s ", $5 }'
}
is() {
	[ "$1" = "$2" ] || { echo "'$1', not '$2'"; return 1; }
}
ours_in() {
	grep -E 'HEAPCORE_RECORD|heapcore-record' "$@"
}

# becomes HOW ARGUMENTS: the second image has t.trace, the first t.trace.1.
becomes() {
	rm -f t.trace*
	status=0
	"$HEAPCORE" record -o t.trace -- "$TMP/become" "$1" >out 2>err ||
		status=$?
	cat out err
	[ $status = 7 ] && grep -qx "$2 arguments" out && ! ours_in out &&
	is "$(sizes t.trace)" '22222 ' && is "$(sizes t.trace.1)" '11111 ' &&
	is "$(echo t.trace*)" 't.trace t.trace.1' &&
	is "$(head -1 err)" "heapcore: $TMP/t.trace is of become; before, this\
 process was become (t.trace.1)" &&
	is "$(wc -l <err)" 2 &&
	"$HEAPCORE" trace info t.trace.1 | grep -q 'by executing another'
}
for how in execv execve execvp execvpe execl execlp execle fexecve; do
	ok "$how" becomes $how 2
done
ok "400 arguments" becomes many 400

# stays HOW BLOCKS: one image, one file, one line.
stays() {
	rm -f t.trace*
	status=0
	"$HEAPCORE" record -o t.trace -- "$TMP/become" "$1" >out 2>err ||
		status=$?
	cat err
	[ $status = 7 ] && ! ours_in out && is "$(echo t.trace*)" t.trace &&
	is "$(sizes t.trace)" "$2" && is "$(wc -l <err)" 1
}
ok "an exec that fails" stays fails '11111 22222 '
ok "an exec of NULL" stays null '11111 22222 '
ok "an exec of what cannot be read" stays unreadable '11111 22222 '
ok "a child of vfork that becomes another" stays vfork '11111 22222 '

# last FILE TRACES PROG...: the last image's is FILE, besides so many others.
last() {
	file=$1 others=$2
	shift 2
	rm -f t.trace*
	status=0
	"$HEAPCORE" record -o t.trace $children -- "$@" >out 2>err || status=$?
	cat out err
	[ $status = 7 ] && is "$(sizes t.trace)" "$blocks" &&
	is "$(find . -name 't.trace.[0-9]' | wc -l)" "$others" &&
	is "$(basename "$("$HEAPCORE" trace info --json t.trace |
		jq -r .trace.program)")" "$file" &&
	tail -1 err | grep -q "next: heapcore replay --exact $TMP/t.trace$"
}
children='' blocks='22222 '
ok "sh -c 'exec ...'" last become 1 sh -c 'exec become end'
ok "env" last become 1 env A=1 become end
cat >shim <<'END'
#!/bin/sh
found=$(command -v become)
(exec "$found" end >/dev/null)
exec "$found" "$@"
END
cat >manager <<'END'
#!/bin/sh
exec env SHIM=1 "$PWD/shim" "$@"
END
chmod +x shim manager
ok "a script that execs a script that execs" last become 3 ./manager end
children=--children
ok "--children: the last line has the right one" \
	last become 1 sh -c 'become end >/dev/null; exec become end'
# Each run replaces what the one before had left, and no other file.
again() {
	rm -f t.trace*
	echo mine >t.trace.1
	for i in 1 2 3; do
		"$HEAPCORE" record -q -o t.trace -- become execv >out
	done
	is "$(cat t.trace.1)" mine && is "$(echo t.trace*)" \
		't.trace t.trace.1 t.trace.2' &&
	is "$(sizes t.trace.2)" '11111 '
}
ok "again: traces are replaced, and nothing else" again
# One that never comes to an end is given up at some time, not recorded on.
loop() {
	rm -f t.trace*
	"$HEAPCORE" record -q -o t.trace -- become loop >out
	[ $? = 7 ] && ! ours_in out && echo t.trace* && ls t.trace* >files &&
		is "$(wc -l <files)" 32
}
ok "one that becomes itself over and over" loop

# What cannot be recorded is named.
unseen() {
	rm -f t.trace*
	"$HEAPCORE" record -o t.trace -- sh -c 'exec ./static' 2>err
	[ $? = 7 ] && cat err && is "$(wc -l <err)" 2 &&
		grep -q 'ends where ./static was executed, which made no' err
}
# The loader has no descriptor left to open its libraries with.
unstarted() {
	rm -f t.trace*
	"$HEAPCORE" record -o t.trace -- sh -c 'ulimit -n 0; exec become end' \
		2>err
	[ $? = 127 ] && cat err &&
		grep -q 'become was executed, .* or did not start$' err
}
ok "a program that does not start" unstarted
echo 'int main(void) { return 7; }' >static.c
if $CC -static -o static static.c 2>/dev/null; then
	ok "a static program" unseen
else
	skip "a static program" "no static libc"
fi
finish
