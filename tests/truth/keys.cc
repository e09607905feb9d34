// SPDX-License-Identifier: MIT
//
// Numbers that look like texts, in a std::map and a std::list; prints where
// their only nodes are, and dies.
#include <list>
#include <map>

#include "case.h"

static std::map<int, int> map;
static std::list<long> list;

int main()
{
	quiet_stdout();
	map[0x41424344] = -0x45464748;
	list.push_back(0x6162636465666768);
	truth_at("map", (char *)&*map.begin() - 32);
	truth_at("list", (char *)&*list.begin() - 16);
	finish();
}
