# SPDX-License-Identifier: MIT
# One block, by what leads to it alone, is what it is among all.
. "$SRC/tests/sh/tap"
without_debug_files "$@"
. "$SRC/tests/sh/core"

need_cores
need python3
: "${CXX:=g++}"

# same CORE N: of a block of each kind, and of N that are leaked, --at says what
# it says with all references.
same() {
	"$HEAPCORE" analyze -q --json --blocks --leaks --filter=used "$1" \
		>blocks.json || [ $? = 3 ] || return 1
	python3 - "$2" <<-'END' >addresses
		import json, random, sys
		random.seed(1)
		kinds = {}
		for b in map(json.loads, open("blocks.json")):
		    key = b["leak_grade"], b.get("known_by")
		    kinds.setdefault(key, []).append(b["address"])
		for (grade, known), at in kinds.items():
		    n = int(sys.argv[1]) if grade == "certain" else 1
		    print(*random.sample(at, min(n, len(at))), sep="\n")
	END
	while read -r at; do
		"$HEAPCORE" analyze -q --json --at="$at" "$1" >one.json
		"$HEAPCORE" analyze -q --json --leaks --at="$at" "$1" >all.json
		grep -q '"leak"' one.json && cmp one.json all.json || {
			diff one.json all.json
			return 1
		}
		cat one.json >>said.json
	done <addresses
}

objects() {
	cat >objects.cc <<-'END'
		#include <cstdlib>
		#include <cstring>
		#include <list>
		#include <map>
		#include <memory>
		#include <string>
		#include <vector>
		struct base { virtual ~base() {} int x; };
		struct other { virtual void f() {} long z; };
		struct both : base, other {
			std::string text;
			std::vector<std::string> texts;
			base *peer;
		};
		struct link {
			link *next, *prev;
			void *any;
			union { link *one; both *two; } u;
		};
		std::map<std::string, std::shared_ptr<both>> all;
		std::list<std::vector<int>> numbers;
		link *head, *newest;
		other *others[50];
		static void lose(both *b)
		{
			link *x = (link *)calloc(1, sizeof(link));
			link *y = (link *)calloc(1, sizeof(link));
			x->next = y;
			y->next = x;
			x->any = new std::string(40, 'z');
			y->u.two = b;
			x = (link *)calloc(1, sizeof(link));
			x->any = malloc(70);
		}
		static void add(int i)
		{
			auto b = std::make_shared<both>();
			link *l = (link *)calloc(1, sizeof(link) + i % 3 * 40);
			b->text = std::string(i % 60, 'x');
			for (int k = 0; k < i % 5; k++)
				b->texts.push_back(std::string(k * 12, 'y'));
			all["a key, number " + std::to_string(i)] = b;
			numbers.push_back(std::vector<int>(i % 17));
			b->peer = i < 50 ? new both : b.get();
			if (i < 50)
				others[i] = new both;
			l->next = head;
			if (head)
				head->prev = l;
			head = l;
			l->any = memset(malloc(i % 90 + 1), 'a', i % 90 + 1);
			l->u.two = b.get();
			if (i % 5 == 0)
				lose(b.get());
		}
		int main()
		{
			for (int i = 0; i < 500; i++)
				add(i);
			newest = head;
			abort();
		}
	END
	"$CXX" -g -O0 -o objects objects.cc &&
		make_core objects.core "$TMP/objects" || return 1
	: >said.json
	same objects.core 6 || return 1
	for kind in live certain cycle direct indirect dwarf; do
		grep -q "\"$kind\"" said.json || { echo "no $kind"; return 1; }
	done
}
ok "objects, lists and rings that are lost" objects

python() {
	make_core python.core python3 -c 'import os; x = [{str(i): [i]}
for i in range(500)]; os.abort()' && same python.core 1
}
ok "Python's blocks" python

finish
