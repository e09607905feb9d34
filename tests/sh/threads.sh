# SPDX-License-Identifier: MIT
# Where threads stand: as gdb says, and where a stack is no everyday one.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

need_cores
need gdb python3
: "${CXX:=g++}"
TRUTH=$SRC/tests/truth

# threads FILE OPTION...: the report on core; that it is incomplete is no
# error.
threads() {
	out=$1
	shift
	"$HEAPCORE" analyze -q --only=threads "$@" core >"$out" ||
		[ $? = 3 ]
}

# as_gdb PROGRAM [pc]: all stacks of core are as gdb has them.
as_gdb() {
	"$TRUTH/stacks_gdb" core "$1" >gdb.log 2>&1 || { cat gdb.log; return 1; }
	shift
	threads report.json --json && "$TRUTH/stacks" gdb.json report.json "$@"
}

made() {
	$CXX -O2 -g -pthread -o stacks "$TRUTH/stacks.cc" &&
		make_core core "$TMP/stacks"
}

if command -v "$CXX" >/dev/null; then
	ok "a core of 16 threads of C++" made
	ok "frames, names, lines and inlined functions as gdb has them" \
		as_gdb stacks

	grouped() {
		threads text
		grep -c . text
		grep -q '^  4 threads: [0-9]*, [0-9]*, [0-9]*, [0-9]*$' text &&
			grep -q '^    #2   almost_there at stacks.cc:33, inlined$' \
				text &&
			grep -q '^    #.* app::(anonymous namespace)::measure at' \
				text &&
			[ "$(awk 'length > 80' text | wc -l)" = 0 ]
	}
	ok "threads that stand at the same place are one entry" grouped

	first() {
		threads text --rows=all
		sed -n '/^STACKS/,$p' text | sed -n 2p | tee first
		grep -q '^  thread [0-9]* stacks (SIGABRT)$' first ||
			[ "$core_writer" = gdb ]
	}
	ok "the thread that took the signal is the first" first

	redacted() {
		threads text --redact
		! sed -n '/^STACKS/,$p' text | grep 'thread [0-9]* stacks'
	}
	ok "a redacted report names no thread" redacted

	without_symbols() {
		cp stacks whole && strip stacks
		as_gdb stacks pc
		status=$?
		threads bare
		! grep -q 'stacks.cc' bare || status=1
		mv whole stacks
		return $status
	}
	ok "the same, stripped: the addresses" without_symbols

	# Where the debug file of stacks belongs.
	debug_path() {
		id=$(readelf -n stacks | sed -n 's/.*Build ID: //p')
		rest=${id#??}
		mkdir -p "debug/.build-id/${id%"$rest"}"
		echo "debug/.build-id/${id%"$rest"}/$rest.debug"
	}

	separate() {
		cp stacks whole
		objcopy --only-keep-debug stacks stacks.dbg &&
			strip stacks || return 1
		cp stacks bare.exe
		objcopy --add-gnu-debuglink=stacks.dbg stacks || return 1
		as_gdb stacks
		status=$?
		# By the build id, below a folder of its own.
		mv bare.exe stacks
		mv stacks.dbg "$(debug_path)"
		threads by_id.json --json --debug-dir=debug &&
			"$TRUTH/stacks" gdb.json by_id.json || status=1
		mv whole stacks
		return $status
	}
	ok "debug information in a file of its own" separate

	# One of another build, where that of this one should be.
	lie() {
		cp stacks whole
		strip stacks
		echo 'int main(void) { return 7; }' | $CC -g -o other -xc - ||
			return 1
		cp other "$(debug_path)"
		"$HEAPCORE" analyze --only=threads --debug-dir=debug core \
			>text 2>err || [ $? = 3 ] || return 1
		cat err
		mv whole stacks
		grep -q 'another build id: not used' err &&
			! grep -q 'stacks.cc' text
	}
	ok "debug information of another build is not used" lie
	cp stacks stacks.whole && mv core core.stacks
else
	skip "a program in C++" "no $CXX"
fi

# deep MODE...: a core of it, and its report.
deep() {
	make_core core "$TMP/deep" "$@" && threads text && cat text
}

built() {
	$CC -O2 -g -fomit-frame-pointer -fno-optimize-sibling-calls \
		-fno-stack-protector -o deep "$TRUTH/deep.c"
}
ok "a program without frame pointers" built

recursion() {
	deep deep 100000 || return 1
	threads report.json --json || return 1
	# abort() is 3 frames or so deep itself, main() stands on 3.
	python3 -c '
import json
t = json.load(open("report.json"))["threads"][0]
frames = [f for f in t["frames"] if f["name"] == "deep"]
last = [f for f in t["frames"] if f["name"] == "main"][0]["frame"]
first = frames[0]["frame"]
print(t["frame_count"], t["frames_left_out"], first, last)
assert last - first == 100000, (first, last)
assert t["frame_count"] > last and len(t["frames"]) == 256
assert t["frames_left_out"] + 256 == t["frame_count"]
assert t["stack_end"] == "outermost"' &&
		grep -q '^ *[0-9]* frames more$' text &&
		grep -q ' main at deep.c' text
}
ok "a recursion of 100000 calls" recursion

# What was a return address is text now.
smashed() {
	deep smashed
	grep -q ' smash at deep.c' text && ! grep -q ' main at' text &&
		grep -q 'goes on, but the return address is not of code' text
}
ok "a stack that was overwritten ends with words" smashed

bad() {
	deep bad
	grep -q '#1 *bad_call at deep.c.* (a guess)$' text || return 1
	as_gdb deep
}
ok "a call of a null pointer" bad

handler() {
	deep signal
	grep -q 'way back from a signal handler' text || return 1
	as_gdb deep
}
ok "a signal handler" handler

# Half of what dwz takes out of two programs; then it is gone, or another.
halves() {
	cp stacks.whole half && cp stacks.whole other_half &&
		dwz -m shared -M "$TMP/shared" half other_half || return 1
	mv core.stacks core
	status=0
	for shared in right gone wrong; do
		case $shared in
		gone) mv shared away ;;
		wrong) cp deep shared ;;
		esac
		"$HEAPCORE" analyze --only=threads --exe=half core >text \
			2>err || [ $? = 3 ] || return 1
		cat err
		case $shared in
		right)	grep -q 'measure at stacks.cc' text || status=1 ;;
		gone)	grep -q 'needs .*shared.*not used' err || status=1
			! grep -q 'stacks.cc' text || status=1 ;;
		wrong)	grep -q 'another build id: not used' err || status=1
			! grep -q 'stacks.cc' text || status=1 ;;
		esac
	done
	return $status
}
if [ ! -e core.stacks ]; then
	skip "debug information in two halves" "no $CXX"
