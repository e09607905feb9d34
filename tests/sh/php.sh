# SPDX-License-Identifier: MIT
# What a PHP program holds, as it says itself: its calls, what each variable
# keeps, objects by class, garbage and the collector's own counters.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

. "$SRC/tests/sh/with_php"

ok "a core" of_php held.php
[ -s report.json ] || finish

# one QUERY: jq's answer is true.
one() {
	jq -e "$1" report.json && return
	jq -c "${2:-.php}" report.json
	return 1
}

"$SRC/tests/truth/php/calls" truth.txt >calls.txt
# The backtrace of PHP says of each call from where it was made.
same_calls() {
	jq -r '.php_calls as $c | range(1; $c | length) |
		"\($c[.].function) \($c[.].file) \($c[.].line // "-")"' \
		report.json >found.txt
	diff calls.txt found.txt
}
ok "calls are those of debug_backtrace()" same_calls

ok "what is in use is what PHP says" \
	one "$(awk '/^USED/ { u = $2 + 0; r = $3 + 0 } END {
		printf ".php[0] | .memory_usage_bytes == %d and " \
		       ".memory_real_bytes == %d and .used_bytes == %d",
		       u, r, u }' truth.txt)"
ok "values are all that is in use" \
	one '([.php_values[].bytes] | add) == .php[0].used_bytes' .php_values
ok "the collector's counters" \
	one "$(awk '/^GC/ { printf "%s .php[0].gc_%s == %d",
		n++ ? " and" : "", $2, $3 }' truth.txt) and
		.php[0].gc_enabled == false"

# class NAME OBJECTS [LIST]
class() {
	one "[.${3:-php_classes}[] | select(.name == \"$1\") | .objects] ==
		[$2]" .php_classes
}
ok "objects of a class" class Child 40
ok "and of the one it extends" class Store 1
ok "of one with garbage" class Pair 401
ok "closures" class Closure 41
ok "generators" class Generator 40
ok "garbage by class" class Pair 400 php_garbage
ok "and nothing else is" one '(.php_garbage | length) == 1 and
	.php[0].garbage_objects == 400 and
	.php[0].garbage_values == 600' .php_garbage

# A hundredth, and what the program needed besides.
same_held() {
	sed -n 's/^HELD //p' truth.txt | grep -v '^warm_up' >held.txt
	[ "$(wc -l <held.txt)" = 10 ] || return 1
	while read -r kind bytes name; do
		found=$(jq --arg kind "$kind" --arg name "$name" \
			'[.php_holders[] | select(.kind == $kind and
			.name == $name) | .holds_bytes] | add' report.json)
		echo "$name: PHP says $bytes, found $found"
		[ "$found" -ge $((bytes * 99 / 100 - 1500)) ] &&
			[ "$found" -le $((bytes * 101 / 100 + 1500)) ] ||
			return 1
	done <held.txt
}
ok "what variables hold, as PHP itself grew" same_held
# Each has half a megabyte; the closure of the innermost shares its own.
ok "variables of six calls" one '[.php_holders[] |
	select(.name == "$local of Store::run()") | .holds_bytes] |
	length == 5 and (map(. >= 500000 and . < 510000) | all)'
ok "no inherited property twice" one '[.php_holders[] |
	select(.name | test("items"))] | length == 1' .php_holders

# array HOLDER PATH ARRAYS ELEMENTS
array() {
	one "[.php_arrays[] | select(.holder == \"$1\" and .path == \"$2\") |
		.arrays, .elements] == [$3, $4]" '[.php_arrays[]][:20]'
}
ok "the array of a static property" array 'static Store::$items' '' 1 3000
ok "its elements are one place" array 'static Store::$items' \
	"['item 0']" 3000 6000
ok "a global array and no other" array 'global $running' '' 1 40
ok "a property of objects" array 'global $stores' '[0]->list' 40 40
ok "elements of those" array 'global $stores' '[0]->list[0]' 40 40

# Its own backslashes stay, for people too.
namespaced() {
	cat >named.php <<-\END
		<?php
		namespace App\Model;
		class Row {}
		$all = [new Row, new Row];
		posix_kill(posix_getpid(), 6);
	END
	make_core core $PHP $modules "$TMP/named.php" || return 1
	"$HEAPCORE" analyze -q --only=php core >named.txt || return 1
	grep -q '^  App.Model.Row  *2 ' named.txt && grep -qF 'App\Model\Row' \
		named.txt && return
	cat named.txt
	return 1
}
ok "namespaces" namespaced

ok "strings that repeat" one '[.php_strings[] | select(.length == 300) |
	.copies] == [250]' '[.php_strings[]][:9]'
