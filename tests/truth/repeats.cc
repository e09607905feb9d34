// SPDX-License-Identifier: MIT
//
// Things that repeat, each with a line that says what a report must find:
//
//	TRUTH string COPIES BYTES SAVED TEXT
//	TRUTH block COPIES USABLE SAVED
//	TRUTH records SIZE COUNT BLOCKS
//	TRUTH tail KIND BLOCKS BYTES
//
// Usage: repeats; it ends with abort().
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <string>
#include <vector>

struct label {
	std::string name;	// short enough to lie in here
	long id;
};

struct record {
	void *self;
	double weight;
	uint32_t id, kind;
	char tag[8];
};

struct twelve {
	uint32_t id;
	float x, y;
};

static std::vector<std::string *> strings;
static std::vector<label *> labels;
static std::vector<char *> copies;
static std::vector<void *> twins;
static std::vector<std::vector<uint64_t> *> grown;
static std::vector<std::string *> reserved;
static void *kept[64];

static size_t chunk(const void *p)
{
	return malloc_usable_size(const_cast<void *>(p)) + 8;
}

static void say_string(const char *text, size_t n, size_t bytes, size_t saved)
{
	printf("TRUTH string %zu %zu %zu %s\n", n, bytes, saved, text);
}

// Of std::string: blocks of their own, and inside of other blocks.
static void make_strings()
{
	static const char longer[] = "/srv/data/customers/europe/archive";
	static const char tiny[] = "shard-0042";
	size_t bytes = 0;

	for (int i = 0; i < 5000; i++) {
		strings.push_back(new std::string(longer));
		bytes += chunk(strings.back()->data());
		labels.push_back(new label { tiny, 1000 + i });
	}
	say_string(longer, 5000, bytes, bytes - bytes / 5000);
	say_string(tiny, 5000, 5000 * strlen(tiny), 0);
}

// Of C, of all lengths around those of blocks.
static void make_copies()
{
	char text[128];

	for (size_t len = 30; len < 90; len += 7) {
		size_t n = 200 + len, bytes = 0;

		for (size_t i = 0; i < len; i++)
			text[i] = (char)('a' + (i * len + i / 7) % 26);
		text[len] = '\0';
		for (size_t i = 0; i < n; i++) {
			copies.push_back(strdup(text));
			bytes += chunk(copies.back());
		}
		say_string(text, n, bytes, bytes - bytes / n);
	}
}

// Blocks that are equal to the last byte, without text.
static void make_twins()
{
	size_t bytes = 0;

	for (int i = 0; i < 3000; i++) {
		unsigned char *p = static_cast<unsigned char *>(malloc(104));

		for (int k = 0; k < 104; k++)
			p[k] = (unsigned char)(128 + k);
		twins.push_back(p);
		bytes += chunk(p);
	}
	printf("TRUTH block 3000 104 %zu\n", bytes - bytes / 3000);
}

// Large blocks of records.
template <class T> static T *make_records(size_t n, T (*make)(size_t))
{
	T *p = static_cast<T *>(malloc(n * sizeof(T)));

	for (size_t i = 0; i < n; i++)
		p[i] = make(i);
	printf("TRUTH records %zu %zu 1\n", sizeof(T), n);
	return p;
}

static record make_record(size_t i)
{
	record r = { i % 3 ? kept : nullptr, 1.5 + (double)i,
		     (uint32_t)(i * 2654435761u) | 0x1000000u,
		     (uint32_t)(i * 40503u) | 0x1000000u, "" };

	snprintf(r.tag, sizeof(r.tag), "t%05zu", i % 150);
	return r;
}

static twelve make_twelve(size_t i)
{
	return { (uint32_t)i % 5000, 1.0f + (float)i, -2.5f * (float)(i + 1) };
}

static size_t vectors, vector_tails;

template <class T> static void add_vector(const std::vector<T> &v)
{
	vectors += v.capacity() > v.size();
	vector_tails += (v.capacity() - v.size()) * sizeof(T);
}

// What doubling leaves unused, and what was reserved.
static void make_tails()
{
	size_t tails = 0;

	for (int i = 0; i < 300; i++) {
		grown.push_back(new std::vector<uint64_t>);
		for (int k = 0; k < 70 + i; k++)
			grown.back()->push_back(0xabcd0000u + k * 7);
	}
	for (int i = 0; i < 200; i++) {
		char text[32];

		reserved.push_back(new std::string);
		reserved.back()->reserve(1000);
		snprintf(text, sizeof(text), "%d reserved text %d", i, i * 7);
		*reserved.back() = text;
		tails += reserved.back()->capacity() -
			 reserved.back()->size();
	}
	printf("TRUTH tail string 200 %zu\n", tails);
	tails = 0;
	for (int i = 0; i < 100; i++) {
		unsigned char *p = static_cast<unsigned char *>(
			calloc(1, 8192 + 8));

		memset(p, 0x81 + i % 50, 2048);
		tails += 8192 + 8 - 2048;
		twins.push_back(p);
	}
	printf("TRUTH tail zero 100 %zu\n", tails);
	for (auto v : grown)
		add_vector(*v);
	add_vector(strings);
	add_vector(labels);
	add_vector(copies);
	add_vector(twins);
	add_vector(grown);
	add_vector(reserved);
	printf("TRUTH tail vector %zu %zu\n", vectors, vector_tails);
}

int main()
{
	static char out[1 << 14];

	// Its buffer would be one more block with an unused tail.
	setvbuf(stdout, out, _IOFBF, sizeof(out));
	make_strings();
	make_copies();
	make_twins();
	kept[0] = make_records<record>(20000, make_record);
	kept[1] = make_records<twelve>(30000, make_twelve);
	make_tails();
	fflush(stdout);
	abort();
}
