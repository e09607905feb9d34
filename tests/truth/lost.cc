// SPDX-License-Identifier: MIT
//
// A C++ program that has worked for a while and lost blocks on the way.
//
// Usage: lost [OPERATIONS [zero]]: churn of so many operations [200000] on
// the containers of the library, so that stale words abound, and losses of
// many kinds among them.  With zero, every block is cleared before use.
//
// It prints a line for each block that was made with new and not deleted:
// "LOST kind address" or "LIVE kind address", and dies.  Its own list of them
// is kept with all bits inverted, so that it refers to nothing.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <malloc.h>
#include <map>
#include <memory>
#include <new>
#include <pthread.h>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

// ---- the list of blocks ----

enum kind : unsigned char {
	CHURN, THREAD_LOCAL, OTHER_STACK, INTERIOR, COOKIE, PRIVATE_MAP,
	TAGGED, FIRST_LOST,
	LIST = FIRST_LOST, RING, STD_LIST, TREE, SHARED_CYCLE, STRINGS,
	VECTOR, SINGLE, DEAD_STACK, CAPACITY, KINDS
};
static const char *const names[KINDS] = {
	"churn", "thread_local", "other_stack", "interior", "cookie",
	"private_map", "tagged", "list", "ring", "std_list", "tree",
	"shared_cycle", "strings", "vector", "single", "dead_stack",
	"capacity",
};

struct entry {
	uintptr_t hidden;	// 0: never used
	unsigned char kind;	// of KINDS: deleted
};
static entry *entries;
static size_t slots;		// a power of two
static bool zero, tracking;
static kind current = CHURN;

static size_t slot_of(uintptr_t hidden)
{
	return (hidden * 0x9e3779b97f4a7c15u) >> 40;
}

static void note(void *p, kind k)
{
	uintptr_t hidden = ~(uintptr_t)p;
	size_t i = slot_of(hidden) & (slots - 1);

	while (entries[i].hidden && entries[i].hidden != hidden)
		i = (i + 1) & (slots - 1);
	entries[i].hidden = hidden;
	entries[i].kind = k;
}

void *operator new(size_t n)
{
	void *p = malloc(n);

	if (!p)
		_exit(2);
	if (zero)
		memset(p, 0, malloc_usable_size(p));
	if (tracking)
		note(p, current);
	return p;
}

void *operator new[](size_t n) { return operator new(n); }

void operator delete(void *p) noexcept
{
	if (p && tracking)
		note(p, KINDS);
	free(p);
}

void operator delete(void *p, size_t) noexcept { operator delete(p); }
void operator delete[](void *p) noexcept { operator delete(p); }
void operator delete[](void *p, size_t) noexcept { operator delete(p); }

struct as {
	kind before;
	explicit as(kind k) : before(current) { current = k; }
	~as() { current = before; }
};

// ---- churn ----

static uint64_t state = 88172645463325252;

