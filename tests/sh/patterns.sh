# SPDX-License-Identifier: MIT
# What repeats in a heap, against strings(1) and a program that knows.
. "$SRC/tests/sh/tap"
without_debug_files "$@"
. "$SRC/tests/sh/core"

need_cores
need python3
: "${CXX:=g++}"
truth=$SRC/tests/truth

# analyze OUT OPTION...: on the core; that it is incomplete is no error.
analyze() {
	out=$1
	shift
	"$HEAPCORE" analyze -q "$@" core >"$out" || [ $? = 3 ]
}

# The same ranges for both: the bytes of the blocks in use.
as_strings() {
	blocks core && "$truth/dump_blocks" core blocks.json >dump || return
	strings -a -n 4 dump | sort | uniq -c >counts
	analyze strings.json --json --only=strings &&
		"$truth/repeated" strings strings.json counts
}

# Words, lines, and lines of words: as scripts have them.
perl_core() {
	cat >words.pl <<-'END'
	for my $i (1 .. 30000) {
		my $word = "word number " . $i % 700;
		push @all, { word => $word, "key of $i" => "line\t$word\n" x 3 };
		$index{$word}{$i % 11} .= substr($word, 0, 7 + $i % 5);
	}
	kill 'ABRT', $$;
	END
	make_core core "$(command -v env)" PERL_HASH_SEED=0 perl "$TMP/words.pl"
}

known() {
	"$CXX" -std=c++17 -O1 -g -fno-builtin-malloc -o repeats \
		"$truth/repeats.cc" && make_core core "$TMP/repeats" || return
	grep '^TRUTH' dump.log >truth.txt
	analyze report.json --json --only=strings,duplicates,patterns &&
		"$truth/repeated" facts truth.txt report.json
}

noticed() {
	"$truth/noticed" truth.txt '^(TRUTH [a-z]+ [a-z]* ?)' '\g<1>9' \
		"$truth/repeated" facts wrong.txt report.json
}

twice() {
	analyze once --only=strings,duplicates,patterns &&
		analyze again --only=strings,duplicates,patterns &&
		cmp once again && grep -q 'STRINGS THAT REPEAT' once &&
		grep -q 'UNUSED TAILS' once
}

# A sentence without being asked, with the figures of the table.
sentence() {
	analyze first --json && analyze asked --json --only=strings &&
		python3 -c '
import json, re
items = json.load(open("first"))["standout"]
rows = json.load(open("asked"))["strings"]
said = [i["text"] for i in items if i["rule"] == "strings"]
print(items, rows["total_saved_bytes"])
assert said or rows["total_saved_bytes"] < 1 << 20
assert not said or ("%d copies" % rows["total_own_blocks"]) in said[0]'
}

# No text of the process.
redacted() {
	analyze plain --only=strings &&
		grep -q '^  /srv/data' plain || return 1
	for section in strings duplicates; do
		for format in --csv --json --bytes; do
			analyze hidden $format --redact --only=$section &&
				grep -q '[35]000' hidden &&
				! grep -q '/srv' hidden || return 1
		done
	done
}

# found WHERE REGEX: as grep finds it in the same bytes, of each block; $ at its
# end is where a string ends.
found() {
	n=$((n + 1))
	LC_ALL=C grep -aoP -- "$(printf '%s\n' "$2" |
		sed 's/\$$/(?=\\x00)/')" "dump.$1" | wc -l >wanted.$n
	analyze found.$n.json --json --search="$2" --search-in="$1" --limit=all
}

searches() {
	blocks core && "$truth/dump_blocks" core blocks.json >dump.blocks &&
		"$truth/dump_blocks" core blocks.json used tcache top \
			>dump.heap || return
	n=0
	found blocks 'shard-00\d\d' && found blocks 'archive\x00' &&
		found blocks '(?i)SRV/\w+' &&
		found blocks '\d+ reserved t[a-z]*' &&
		found blocks 'shard-00\d\d$' &&
		found blocks '[b-d]{2}[a-h]{2,9}' && found heap 'text' &&
		python3 -c '
import json, sys
blocks = {}
for line in open("blocks.json"):
    block = json.loads(line)
    blocks[block["address"]] = block
for n in range(1, int(sys.argv[1]) + 1):
    search = json.load(open("found.%d.json" % n))["search"]
    want = int(open("wanted.%d" % n).read())
    print(search["matches"], "found,", want, "by grep")
    assert search["matches"] == want == len(search["rows"]) > 0
    for row in search["rows"]:
        block = blocks[row["block"]]
        assert int(row["address"], 16) == int(row["block"], 16) + row["offset"]
        assert row["offset"] + row["length"] <= block["usable"]
        assert (row["size"], row["state"], row["arena"]) == (
            block["size"], block["state"], block["arena"])
    assert search["blocks"] == len({row["block"] for row in search["rows"]})' $n
}

# One that has no end, and one that is none.
hopeless() {
	status=0
	"$HEAPCORE" analyze -q --search='(\w+\s?)+[|<]' core >out ||
		status=$?
	cat out
	[ $status = 3 ] && grep -q 'took too many' out &&
		! "$HEAPCORE" analyze --search='(a' core 2>message &&
		grep -q "'(a'.*parenthesis" message &&
		! "$HEAPCORE" analyze --search-hex=12f core 2>message
}

# Bytes, and memory that is in no block: a name in the program's own data.
elsewhere() {
	printf shard-0042 | od -An -tx1 >hex
	analyze hex.json --json --search-hex="$(cat hex)" &&
		analyze all.json --json --search='shard-0042' \
			--search-in=all --limit=2 &&
		python3 -c '
import json
a = json.load(open("hex.json"))["search"]
b = json.load(open("all.json"))["search"]
print(a["matches"], b["matches"], b["rows"])
assert 5000 <= a["blocks"] <= a["matches"] < b["matches"]
assert len(b["rows"]) == 2 and "block" not in b["rows"][0]
assert "of repeats" in b["rows"][0]["mapping"]'
}

# What is found could be anything: nothing of it reaches the terminal raw.
harmless() {
	analyze raw --search='[\x80-\xff]{8}' && [ -s raw ] &&
		! LC_ALL=C grep -q '[^ -~]' raw && grep -q 'x80.x81' raw &&
		analyze hidden --redact --search=reserved &&
		! grep -q reserved hidden
}

if command -v strings >/dev/null && command -v perl >/dev/null; then
	ok "a core of perl" perl_core
	ok "as strings, sort and uniq count" as_strings
	ok "a sentence without being asked" sentence
else
	skip "as strings, sort and uniq count" "no strings or perl"
fi
if command -v "$CXX" >/dev/null; then
	ok "what a program repeats" known
	ok "each wrong fact is noticed" noticed
	ok "the same core gives the same bytes" twice
	ok "redacted: no text" redacted
	! command -v strings >/dev/null ||
		ok "and as strings counts them" as_strings
	ok "patterns, as grep finds them" searches
	ok "a pattern without an end" hopeless
	ok "bytes, and outside of blocks" elsewhere
	ok "what is found is made harmless" harmless
else
	skip "what a program repeats" "no $CXX"
fi

finish