elif ! command -v dwz >/dev/null; then
	skip "debug information in two halves" "no dwz"
else
	ok "debug information in two halves" halves
fi

# Names of its C library are those of .dynsym alone, and gdb picks others.
in_32_bits() {
	for mode in 'deep 30' bad signal; do
		# shellcheck disable=SC2086
		make_core core "$TMP/deep32" $mode && as_gdb deep32 pc ||
			return 1
	done
	threads text
	grep -q '\[vdso\]' text
}
if [ "$(uname -m)" = x86_64 ] && $CC -m32 -O2 -g -fomit-frame-pointer \
	-fno-optimize-sibling-calls -o deep32 "$TRUTH/deep.c" 2>/dev/null
then
	ok "a 32-bit program" in_32_bits
else
	skip "a 32-bit program" "$CC makes none"
fi

no_file() {
	deep signal && mv deep gone || return 1
	threads text --no-files
	cat text
	mv gone deep
	grep -q 'nothing says who called it' text
}
ok "a program that is gone" no_file

# The kernel's own page has the tables for what it runs.
real() {
	# python3 can be a script that calls it.
	for program in "$(command -v perl)" \
		"$(python3 -c 'import sys; print(sys.executable)')"; do
		case $program in
		'') continue ;;
		*perl) set -- -e 'my @s = sort { kill ABRT => $$; 1 } 1, 2' ;;
		*) set -- -c 'import os; sorted([2, 1], key=lambda x: os.abort())' ;;
		esac
		program=$(readlink -f "$program")
		make_core core "$program" "$@" && as_gdb "$program" pc ||
			return 1
	done
}
ok "perl and python3" real

running() {
	"$TMP/deep" stay >ready &
	pid=$!
	until_ok grep -q ready ready && until_ok all_in S || return
	"$HEAPCORE" analyze -q --only=threads -p $pid >text || [ $? = 3 ]
	status=$?
	rm -f core
	"$HEAPCORE" snapshot -q -p $pid -o core || status=1
	threads saved || status=1
	kill $pid
	cat text saved
	grep -q '^  thread [0-9]* deep$' text &&
		grep -q '#[12] *main at deep.c' text &&
		grep -q '#[12] *main at deep.c' saved && return $status
}
if (exec "$HEAPCORE" analyze -q -p $$ >/dev/null 2>&1) || [ $? != 2 ]; then
	ok "a running process, and its snapshot" running
else
	skip "a running process, and its snapshot" "no ptrace"
fi
finish
