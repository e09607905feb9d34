/* SPDX-License-Identifier: MIT */
/*
 * Objects of many classes, and other blocks among them.  Prints a line for
 * each block: "TRUTH ADDRESS KIND NAME", where KIND is class, symbol, text or
 * other, and the name is that of typeid(), as the C++ library itself writes it.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <typeinfo>
#include <vector>

static void *last_new;

void *operator new(std::size_t size)
{
	last_new = std::malloc(size);
	if (!last_new)
		std::abort();
	return last_new;
}

void operator delete(void *p) noexcept
{
	std::free(p);
}

void operator delete(void *p, std::size_t) noexcept
{
	std::free(p);
}

struct Shape {
	virtual ~Shape() {}
	virtual int area() = 0;
	long id = 1;
};

struct Circle : Shape {
	double radius = 2;
	int area() override { return 1; }
};

struct Square : Shape {
	double side[3] = { 1, 2, 3 };
	int area() override { return 2; }
};

struct Named {
	virtual ~Named() {}
	char name[24] = "a name in an object";
};

struct Both : Circle, Named {
	int area() override { return 3; }
	long more = 5;
};

struct Base {
	virtual ~Base() {}
	long base = 3;
};

struct Left : virtual Base {
	long left = 1;
};

struct Right : virtual Base {
	long right = 1;
};

struct Diamond : Left, Right {
	long own = 9;
};

template<class T> struct Box : Base {
	T t = {};
};

template<class F> struct Task : Base {
	F f;
	explicit Task(F g) : f(g) {}
};

namespace app { namespace net {
struct Connection : Base {
	int fd = 3;
	char buffer[100] = { 1 };
	struct Timer : Base {
		long when = 1 << 30;
	};
};
} }

namespace {
struct Hidden : Base {
	long words[7] = {};
};
}

struct Plain {
	long a = 1;
	double b = 2.5;
};

struct operations {
	int (*open)(const char *);
	int (*close)(int);
};

static int do_open(const char *) { return 1; }
static int do_close(int) { return 0; }
extern const struct operations file_operations;
const struct operations file_operations = { do_open, do_close };

struct handle {
	const struct operations *ops;
	long state[4];
};

static std::vector<void *> *all;

static void say(void *p, const char *kind, const char *name)
{
	std::printf("TRUTH %p %s %s\n", p, kind, name);
	all->push_back(p);
}

template<class T> static void say_class(T *p, void *block, const char *of)
{
	char *name = abi::__cxa_demangle(typeid(*p).name(), 0, 0, 0);
	std::string text = name;

	std::free(name);
	say(block, "class", (text + of).c_str());
}

template<class T> static void make(int n)
{
	for (int i = 0; i < n; i++) {
		T *p = new T;

		say_class(p, p, "");
	}
}

template<class F> static void make_task(F f, int n)
{
	for (int i = 0; i < n; i++) {
		Task<F> *p = new Task<F>(f);

		say_class(p, p, "");
	}
}

static void make_others()
{
	char text[64];

	for (int i = 0; i < 300; i++) {
		struct handle *h = (struct handle *)std::malloc(sizeof(*h));

		h->ops = &file_operations;
		for (int k = 0; k < 4; k++)
			h->state[k] = i * k;
		say(h, "symbol", "{&file_operations, ...}");
		std::snprintf(text, sizeof(text), "the text number %d", i * i);
		say(strdup(text), "text", "text");
		Plain *p = new Plain;

		say(p, "other", "-");
		say(std::calloc(1, 40 + i), "other", "-");
		long *words = (long *)std::malloc(200);

		for (int k = 0; k < 25; k++)
			words[k] = (long)words ^ (i << k);
		say(words, "other", "-");
	}
}

/* What is freed leaves its first words behind in what comes after it. */
static void make_stale()
{
	std::vector<Square *> gone;

	for (int i = 0; i < 500; i++)
		gone.push_back(new Square);
	for (Square *p : gone)
		delete p;
	for (int i = 0; i < 400; i++)
		say(std::malloc(sizeof(Square)), "other", "-");
}

static void make_shared_ones()
{
	static std::vector<std::shared_ptr<Base>> kept;
	static std::vector<std::shared_ptr<Plain>> plain;
	static std::vector<std::function<long()>> functions;

	kept.reserve(200);
	plain.reserve(200);
	functions.reserve(200);
	for (int i = 0; i < 100; i++) {
		plain.push_back(std::make_shared<Plain>());
		say(last_new, "class", "Plain of make_shared");
		long a = i, b = 2, c = 3;

		functions.push_back([a, b, c] { return a * b + c; });
		say(last_new, "other", "-");
		kept.emplace_back(new Diamond);
		say(last_new, "class", "std::_Sp_counted_ptr<Diamond*, "
		    "(__gnu_cxx::_Lock_policy)2>");
		say_class(kept.back().get(),
			  dynamic_cast<void *>(kept.back().get()), "");
	}
}

int main()
{
	static char buffer[1 << 16];
	struct Local : Base {
		char more[30] = "x";
	};

	std::setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	all = new std::vector<void *>;
	all->reserve(1 << 16);
	make<Circle>(std::getenv("MORE") ? 700 : 400);
	make<Square>(300);
	make<Both>(200);
	make<Diamond>(200);
	make<Box<int>>(100);
	make<Box<std::string>>(100);
	make<app::net::Connection>(100);
	make<app::net::Connection::Timer>(100);
	make<Hidden>(100);
	make<Local>(50);
	make_task([] { return 7; }, 60);
	make_task([](int a) { return a; }, 70);
	make_others();
	make_stale();
	make_shared_ones();
	std::fflush(stdout);
	std::abort();
}
