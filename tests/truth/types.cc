// SPDX-License-Identifier: MIT
//
// Every block that these variables lead to, and its type, as "T address WORD
// ...": all words must be in the name.  A word that starts with = is the whole
// name.  N is the number of rounds.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#ifdef _LIBCPP_VERSION
#define LIBCXX 1
#else
#define LIBCXX 0
#endif

static void t(const void *p, const char *words)
{
	printf("T %p %s\n", p, words);
}

static const void *back(const void *p, size_t n)
{
	return (const char *)p - n;
}

struct Widget {
	int64_t id = 7;
	Widget *next = nullptr;
	double weight = 1.5;
	explicit Widget(int64_t i = 0) : id(i) {}
};

/* The same name in two namespaces, of different size. */
namespace one {
struct Token { Token *next = nullptr; char text[40] = "one"; };
}
namespace two {
struct Token { Token *next = nullptr; char text[8] = "two"; };
}

struct Shape {
	int colour = 3;
	virtual ~Shape() {}
	virtual double area() const { return 0; }
};
struct Named {
	std::string name = "a name that does not fit inside";
	virtual ~Named() {}
};
struct Circle : Shape {
	Widget *centre = nullptr;
	double radius = 1;
	double area() const override { return radius; }
};
/* Seen through its second base. */
struct Label : Shape, Named {
	Widget *owner = nullptr;
	double area() const override { return 2; }
};
struct Grid : virtual Shape {
	Widget *cell = nullptr;
	long pad[6] = {};
	double area() const override { return 3; }
};
template <typename T> struct Box : Shape {
	T *inside = nullptr;
	double area() const override { return 4; }
};

namespace {
struct Hidden {
	Widget *w = nullptr;
	long pad[4] = {};
};
}

union Either {
	Widget *w;
	long n;
};

struct Holder {
	Either either;
	bool is_widget;
	std::unique_ptr<Widget> owned;
	std::unique_ptr<Widget[]> many;
	std::optional<std::vector<int>> maybe;
	std::variant<int, std::string, std::vector<Widget>> one_of;
	Widget *table[3] = {};
};

struct World {
	std::list<Widget> list;
	std::forward_list<one::Token> forward;
	std::map<int, Widget> map;
	std::map<std::string, two::Token> by_name;
	std::set<std::string> set;
	std::multimap<int, std::string> multi;
	std::unordered_map<int, Widget> hash;
	std::unordered_map<std::string, int> hash_name;
	std::unordered_set<long> hash_set;
	std::vector<Widget> vector;
	std::vector<Widget *> pointers;
	std::vector<std::vector<int>> nested;
	std::vector<std::string> strings;
	std::deque<Widget> deque;
	std::shared_ptr<Widget> shared, made;
	std::vector<Shape *> shapes;
	Named *second = nullptr;
	Holder *holder = nullptr;
	std::map<int, std::list<Widget *>> deep;
};

static World world;			/* static */
Widget *global_ring;			/* global */
static one::Token *ones;
static two::Token *twos;
__attribute__((used)) static Hidden *hidden;
__attribute__((used)) static thread_local Widget *local_to_thread;

template <typename M> static void tree(const M &m, const char *words)
{
	for (const auto &e : m)
		t(back(&e, 32), words);
}

template <typename M>
static void hash(const M &m, const char *words, size_t before)
{
	for (const auto &e : m)
		t(back(&e, before), words);
}

static std::string text(int i)
{
	return "a string that is too long to be short " + std::to_string(i);
}

static void string(const std::string &s)
{
	if ((const char *)&s > s.data() || s.data() >= (const char *)(&s + 1))
		t(s.data(), "=text of std::string");
}

static Widget *widget(int i)
{
	Widget *w = new Widget(i);

	t(w, "=Widget");
	return w;
}

static void nodes(int n)
{
	World &w = world;

	for (int i = 0; i < n; i++) {
		w.list.emplace_back(i);
		w.forward.emplace_front();
		w.map[i] = Widget(i);
		w.by_name[text(i)] = two::Token();
		w.set.insert(text(i));
		w.multi.emplace(i / 2, text(i));
		w.hash[i] = Widget(i);
		w.hash_name[text(i)] = i;
		w.hash_set.insert(i * 3L);
		w.deep[i % 5].push_back(widget(i));
	}
	for (const Widget &e : w.list)
		t(back(&e, 16), "ist_node< Widget");
	for (const one::Token &e : w.forward)
		t(back(&e, LIBCXX ? 8 : 8),
		  LIBCXX ? "forward_list_node one::Token" :
			   "_Fwd_list_node one::Token");
	tree(w.map, "tree_node< int Widget");
	tree(w.by_name, "tree_node< two::Token");
	tree(w.set, "tree_node< basic_string");
	tree(w.multi, "tree_node< int basic_string");
	tree(w.deep, "tree_node< list Widget");
	hash(w.hash, "ash_node< int Widget", LIBCXX ? 16 : 8);
	hash(w.hash_name, "ash_node< basic_string int", LIBCXX ? 16 : 8);
	hash(w.hash_set, "ash_node< long", LIBCXX ? 16 : 8);
	for (const auto &l : w.deep)
		for (const auto &e : l.second)
			t(back(&e, 16), "ist_node< Widget*");
	for (const auto &e : w.by_name)
		string(e.first);
	for (const auto &e : w.set)
		string(e);
	for (const auto &e : w.multi)
		string(e.second);
	for (const auto &e : w.hash_name)
		string(e.first);
}

