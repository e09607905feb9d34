/* SPDX-License-Identifier: MIT */
/*
 * A program that knows every block of its own heap, and then dies.
 *
 * All allocation functions are its own: they call glibc's and write down what
 * came back, in a table that never goes through malloc.  The blocks of libc
 * and of the loader pass through here too and are marked as theirs.  After a
 * seeded mix of work in several threads everything stands still, the totals
 * that glibc itself gives are taken, the table is written to a file, and the
 * kernel writes a core.  tests/truth/compare holds heapcore to that file.
 *
 * Usage: glibc_truth [name=value]...
 *   out=FILE    where the truth goes [truth.txt]
 *   seed=N      of everything that is random [1]
 *   threads=N   threads that stay, besides the main one [4]
 *   exited=N    threads that end before the core is written [2]
 *   live=N      blocks of ours that are live at the end, at least [200000]
 *   ops=N       allocations and frees, about [6 * live]
 *   big=0|1     blocks that are mappings of their own [1]
 *   fixed=0|1   keep the mmap threshold where it is [seed is even]
 *   heaps=N     heaps in one thread's arena, at least [1]
 *   sbrk=N      times that somebody else moves the break [0]
 *   nobrk=N     after N operations of main the break cannot grow [0: never]
 *   decoy=N     mappings that look like malloc's and are not [0]
 *   corrupt=KIND  damage one thing at the very end: size, size-thread,
 *               overflow, tcache, tcache-end, unsorted
 *   wait=1      sleep instead of dying
 *
 * Static: link with -DWRAP and --wrap for each function in the list below.
 * Build with -fno-builtin: a compiler may delete a malloc that is not used.
 *
 * The file, a fact on each line:
 *   glibc RELEASE / word N / seed N
 *   B ADDRESS REQUESTED USABLE THREAD HOW ARENA   live, ours
 *   L ADDRESS REQUESTED USABLE THREAD HOW ARENA   live, libc's or ld.so's
 *   F ADDRESS                           was freed and not handed out again
 *   T THREAD TID alive|exited
 *   D KIND ADDRESS                      what was damaged
 *   I NAME VALUE                        of mallinfo2()
 *   X TEXT                              of malloc_info(3)
 * ARENA is 0 for the main arena, 1 for a mapping of its own, else its address.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef WRAP
#define REAL(name) __real_##name
#define FAKE(name) __wrap_##name
#else
#define REAL(name) __libc_##name
#define FAKE(name) name
#endif

void *REAL(malloc)(size_t);
void *REAL(calloc)(size_t, size_t);
void *REAL(realloc)(void *, size_t);
void *REAL(memalign)(size_t, size_t);
void REAL(free)(void *);

#ifdef WRAP
void *FAKE(malloc)(size_t);
void *FAKE(calloc)(size_t, size_t);
void *FAKE(realloc)(void *, size_t);
void *FAKE(memalign)(size_t, size_t);
void *FAKE(aligned_alloc)(size_t, size_t);
int FAKE(posix_memalign)(void **, size_t, size_t);
void *FAKE(valloc)(size_t);
void *FAKE(pvalloc)(size_t);
void FAKE(free)(void *);
#endif

enum { W = sizeof(void *), PAGE = 4096, SHELF = 4096, MAX_THREADS = 64 };
/* HEAP_MAX_SIZE of malloc/arena.c, glibc 2.17 to 2.43 */
#define HEAP_MAX ((uintptr_t)(W == 8 ? 64 : 1) << 20)

/* Options. */
static const char *out = "truth.txt", *corrupt = "";
static long seed = 1, threads = 4, exited = 2, live = 200000, ops = -1;
static long big = 1, fixed = -1, heaps = 1, n_sbrk, nobrk, decoy, wait_end;

/* The table: open addressing by address; entries are never removed. */

struct entry {
	uintptr_t addr;
	size_t size;		/* as requested */
	uint8_t owner;		/* thread, 0 is main */
	char how;		/* malloc, calloc, realloc, aligned */
	bool live;
	bool ours;		/* false: libc's or the loader's */
};