static uint64_t rnd(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

static std::string text(size_t longest)
{
	return std::string(rnd(longest), (char)('a' + rnd(26)));
}

struct session {
	virtual ~session() {}
	std::string user, peer;
	std::vector<std::string> log;
	session *next = nullptr;
};

struct request : session {
	std::map<std::string, std::string> headers;
	long serial = 0;
};

struct world {
	std::map<std::string, std::string> map;
	std::unordered_map<uint64_t, std::unique_ptr<session>> sessions;
	std::list<std::string> list;
	std::deque<request *> queue;
	std::vector<std::vector<int>> matrix;
	std::set<std::string> names;
	std::vector<std::shared_ptr<session>> shared;
};
static world *w;

static void grow()
{
	switch (rnd(7)) {
	case 0:
		w->map[text(40)] = text(80);
		break;
	case 1: {
		auto s = std::make_unique<session>();
		s->user = text(30);
		for (size_t i = rnd(5); i; i--)
			s->log.push_back(text(50));
		w->sessions[rnd(100000)] = std::move(s);
		break;
	}
	case 2:
		w->list.push_back(text(60));
		break;
	case 3: {
		auto *r = new request;
		r->headers[text(20)] = text(20);
		r->headers[text(20)] = text(60);
		w->queue.push_back(r);
		break;
	}
	case 4:
		w->matrix.emplace_back(rnd(40), 7);
		break;
	case 5:
		w->names.insert(text(50));
		break;
	case 6:
		w->shared.push_back(std::make_shared<session>());
		w->shared.back()->user = text(40);
		break;
	}
}

static void shrink()
{
	switch (rnd(7)) {
	case 0:
		if (!w->map.empty())
			w->map.erase(w->map.begin());
		break;
	case 1:
		for (int i = 0; i < 3 && !w->sessions.empty(); i++)
			w->sessions.erase(w->sessions.begin());
		break;
	case 2:
		while (w->list.size() > 1000)
			w->list.pop_front();
		break;
	case 3:
		for (int i = 0; i < 2 && !w->queue.empty(); i++) {
			delete w->queue.front();
			w->queue.pop_front();
		}
		break;
	case 4:
		if (w->matrix.size() > 2000) {
			w->matrix.resize(1000);
			w->matrix.shrink_to_fit();
		}
		break;
	case 5:
		if (!w->names.empty())
			w->names.erase(w->names.begin());
		break;
	case 6:
		if (w->shared.size() > 3000)
			w->shared.erase(w->shared.begin(),
					w->shared.begin() + 1000);
		break;
	}
}

// ---- losses ----

struct chain {
	chain *next = nullptr, *before = nullptr;
	std::string name;
	uint64_t number = 0;
};

struct leaf {
	leaf *left = nullptr, *right = nullptr;
	uint64_t key = 0;
	char *note = nullptr;
};

struct peer;
struct owner {
	virtual ~owner() {}
	std::shared_ptr<peer> other;
	std::string name;
};
struct peer {
	virtual ~peer() {}
	std::shared_ptr<owner> back;
	char buffer[96] = "";
};

static std::vector<session *> popped;	// its capacity keeps names of lost ones

static leaf *tree(unsigned depth)
{
	auto *l = new leaf;

	l->key = rnd(1000);
	if (!depth)
		return l;
	l->left = tree(depth - 1);
	l->right = tree(depth - 1);
	return l;
}

static __attribute__((noinline)) void lose_links(bool ring)
{
	as kind(ring ? RING : LIST);
	chain *head = nullptr, *last = nullptr;

	for (size_t i = 5 + rnd(ring ? 400 : 60); i; i--) {
		auto *l = new chain;
		l->name = text(40);
		l->next = head;
		if (ring && head)
			head->before = l;
		if (!last)
			last = l;
		head = l;
	}
	if (ring) {
		last->next = head;
		head->before = last;
	}
}

static __attribute__((noinline)) void lose_vector_tail()
{
	as kind(CAPACITY);
	auto *s = new session;

	s->user = text(40);
	popped.push_back(s);
	popped.push_back(nullptr);
	popped.pop_back();
	popped.pop_back();
}

static __attribute__((noinline)) void lose()
{
	switch (rnd(9)) {
	case 0:
		lose_links(false);
		break;
	case 1:
		lose_links(true);
		break;
	case 2: {
		as kind(STD_LIST);
		auto *l = new std::list<std::string>;
		for (size_t i = rnd(50); i; i--)
			l->push_back(text(40));
		break;
	}
	case 3: {
		as kind(TREE);
		tree((unsigned)rnd(6));
		auto *m = new std::map<int, std::string>;
		for (size_t i = rnd(30); i; i--)
			(*m)[(int)rnd(1000)] = text(30);
		break;
	}
	case 4: {
		as kind(SHARED_CYCLE);
		auto o = std::make_shared<owner>();
		o->other = std::make_shared<peer>();
		o->other->back = o;
		o->name = text(60);
		break;
	}
	case 5: {
		as kind(STRINGS);
		auto *v = new std::vector<std::string>;
		for (size_t i = rnd(20); i; i--)
			v->push_back(text(60));
		break;
	}
	case 6: {
		as kind(VECTOR);
		new std::vector<double>(1 + rnd(100), 1.5);
		break;
	}
	case 7: {
		as kind(SINGLE);
		session *volatile s = new session;
		s->user = text(40);
		break;
	}
	case 8:
		lose_vector_tail();
		break;
	}
}

// ---- live ones that are easily missed ----

static char *buffer(size_t n)
{
	return (char *)memset(new char[n], 'x', n);
}

static thread_local std::vector<std::string> *mine;
// Not static: nobody reads them, and all the same they must be written.
char *interiors[64];
session *cookies;
uintptr_t tagged[64];
static pthread_barrier_t barrier;

static void *thread(void *)
{
	std::vector<std::string> on_stack;
	session *s;

	{
		as kind(OTHER_STACK);
		s = new session;
		for (int i = 0; i < 100; i++)
			on_stack.push_back(std::string(40, 's'));
	}
	{
		as kind(THREAD_LOCAL);
		mine = new std::vector<std::string>(50, std::string(30, 't'));
	}
	pthread_barrier_wait(&barrier);
	pause();
	fprintf(stderr, "%zu %p\n", on_stack.size(), (void *)s);
	return nullptr;
}

static void make_hidden()
{
	void **map = (void **)mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < 64; i++) {
		as kind(PRIVATE_MAP);
		map[i] = buffer(40 + i);
	}
	for (int i = 0; i < 64; i++) {
		as kind(INTERIOR);
		interiors[i] = buffer(200) + 24 + i;
	}
	for (int i = 0; i < 64; i++) {
		as kind(TAGGED);
		tagged[i] = (uintptr_t)buffer(100) | (uintptr_t)(i & 7);
	}
	as kind(COOKIE);
	cookies = new session[20];
}

static __attribute__((noinline)) void dead_stack()
{
	as kind(DEAD_STACK);
	session *volatile gone[16];

	for (auto &g : gone)
		g = new session;
}

// The dead words stay: nothing is called on the way out but what is shallow.
static void print(const entry &e)
{
	static char line[80];
	int n = snprintf(line, sizeof(line), "%s %s %#lx\n",
			 e.kind >= FIRST_LOST ? "LOST" : "LIVE", names[e.kind],
			 ~(unsigned long)e.hidden);

	fwrite(line, 1, (size_t)n, stdout);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 200000;
	static char out[1 << 16];
	pthread_t id;

	zero = argc > 2 && !strcmp(argv[2], "zero");
	setvbuf(stdout, out, _IOFBF, sizeof(out));
	for (slots = 1 << 16; slots < (size_t)n * 16; slots *= 2)
		;
	entries = (entry *)mmap(nullptr, slots * sizeof(*entries),
				PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				-1, 0);
	tracking = true;
	w = new world;
	popped.reserve(1000);
	for (long i = 0; i < n; i++) {
		grow();
		if (rnd(10) < 4)
			shrink();
		if (!rnd(400))
			lose();
		// The capacity fills up to where names of lost ones stay.
		if (!rnd(400) && popped.size() < 900)
			popped.push_back(nullptr);
	}
	make_hidden();
	pthread_barrier_init(&barrier, nullptr, 2);
	pthread_create(&id, nullptr, thread, nullptr);
	pthread_barrier_wait(&barrier);
	dead_stack();
	tracking = false;
	for (size_t i = 0; i < slots; i++)
		if (entries[i].hidden && entries[i].kind != KINDS)
			print(entries[i]);
	fflush(stdout);
	abort();
}