static void arrays(int n)
{
	World &w = world;

	for (int i = 0; i < n; i++) {
		w.vector.emplace_back(i);
		w.pointers.push_back(widget(i));
		w.strings.push_back(text(i));
		w.nested.emplace_back(3, i);
		w.deque.emplace_back(i);
	}
	/* Room that nobody uses, full of what looks like pointers. */
	w.pointers.reserve(4 * (size_t)n);
	for (int i = n; i < 4 * n; i++)
		w.pointers.data()[i] = (Widget *)w.strings[0].data();
	t(w.vector.data(), "=Widget []");
	t(w.pointers.data(), "Widget * []");
	t(w.nested.data(), "vector<int []");
	t(w.strings.data(), "basic_string []");
	for (const auto &v : w.nested)
		t(v.data(), "=int []");
	for (const auto &s : w.strings)
		string(s);
	for (int i = 0; i < n; i += 21)
		if (!LIBCXX)
			t(&w.deque[(size_t)i], "=Widget []");
}

static void objects(int n)
{
	World &w = world;

	w.shared = std::shared_ptr<Widget>(widget(1));
	w.made = std::make_shared<Widget>(2);
	t(back(w.made.get(), LIBCXX ? 24 : 16),
	  LIBCXX ? "shared_ptr_emplace Widget" : "Widget make_shared");
	for (int i = 0; i < n; i++) {
		Circle *c = new Circle;
		Label *l = new Label;
		Box<Widget> *b = new Box<Widget>;
		Grid *g = new Grid;

		c->centre = widget(i);
		l->owner = widget(i);
		b->inside = widget(i);
		g->cell = widget(i);
		w.shapes.insert(w.shapes.end(), { c, l, b });
		t(c, "=Circle");
		t(l, "=Label");
		t(b, "=Box<Widget>");
		t(g, "=Grid");
		string(l->name);
		if (i == 0)
			w.second = l;
		/* As a static in a function. */
		static std::vector<Grid *> grids;
		grids.push_back(g);
	}
	t(w.shapes.data(), "Shape * []");
}

static void holders()
{
	Holder *h = world.holder = new Holder;

	h->either.w = widget(5);
	h->is_widget = true;
	h->owned.reset(widget(6));
	h->many.reset(new Widget[5]);
	t(h->many.get(), "=Widget []");
	h->maybe = std::vector<int>(100, 1);
	t(h->maybe->data(), "=int []");
	h->one_of = std::vector<Widget>(9);
	t(std::get<2>(h->one_of).data(), "=Widget []");
	h->table[1] = widget(8);
	t(h, "=Holder");
}

static void lists(int n)
{
	Widget *last = nullptr;

	for (int i = 0; i < n; i++) {
		Widget *w = widget(i);
		one::Token *o = new one::Token;
		two::Token *u = new two::Token;

		w->next = global_ring;
		global_ring = w;
		last = last ? last : w;
		o->next = ones;
		ones = o;
		u->next = twos;
		twos = u;
		t(o, "=one::Token");
		t(u, "=two::Token");
	}
	last->next = global_ring;
	hidden = new Hidden;
	t(hidden, "Hidden");
	hidden->w = widget(1);
	local_to_thread = widget(2);
}

__attribute__((noinline)) static void finish(int n)
{
	std::map<long, one::Token> local;
	std::function<int(int)> function;
	Widget *in_register = widget(99);
	std::vector<std::unique_ptr<Circle>> circles;

	for (int i = 0; i < n; i++) {
		local[i];
		circles.push_back(std::make_unique<Circle>());
		t(circles.back().get(), "=Circle");
	}
	t(circles.data(), "unique_ptr<Circle []");
	tree(local, "tree_node< long one::Token");
	in_register->next = widget(98);
	fflush(stdout);
	abort();
	asm volatile("" : : "r"(&local), "r"(in_register), "r"(&circles));
}

int main(int argc, char **argv)
{
	static char buffer[1 << 16];
	int n = argc > 1 ? atoi(argv[1]) : 50;

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	nodes(n);
	arrays(n);
	objects(n);
	holders();
	lists(n);
	finish(n);
}