static struct entry *table;
static size_t table_cap, table_used;
static unsigned long table_ops, unknown_frees;
static int table_lock;
static __thread uint8_t self;

static _Noreturn void die(const char *text)
{
	if (write(2, text, strlen(text)) < 0)
		_exit(3);
	_exit(2);
}

static void *pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die("glibc_truth: mmap failed\n");
	return p;
}

static void lock(void)
{
	while (__atomic_exchange_n(&table_lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(void)
{
	__atomic_store_n(&table_lock, 0, __ATOMIC_RELEASE);
}

static struct entry *slot_of(struct entry *t, size_t cap, uintptr_t addr)
{
	size_t i = ((uint64_t)addr * UINT64_C(0x9e3779b97f4a7c15)) >> 20;

	for (i &= cap - 1; t[i].addr && t[i].addr != addr;)
		i = (i + 1) & (cap - 1);
	return &t[i];
}

static void table_grow(void)
{
	size_t cap = table_cap ? table_cap * 2 : 1 << 14;
	struct entry *t = pages(cap * sizeof(*t));

	for (size_t i = 0; i < table_cap; i++)
		if (table[i].addr)
			*slot_of(t, cap, table[i].addr) = table[i];
	if (table)
		munmap(table, table_cap * sizeof(*table));
	table = t;
	table_cap = cap;
}

static void table_add(void *p, size_t size, char how, bool ours)
{
	struct entry *e;

	lock();
	table_ops++;
	if (table_used * 2 >= table_cap)
		table_grow();
	e = slot_of(table, table_cap, (uintptr_t)p);
	if (!e->addr)
		table_used++;
	if (e->live)
		die("glibc_truth: a live block was handed out again\n");
	*e = (struct entry){ (uintptr_t)p, size, self, how, true, ours };
	unlock();
}

/*
 * Before the block goes back: once it is free, another thread may be given
 * the same address.
 */
static struct entry table_drop(void *p)
{
	struct entry *e, old = { 0 };

	lock();
	table_ops++;
	e = table_cap ? slot_of(table, table_cap, (uintptr_t)p) : &old;
	if (!e->live)
		unknown_frees++;
	old = *e;
	e->live = false;
	unlock();
	return old;
}

/* Allocation, ours and everybody's. */

static void *take(char how, size_t align, size_t size, bool ours)
{
	void *p;

	if (how == 'c')
		p = REAL(calloc)(1, size);
	else if (how == 'a')
		p = REAL(memalign)(align, size);
	else
		p = REAL(malloc)(size);
	if (p)
		table_add(p, size, how, ours);
	return p;
}

static void give(void *p)
{
	int saved = errno;

	if (!p)
		return;
	table_drop(p);
	REAL(free)(p);
	errno = saved;
}

static void *change(void *p, size_t size, bool ours)
{
	struct entry old;
	void *q;

	if (!p)
		return take('r', 0, size, ours);
	old = table_drop(p);
	q = REAL(realloc)(p, size);
	if (q)
		table_add(q, size, 'r', ours);
	else if (size)
		table_add(p, old.size, old.how, old.ours);
	return q;
}

void *FAKE(malloc)(size_t size)
{
	return take('m', 0, size, false);
}

void *FAKE(calloc)(size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return take('c', 0, bytes, false);
}

void *FAKE(realloc)(void *p, size_t size)
{
	return change(p, size, false);
}

void *FAKE(memalign)(size_t align, size_t size)
{
	return take('a', align, size, false);
}

void *FAKE(aligned_alloc)(size_t align, size_t size)
{
	return take('a', align, size, false);
}

int FAKE(posix_memalign)(void **ret, size_t align, size_t size)
{
	void *p = take('a', align, size, false);

	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

void *FAKE(valloc)(size_t size)
{
	return take('a', PAGE, size, false);
}

void *FAKE(pvalloc)(size_t size)
{
	return take('a', PAGE, (size + PAGE - 1) & ~(size_t)(PAGE - 1), false);
}

void FAKE(free)(void *p)
{
	give(p);
}

/* The work. */

struct worker {
	pthread_t thread;
	pid_t tid;
	uint8_t id;
	bool exits;
	uint64_t rng;
	void **slots;		/* blocks it holds; NULL is empty */
	size_t *sizes;
	size_t n_slots, n_live;
	/* Blocks it freed into its cache: in a list's middle, at its end. */
	void *cached, *cached_end;
	void *unsorted;		/* and one it freed that no cache takes */
};

static struct worker workers[MAX_THREADS + 1];
static void *shelf[SHELF];	/* blocks that wander between threads */
static int parked;
static void *decoys[64];

static uint64_t rnd(struct worker *w)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return w->rng;
}

static size_t below(struct worker *w, size_t n)
{
	return rnd(w) % n;
}

static size_t random_size(struct worker *w)
{
	size_t r = below(w, 1000);

	if (r < 750)
		return below(w, 129);
	if (r < 950)
		return 129 + below(w, 570);
	if (r < 995)
		return 700 + below(w, 3400);
	if (r < 999 || !big || below(w, 4))
		return 4000 + below(w, 60000);
	return 128 * 1024 + below(w, 900 * 1024);
}

/*
 * Content of the kinds that mislead a walker: what was there before (with
 * stale links and keys), words that look like chunk headers, addresses of
 * blocks.  Ends are written too: the last word lies in the next chunk.
 */
static void fill(struct worker *w, void *p, size_t size)
{
	uintptr_t word[8];
	size_t n = size < sizeof(word) ? size : sizeof(word);
	unsigned kind = below(w, 8);

	if (kind == 0)
		return;
	for (unsigned i = 0; i < 8; i++)
		if (kind < 3)
			word[i] = (below(w, 64) + 1) * 16 + below(w, 8);
		else if (kind < 5)
			word[i] = (uintptr_t)p + (below(w, 64) - 32) * 16;
		else if (kind == 5)
			word[i] = i & 1 ? PAGE * (1 + below(w, 9)) + 2 : 0;
		else
			word[i] = rnd(w);
	memcpy(p, word, n);
	if (size > 2 * sizeof(word))
		memcpy((char *)p + size - sizeof(word), word, sizeof(word));
}

static void *fresh(struct worker *w, size_t size)
{
	unsigned how = below(w, 20);
	void *p;

	if (how < 12)
		p = take('m', 0, size, true);
	else if (how < 16)
		p = take('c', 0, size, true);
	else if (how < 18)
		p = change(NULL, size, true);
	else
		p = take('a', (size_t)16 << below(w, 9), size, true);
	if (!p)
		die("glibc_truth: out of memory\n");
	fill(w, p, size);
	return p;
}

static void hold(struct worker *w, size_t i, void *p, size_t size)
{
	w->slots[i] = p;
	w->sizes[i] = size;
	w->n_live++;
}

static void *let_go(struct worker *w, size_t i)
{
	void *p = w->slots[i];

	w->slots[i] = NULL;
	w->n_live--;
	return p;
}

/* Grow or shrink; a large one half of the time by a page or two: mremap. */
static void resize(struct worker *w, size_t i)
{
	size_t size = random_size(w);
	void *p;

	if (w->sizes[i] >= 128 * 1024 && below(w, 4))
		size = w->sizes[i] + PAGE * (1 + below(w, 200));
	p = change(let_go(w, i), size + !size, true);
	if (!p)
		die("glibc_truth: out of memory\n");
	fill(w, p, size);
	hold(w, i, p, size);
}

static void one_op(struct worker *w)
{
	size_t i = below(w, w->n_slots), size = random_size(w);
	unsigned what = below(w, 100);
	void *p;

	if (!w->slots[i])
		hold(w, i, fresh(w, size), size);
	else if (what < 70)
		give(let_go(w, i));
	else if (what < 95)
		resize(w, i);
	else {
		p = let_go(w, i);
		give(__atomic_exchange_n(&shelf[below(w, SHELF)], p,
					 __ATOMIC_ACQ_REL));
	}
}

/* Runs of one size, freed: first the cache is full, then a fastbin. */
static void fill_caches(struct worker *w)
{
	void *p[40];

	for (size_t size = 8; size < 1200; size += 8 + below(w, 90)) {
		size_t n = 1 + below(w, 40);

		for (size_t i = 0; i < n; i++)
			p[i] = take('m', 0, size, true);
		for (size_t i = 0; i < n; i++)
			give(p[i]);
		/*
		 * The first ones found room in the cache: as many were just
		 * taken from it, or were never in it.
		 */
		if (size > 32 && size <= 1000)
			w->cached_end = p[0];
		if (size > 32 && size <= 1000 && n >= 5)
			w->cached = p[2];
	}
}

/* A block that goes to the unsorted bin, and is not merged with one before. */
static void fill_unsorted(struct worker *w)
{
	size_t size = 2000;
	char *p;

	do {
		size += 16;
		p = take('m', 0, size, true);
		take('m', 0, 24, true);
	} while (!(((size_t *)p)[-1] & 1) && size < 10000);
	give(p);
	w->unsorted = p;
}

/*
 * Blocks just below the threshold of a mapping, until there are n heaps.
 * A third of them is freed again; the rest stays.
 */
static void many_heaps(struct worker *w, long n)
{
	const size_t size = 100000;
	size_t count = (n - 1) * (HEAP_MAX / size + 1);
	void **p = pages(count * sizeof(*p));

	for (size_t i = 0; i < count; i++) {
		p[i] = take('m', 0, size, true);
		fill(w, p[i], size);
	}
	for (size_t i = 0; i + 1 < count; i++)
		if (!below(w, 3))
			give(p[i]);
}

/* Two sbrk() at once may return the same: nobody else allocates meanwhile. */
static pthread_rwlock_t break_lock =
	PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static void foreign_sbrk(struct worker *w)
{
	size_t size = 8 * (1 + below(w, 3000));
	char *p;

	pthread_rwlock_wrlock(&break_lock);
	p = sbrk(size);
	pthread_rwlock_unlock(&break_lock);
	if (p != (char *)-1)
		memset(p, 0x5b, size);
}

/* A page right behind the break: it cannot grow any more. */
static void block_break(void)
{
	uintptr_t brk = (uintptr_t)sbrk(0);
	void *at = (void *)((brk + PAGE - 1) & ~(uintptr_t)(PAGE - 1));

	mmap(at, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
	     0);
}

static void work(struct worker *w)
{
	size_t n = ops / (threads + exited + 1), target;

	/* More than its share: others free some of what it leaves. */
	target = live / (threads + exited + 1);
	target += target / 10 + 64;
	w->n_slots = target + target / 3 + 64;
	w->slots = pages(w->n_slots * sizeof(*w->slots));
	w->sizes = pages(w->n_slots * sizeof(*w->sizes));
	if (w->id == 1 && heaps > 1)
		many_heaps(w, heaps);
	for (size_t i = 0; i < n; i++) {
		if (!w->id && n_sbrk && i % (n / (n_sbrk + 1) + 1) == 1)
			foreign_sbrk(w);
		if (!w->id && nobrk && i == (size_t)nobrk)
			block_break();
		pthread_rwlock_rdlock(&break_lock);
		one_op(w);
		pthread_rwlock_unlock(&break_lock);
	}
	pthread_rwlock_rdlock(&break_lock);
	for (size_t i = 0; w->n_live < target; i = (i + 1) % w->n_slots)
		if (!w->slots[i]) {
			size_t size = random_size(w);

			hold(w, i, fresh(w, size), size);
		}
	fill_caches(w);
	pthread_rwlock_unlock(&break_lock);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	self = w->id;
	w->tid = syscall(SYS_gettid);
	work(w);
	__atomic_fetch_add(&parked, 1, __ATOMIC_ACQ_REL);
	if (w->exits)
		return NULL;
	for (;;)
		pause();
}

static void start(struct worker *w, int id, bool exits)
{
	w->id = id;
	w->exits = exits;
	w->rng = (seed * 1000003 + id) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	if (id && pthread_create(&w->thread, NULL, worker_main, w))
		die("glibc_truth: no thread\n");
}

/* A few of the blocks that the threads left behind when they ended. */
static void free_orphans(struct worker *w, struct worker *gone)
{
	for (size_t i = 0; i < gone->n_slots; i++)
		if (gone->slots[i] && !below(w, 10))
			give(let_go(gone, i));
}

static void work_all(void)
{
	struct worker *w = workers;
	int n = threads + exited;

	for (int i = 0; i <= n; i++)
		start(&w[i], i, i > threads);
	w[0].tid = getpid();
	work(&w[0]);
	for (int i = threads + 1; i <= n; i++) {
		pthread_join(w[i].thread, NULL);
		free_orphans(&w[0], &w[i]);
	}
	while (__atomic_load_n(&parked, __ATOMIC_ACQUIRE) < n)
		usleep(1000);
	/* Now nobody can free what lies before it. */
	fill_unsorted(&w[0]);
}

/* Headers as of blocks that are mappings of their own; all sizes differ. */
static void make_decoys(void)
{
	for (long i = 0; i < decoy; i++) {
		size_t size = (40 + 3 * i) * PAGE;
		uintptr_t *p = pages(size);

		p[1] = size | 2;
		decoys[i] = p;
	}
}

/* The truth. */

static uintptr_t arena_of(uintptr_t addr)
{
	size_t size = *(size_t *)(addr - W);

	if (size & 2)
		return 1;
	return size & 4 ? *(uintptr_t *)(addr & ~(HEAP_MAX - 1)) : 0;
}

static void write_entry(FILE *f, const struct entry *e)
{
	if (!e->live)
		fprintf(f, "F %#lx\n", (unsigned long)e->addr);
	else
		fprintf(f, "%c %#lx %lu %lu %d %c %#lx\n", e->ours ? 'B' : 'L',
			(unsigned long)e->addr, (unsigned long)e->size,
			(unsigned long)malloc_usable_size((void *)e->addr),
			e->owner, e->how, (unsigned long)arena_of(e->addr));
}

static void write_mallinfo(FILE *f)
{
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 i = mallinfo2();

	fprintf(f, "I arena %zu\nI ordblks %zu\nI smblks %zu\nI hblks %zu\n",
		i.arena, i.ordblks, i.smblks, i.hblks);
	fprintf(f, "I hblkhd %zu\nI fsmblks %zu\nI uordblks %zu\n", i.hblkhd,
		i.fsmblks, i.uordblks);
	fprintf(f, "I fordblks %zu\n", i.fordblks);
#else
	(void)f;
#endif
}

/*
 * Nothing here may allocate or free: it would change what was just counted.
 * The streams are open and have buffers of their own, and the count of
 * table operations proves it.
 */
static void write_truth(FILE *info, FILE *f)
{
	unsigned long before = table_ops;
	long n_live = 0;

	malloc_info(0, info);
	write_mallinfo(f);
	fflush(info);
	for (int i = 0; i <= threads + exited; i++)
		fprintf(f, "T %d %d %s\n", i, (int)workers[i].tid,
			workers[i].exits ? "exited" : "alive");
	for (size_t i = 0; i < table_cap; i++) {
		n_live += table[i].live && table[i].ours;
		if (table[i].addr)
			write_entry(f, &table[i]);
	}
	if (table_ops != before)
		die("glibc_truth: writing the truth allocated\n");
	if (unknown_frees)
		die("glibc_truth: a block was freed that is not known\n");
	if (n_live < live)
		die("glibc_truth: too few live blocks\n");
}

/* A small live block of ours, in the main arena or in another one. */
static char *victim(bool main_arena)
{
	size_t skip = table_used / 3;

	for (size_t i = 0; i < table_cap; i++) {
		struct entry *e = &table[i];

		if (skip && skip--)
			continue;
		if (e->live && e->ours && e->size > 40 && e->size < 1000 &&
		    (main_arena ? !arena_of(e->addr) : arena_of(e->addr) > 1))
			return (char *)e->addr;
	}
	die("glibc_truth: nothing to damage\n");
}

static void damage(FILE *f)
{
	uintptr_t bad = (uintptr_t)UINT64_C(0xdeadbeefcafef00d);
	char *p = victim(strcmp(corrupt, "size-thread"));

	if (!strncmp(corrupt, "size", 4))
		memcpy(p - W, &bad, W);
	else if (!strcmp(corrupt, "overflow"))
		memset(p + malloc_usable_size(p), 'A', 64);
	else if (!strcmp(corrupt, "tcache"))
		memcpy(p = workers[0].cached, &bad, W);
	else if (!strcmp(corrupt, "tcache-end"))
		memcpy(p = workers[0].cached_end, &bad, W);
	else if (!strcmp(corrupt, "unsorted"))
		memcpy(p = workers[0].unsorted, &bad, W);
	else
		die("glibc_truth: corrupt= what?\n");
	fprintf(f, "D %s %#lx\n", corrupt, (unsigned long)p);
}

/* Parsed by hand: nothing here may depend on what is tested. */
static void options(int argc, char **argv)
{
	static const struct {
		const char *name;
		long *value;
	} numbers[] = {
		{ "seed=", &seed }, { "threads=", &threads },
		{ "exited=", &exited }, { "live=", &live }, { "ops=", &ops },
		{ "big=", &big }, { "fixed=", &fixed }, { "heaps=", &heaps },
		{ "sbrk=", &n_sbrk }, { "nobrk=", &nobrk },
		{ "decoy=", &decoy }, { "wait=", &wait_end },
	};
	size_t k, n = sizeof(numbers) / sizeof(numbers[0]);

	for (int i = 1; i < argc; i++) {
		for (k = 0; k < n; k++)
			if (!strncmp(argv[i], numbers[k].name,
				     strlen(numbers[k].name)))
				break;
		if (k < n)
			*numbers[k].value =
				atol(argv[i] + strlen(numbers[k].name));
		else if (!strncmp(argv[i], "out=", 4))
			out = argv[i] + 4;
		else if (!strncmp(argv[i], "corrupt=", 8))
			corrupt = argv[i] + 8;
		else
			die("glibc_truth: unknown option\n");
	}
	if (ops < 0)
		ops = 6 * live;
	if (fixed < 0)
		fixed = !(seed & 1);
	if (threads < 0 || exited < 0 || threads + exited > MAX_THREADS ||
	    decoy > 64)
		die("glibc_truth: too many\n");
}

/* The lines of malloc_info behind the rest, each marked. */
static void append_info(FILE *f, const char *path, const char *text)
{
	const char *largest = text;
	long most = 1;

	while ((largest = strstr(largest, "\"subheaps\" size=\""))) {
		largest += strlen("\"subheaps\" size=\"");
		most = atol(largest) > most ? atol(largest) : most;
	}
	if (threads && most < heaps)
		die("glibc_truth: too few heaps\n");
	for (const char *end; (end = strchr(text, '\n')); text = end + 1)
		fprintf(f, "X %.*s\n", (int)(end - text), text);
	unlink(path);
}

int main(int argc, char **argv)
{
	static char buffer[1 << 16], info_text[1 << 20], path[4096];
	FILE *f, *info;

	options(argc, argv);
	if (fixed)
		mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	snprintf(path, sizeof(path), "%s.info", out);
	f = fopen(out, "w");
	info = fopen(path, "w+");
	if (!f || !info)
		die("glibc_truth: cannot write the truth\n");
	setvbuf(f, buffer, _IOFBF, sizeof(buffer));
	setvbuf(info, info_text, _IOFBF, sizeof(info_text) - 1);
	fprintf(f, "glibc %d.%d\nword %d\nseed %ld\n", __GLIBC__,
		__GLIBC_MINOR__, W, seed);
	make_decoys();
	work_all();
	write_truth(info, f);
	append_info(f, path, info_text);
	if (*corrupt)
		damage(f);
	fflush(f);
	munmap(table, table_cap * sizeof(*table));
	while (wait_end)
		pause();
	abort();
}