ok "nothing of it in a redacted report" sh -c '
	"$HEAPCORE" analyze -q --json --redact --only=php core >redacted.json
	! jq -e ".php_arrays[0].path, .php_strings[0].text,
		(.php_calls[].file | select(test(\"/\")))" redacted.json'

# Names that a program makes while it runs are what it handles.
nameless() {
	cat >secret.php <<-\END
		<?php
		function f($x) {
			${"sesam_v$x"} = str_repeat("z", 2000000);
			$GLOBALS["sesam_g$x"] = str_repeat("q", 3000000);
			define("SESAM_C$x", str_repeat("d", 2000000));
			eval("class Sesam$x { static \$sesam_p = []; }
				function sesam_f$x() { posix_kill(posix_getpid(), 6); }");
			$class = "Sesam$x";
			for ($i = 0; $i < 3000; $i++)
				$class::$sesam_p[] = new $class;
			("sesam_f$x")();
		}
		f("ame");
	END
	make_core core $PHP $modules "$TMP/secret.php" || return 1
	for how in "--only=php" "--only=all --rows=all" "--json" \
		"--blocks --json" "--csv --only=types --rows=all"; do
		"$HEAPCORE" analyze -q $how core >open.txt
		"$HEAPCORE" analyze -q --redact $how core >hidden.txt
		[ -s hidden.txt ] && grep -qai sesam open.txt || {
			echo "$how: nothing to hide"; return 1; }
		! grep -ai sesam hidden.txt || return 1
	done
	"$HEAPCORE" analyze -q --json --redact core >redacted.json
	"$HEAPCORE" analyze -q --json --only=all core >named.json
	jq 'del(.target.redacted)' named.json >older.json
	for side in redacted.json named.json older.json core; do
		"$HEAPCORE" diff -q --json --only=all --redact $side core \
			>hidden.txt
		jq -e '.php_holders != [] and .types != []' hidden.txt \
			>why || [ $side = older.json ] || return 1
		! grep -ai sesam hidden.txt || return 1
		# Not one variable that came or went.
		jq -e '.php_holders // [] | all(.holds_change_bytes == 0)' \
			hidden.txt || return 1
	done
	"$HEAPCORE" diff -q --json --only=php named.json core >open.txt
	grep -q sesam open.txt &&
		jq -e '.php_holders[0] | (.kind == "global") and
			(.name | test("^global \\$0x[0-9a-f]+$")) and
			.holds_bytes >= 3000000' redacted.json
}
ok "redacted: no name that was made at run time" nameless

# A report without these names, and one with them: no variable came or went.
half_redacted() {
	for sides in "redacted.json core" "named.json redacted.json" \
		"redacted.json redacted.json"; do
		"$HEAPCORE" diff --json --only=all $sides >diff.json 2>err
		case $sides in
		*core) side=old count=1 ;;
		named*) side=new count=1 ;;
		*) side=none count=0 ;;
		esac
		echo "$sides"
		jq -e --arg side $side --argjson count $count '.complete and
			([.notes[] | select(.code == "redacted").side] ==
			[$side][:$count]) and (.php_holders | length > 0 and
			all(.holds_change_bytes == 0)) and
			($side == "new" or (.types | length > 0)) and
			(.types // [] | all(.change_bytes == 0))' \
			diff.json || { cat err diff.json; return 1; }
		[ "$(grep -c 'saved with --redact: names' err)" = $count ] ||
			return 1
		! grep -i sesam diff.json || return 1
	done
}
ok "redacted: one side of a comparison" half_redacted

# Every page of the browser, two steps deep, and that of a block with the name.
screens() {
	for view in 1 2 3 4 5 6 7 8; do
		printf '%s\n:screen a\n<Enter>\n:screen b\nG<Enter>\n:screen c\n' \
			$view
	done >keys
	printf ':%s\n:screen at\nG\n:screen end\n' "$at<Enter>" >>keys
	"$HEAPCORE" tui -q --script=keys --size=130x50 "$@" core
}
hidden_screens() {
	at=$("$HEAPCORE" analyze -q --json --search='sesam_g' core |
		jq -r '[.search.rows[] | select(.block)][0].address')
	screens >open.txt && screens --redact >hidden.txt || return 1
	echo "at $at"
	grep -ci sesam open.txt && grep -c '^== ' hidden.txt &&
		grep -q 'php object 0x' hidden.txt || return 1
	! grep -ie sesam -e '73 *65 *73 *61 *6d' -e 'secret\.php.*/' -e "$TMP" hidden.txt
}
ok "redacted: nor on any page of the browser" hidden_screens

# A cache of 20000 entries of 1264 bytes, in slots of 320, 56, 320, 40, 160,
# 56, 32 and 320 bytes less what they share; its table has room for 32768.
cache() {
	exact cache.php || return 1
	one '.php_holders[0].name == "static Repository::$cache" and
		.php_holders[0].share > 0.85' '.php_holders[:3]' &&
	one '[.php_arrays[:3][] | .holder, .path, .arrays, .elements] == [
		"static Repository::$cache", "", 1, 20000,
		"static Repository::$cache", "['"'product:0'"']", 20000, 80000,
		"static Repository::$cache", "['"'product:0']['tags'"']",
		20000, 60000]' '.php_arrays[:3]' &&
	one '[.php_holders[] | select(.name == "global $blob") |
		.holds_bytes] == [3149824]' '.php_holders[:3]' || return 1
	"$HEAPCORE" analyze -q core >report.txt || return 1
	tr -s ' \n' '  ' <report.txt >flat.txt
	grep -q '1. PHP: static Repository::$cache, an array of 20000 elem' \
		flat.txt && grep -q 'ADVICE Bound what that var' flat.txt &&
		grep -q 'heapcore analyze --only=php core' flat.txt &&
		return
	cat report.txt
	return 1
}
cp report.json held.json
# browsed: the browser says the same, and Enter there leads to PHP's tables.
browsed() {
	printf '<Tab><Enter>\n:screen it\n' >keys
	"$HEAPCORE" tui -q --size=80x40 --script=keys core >screen || return 1
	printf '6<Tab><Tab>\n:screen it\n' >keys
	"$HEAPCORE" tui -q --size=80x40 --script=keys core >view || return 1
	cat screen view
	grep -q '^   static Repository::$cache ' screen &&
		grep -q '^   static Repository::$cache ' view
}
ok "a static array that grows is what stands out" cache
ok "and what the browser leads to" browsed
cp held.json report.json

