# SPDX-License-Identifier: MIT
# Small programs that print what a report on them must say.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

need_cores
need python3

# facts CASE [ARGUMENT]: the program is built, dies, and is explained.
facts() {
	$CC -std=gnu11 -O1 -g -fno-builtin -o "$1" "$SRC/tests/truth/$1.c" \
		-pthread && make_core core "$TMP/$@" || return 1
	grep '^TRUTH' dump.log >truth.txt
	report core --only=all && blocks core &&
		"$SRC/tests/truth/facts" "$1" truth.txt blocks.json report.json
}

# The last case again; what is at most so much may be less.
noticed() {
	"$SRC/tests/truth/noticed" truth.txt '^(?!.*_at_most)(.*?)(\d*)$' \
		'\g<1>9\2' "$SRC/tests/truth/facts" "$1" wrong.txt \
		blocks.json report.json
}

ok "pages held by small blocks" facts held_pages
ok "each wrong fact is noticed" noticed held_pages
ok "an arena for each thread" facts own_arenas
ok "a header overwritten" facts next_header next
# The core of the last case: --at names the block that is to blame.
blame() {
	culprit=$(sed -n 's/TRUTH culprit //p' truth.txt)
	"$HEAPCORE" analyze -q --at="$culprit" --json core >at.json ||
		[ $? = 3 ] || return 1
	python3 -c '
import json, sys
at = json.load(open("at.json"))["at"]
print(at)
sys.exit(at["block"] != sys.argv[1] or at["state"] != "used" or
         at["usable"] != 72)' "$culprit"
}
ok "the block to blame, by its address" blame
# Its text, the header that it runs over, and what lies behind that.
bytes() {
	python3 -c '
import json
doc = json.load(open("at.json"))
text = "".join(line["ascii"] for line in doc["bytes"])
print(text, doc["neighbours"])
assert "abcdefghijkl" in text and "AndMoreA" in text
assert int(doc["bytes"][-1]["address"], 16) >= int(doc["at"]["block"], 16) + 96
assert doc["neighbours"][-1]["state"] == "not decoded"
finding = json.load(open("report.json"))["findings"][0]
print(finding)
assert finding["written_text"].startswith("abcdefghijkl")
assert finding["written_text"].endswith("...")
assert finding["meaning"].startswith("72 usable bytes at " +
                                     doc["at"]["block"])'
}
ok "its bytes, over the header behind it" bytes
ok "the top overwritten" facts next_header top
ok "guard pages inside the heap" facts guarded
# 160K of its own thread-local data lie between libc's and the thread pointer.
far_tls() {
	cat >far.c <<-'END'
	#include <pthread.h>
	#include <stdlib.h>
	#include <unistd.h>
	__thread char own[160 * 1024];
	static pthread_barrier_t ready;
	static void *work(void *arg)
	{
		void *volatile kept = malloc(50);

		for (int i = 0; i < 300; i++)
			free(malloc(40 + i));
		own[5] = kept != arg;
		pthread_barrier_wait(&ready);
		pause();
		return NULL;
	}
	int main(void)
	{
		pthread_t t;

		pthread_barrier_init(&ready, NULL, 4);
		for (int i = 0; i < 3; i++)
			pthread_create(&t, NULL, work, NULL);
		pthread_barrier_wait(&ready);
		abort();
	}
	END
	$CC -O1 -fno-builtin -o far far.c -pthread &&
		make_core core "$TMP/far" && report core --only=all || return
	python3 -c '
import json
report = json.load(open("report.json"))
arenas = [t["arena"] for t in report["threads"]]
print(arenas)
assert len(arenas) == 4 and len(set(arenas)) == 4
assert len(report["thread_caches"]) == 4
assert all(c.get("tid") for c in report["thread_caches"])'
}
ok "thread caches behind much thread-local data" far_tls
ok "memory that was never touched" facts not_touched
ok "each wrong fact is noticed" noticed not_touched
finish
