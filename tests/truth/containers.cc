// SPDX-License-Identifier: MIT
//
// Containers of several words each, side by side, and what was allocated for
// each: for a report on the same program without symbols.
#include <deque>
#include <list>
#include <map>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "case.h"

enum { MEMBERS = 3000 };

static size_t asked;

void *operator new(size_t size)
{
	asked += CHUNK(size);
	return filled(size, 0);
}

void operator delete(void *p) noexcept
{
	free(p);
}

void operator delete(void *p, size_t) noexcept
{
	free(p);
}

static std::map<int, long> tree;
static std::vector<void *> blocks;
static std::unordered_map<int, std::string> table;
static std::list<std::string> ring;
static std::deque<long> queue;

// What filling it asked for, less what it gave back.
template <class T, class F> static void fill(const char *name, T &of, F add)
{
	char at[32];

	asked = 0;
	for (int i = 0; i < MEMBERS; i++)
		add(i);
	snprintf(at, sizeof(at), "%s_at", name);
	truth(name, asked);
	truth_at(at, &of);
	snprintf(at, sizeof(at), "%s_size", name);
	truth(at, sizeof(of));
}

int main()
{
	quiet_stdout();
	fill("tree", tree, [](int i) { tree[i * 7919 % MEMBERS] = i; });
	fill("blocks", blocks, [](int) {
		blocks.reserve(MEMBERS);
		blocks.push_back(operator new(100));
	});
	fill("table", table, [](int i) {
		table.reserve(MEMBERS);
		table[i] = std::string(200, 'x');
	});
	fill("ring", ring, [](int) { ring.push_back(std::string(30, 'x')); });
	fill("queue", queue, [](int i) { queue.push_back(i); });
	finish();
}