# The same program with more in its cache: that is what grew.
grown() {
	make_core small $PHP $modules "$programs/cache.php" 2000 &&
	make_core large $PHP $modules "$programs/cache.php" 9000 &&
	"$HEAPCORE" diff -q --json small large >diff.json || return 1
	jq -c '.changed, .php_holders[0]' diff.json
	jq -e '.php_holders[0] |
		.name == "static Repository::$cache" and
		.holds_change_bytes > 7000 * 1200 and
		.holds_change_bytes < 7000 * 1600' diff.json &&
	jq -e '[.changed[] | select(.rule == "php") | .text |
		contains("static Repository::$cache")] == [true]' diff.json
}
ok "what grew between two cores" grown

# Damaged cores of it: see tests/fuzz/mutate.c.
mutated() {
	make_core core $PHP $modules "$programs/kinds.php" || return 1
	nice "$BUILD/tests/fuzz/mutate" -n "${PHP_MUTATIONS:-30}" -m 512 core
}
if [ -x "$BUILD/tests/fuzz/mutate" ]; then
	ok "damaged cores" mutated
else
	skip "damaged cores" "tests/fuzz/mutate is not built"
fi

# The first list of keys is of a core with all tables in it.
same_keys() {
	jq -r 'to_entries[] | select(.key | startswith("php")) |
		.key, .key + "." + (.value[] | keys[])' report.json | sort -u |
		sed '/^php_calls\.line$/d' >keys.txt
	awk '/^\.Ss php/ { ss = $2; print ss; next }
		/^\.S/ { ss = "" }
		/^\.It Cm/ && ss { print ss "." $3 }' \
		"$SRC/man/heapcore-json.5" | sort -u |
		sed '/^php_calls\.line$/d' >page.txt
	diff keys.txt page.txt
}
ok "the manual has all keys" same_keys

# Of 100 lost objects 99 are found, and no other ones.
beside_spl() {
	of_php spl.php || return 1
	lost=$(sed -n 's/^LOST //p' truth.txt)
	found=$(jq '[.php_garbage[] | select(.name == "Pair") | .objects] |
		add' report.json)
	jq -c '.php_garbage[]' report.json
	[ "$found" -le "$lost" ] && [ "$found" -ge $((lost * 99 / 100)) ] &&
		one '(.php_garbage | length) == 1' .php_garbage
}
if [ "$($PHP -r 'echo PHP_MAJOR_VERSION;')" -ge 8 ]; then
	ok "garbage beside SPL objects" beside_spl
else
	skip "garbage beside SPL objects" "7.4: none of it is seen"
fi

finish
