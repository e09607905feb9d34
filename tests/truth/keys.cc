// SPDX-License-Identifier: MIT
//
// Numbers that look like texts, in a std::map and a std::list; prints where
// their only nodes are, and dies.  And a vector, and what it leads to.
#include <list>
#include <map>
#include <vector>

#include "case.h"

static std::map<int, int> map;
static std::list<long> list;

struct thing {
	long numbers[20];
	void *raw;
};

static std::vector<thing *> things;

int main()
{
	quiet_stdout();
	map[0x41424344] = -0x45464748;
	list.push_back(0x6162636465666768);
	for (int i = 0; i < 500; i++) {
		things.push_back(new thing());
		things.back()->raw = filled(40, 0);
	}
	truth_at("map", (char *)&*map.begin() - 32);
	truth_at("list", (char *)&*list.begin() - 16);
	finish();
}
