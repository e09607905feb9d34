/* SPDX-License-Identifier: MIT */
#include "analysis/refs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/scan.h"
#include "analysis/vtable.h"
#include "base/demangle.h"
#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/module.h"

void refs_names_init(struct refs_names *n, struct space *sp, struct heap *h,
		     const struct where *w, struct debug *debug)
{
	*n = (struct refs_names){ .sp = sp, .heap = h, .where = w };
	n->symbols = symbols_new(sp, debug);
}

void refs_names_fini(struct refs_names *n)
{
	symbols_free(n->symbols);
	*n = (struct refs_names){ 0 };
}

/* ---- names ---- */

enum type_known refs_class(struct refs_names *n, vaddr vtable, struct str *ret)
{
	enum type_known known;
	struct str name;

	str_init(&name);
	known = vtable_class(n->sp, n->symbols, vtable, &name);
	str_add_escaped(ret, name.text, name.len);
	str_fini(&name);
	return known;
}

/* The program goes by the name that it was started by. */
static void add_module(struct refs_names *n, const struct module *m,
		       struct str *ret)
{
	const char *name = m == space_module(n->sp, n->sp->at_phdr) ?
		n->sp->program : module_name(n->sp, m);

	str_add_escaped(ret, name, strlen(name));
}

bool refs_symbol_text(struct refs_names *n, vaddr addr, struct str *ret)
{
	const struct module *m = space_module(n->sp, addr);
	struct symbol symbol;
	struct str name;

	if (!m)
		return false;
	if (!symbols_find(n->symbols, addr, &symbol)) {
		add_module(n, m, ret);
		str_printf(ret, "+0x%" PRIx64, addr - m->start);
		return true;
	}
	str_init(&name);
	if (!demangle(symbol.name, &name))
		str_adds(&name, symbol.name);
	str_add_escaped(ret, name.text, name.len);
	str_fini(&name);
	if (addr != symbol.start)
		str_printf(ret, "+%" PRIu64, addr - symbol.start);
	str_adds(ret, " in ");
	add_module(n, m, ret);
	return true;
}

/* In the order of NT_PRSTATUS: struct user_regs_struct of Linux. */
static const char *register_name(const struct space *sp, vaddr i)
{
	static const char *const amd64[] = {
		"r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9",
		"r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip",
		"cs", "eflags", "rsp", "ss", "fs_base", "gs_base",
	};
	static const char *const i386[] = {
		"ebx", "ecx", "edx", "esi", "edi", "ebp", "eax", "ds", "es",
		"fs", "gs", "orig_eax", "eip", "cs", "eflags", "esp", "ss",
	};

	if (sp->machine == MACHINE_X86_64 && i < countof(amd64))
		return amd64[i];
	if (sp->machine == MACHINE_I386 && i < countof(i386))
		return i386[i];
	return NULL;
}

/* Of the words behind the others: see struct thread. */
static void vector_text(struct refs_names *n, vaddr i, struct str *ret)
{
	uint64_t number = i * n->sp->word / 16;

	if (n->sp->machine == MACHINE_AARCH64)
		str_printf(ret, "register v%" PRIu64, number);
	else if (number < 16)
		str_printf(ret, "register xmm%" PRIu64, number);
	else if (number < 32)
		str_printf(ret, "register ymm%" PRIu64, number - 16);
	else
		str_adds(ret, "vector register");
}

static void register_text(struct refs_names *n, uint32_t thread, vaddr i,
			  struct str *ret)
{
	const char *name = register_name(n->sp, i);

	if (thread < n->sp->n_threads && i >= n->sp->threads[thread].n_regs)
		vector_text(n, i - n->sp->threads[thread].n_regs, ret);
	else if (name)
		str_printf(ret, "register %s", name);
	else if (n->sp->machine == MACHINE_AARCH64 && i < 31)
		str_printf(ret, "register x%" PRIu64, i);
	else
		str_printf(ret, "register %" PRIu64, i);
}

static void thread_text(struct refs_names *n, uint32_t thread,
			struct str *ret)
{
	if (thread < n->sp->n_threads)
		str_printf(ret, " of thread %" PRIu32,
			   n->sp->threads[thread].tid);
	else
		str_adds(ret, " of a thread that is gone");
}

void refs_root_text(struct refs_names *n, const struct root *root, vaddr word,
		    struct str *ret)
{
	switch (root->kind) {
	case ROOT_REGISTERS:
		register_text(n, root->thread, word, ret);
		thread_text(n, root->thread, ret);
		return;
	case ROOT_STACK:
	case ROOT_STALE:
		str_adds(ret, root->kind == ROOT_STALE ? "dead stack" :
			      where_stack_at(n->where, word) ? "stack" :
			      "TLS");
		thread_text(n, root->thread, ret);
		str_printf(ret, " at 0x%" PRIx64, word);
		return;
	case ROOT_DATA:
		if (refs_symbol_text(n, word, ret))
			return;
		/* fallthrough */
	case ROOT_ANONYMOUS:
		str_printf(ret, "anonymous memory at 0x%" PRIx64, word);
		return;
	case ROOT_SHARED:
		str_printf(ret, "shared memory at 0x%" PRIx64, word);
		return;
	case ROOT_UNDECODED:
		str_printf(ret, "undecoded heap at 0x%" PRIx64, word);
		return;
	}
}

static void block_text(vaddr addr, vaddr word, struct str *ret)
{
	str_printf(ret, "block 0x%" PRIx64 "+%" PRIu64, addr, word - addr);
}

void refs_word_text(struct refs_names *n, const struct graph *g,
		    uint32_t node, vaddr word, struct str *ret)
{
	if (graph_is_root(g, node))
		refs_root_text(n, &g->roots.items[node - g->ix.n], word, ret);
	else
		block_text(index_addr(&g->ix, node), word, ret);
}

/* ---- referrers ---- */

struct hunt {
	struct refs *r;
	struct space *sp;
	struct heap *h;
	vaddr from, to;
	const struct root *root;	/* being looked through; NULL: heap */
	uint32_t lookups;		/* that may still be made */
};

static bool keep(struct refs *r, const struct ref *ref)
{
	/* Each kind gets its share of the room. */
	if (r->count[ref->kind]++ >= REFS_KEPT / 4 || r->n == REFS_KEPT)
		return false;
	r->item[r->n++] = *ref;
	return true;
}

static void met(struct hunt *h, vaddr word, uint64_t value)
{
	struct ref ref = { .word = word, .value = value };

	if (h->root) {
		ref.kind = h->root->kind;
		ref.root = *h->root;
		keep(h->r, &ref);
		return;
	}
	if (word >= h->from && word < h->to)
		return;
	ref.kind = REFS_BLOCK;
	/* A lookup in a long block takes long; so many tell enough. */
	if (!h->lookups) {
		h->r->count[REFS_BLOCK]++;
		return;
	}
	h->lookups--;
	if (heap_find(h->h, word, &ref.block) &&
	    ref.block.state == BLOCK_USED && word >= ref.block.addr)
		keep(h->r, &ref);
	/* The word behind a block's end belongs to the block before. */
	else if (heap_find(h->h, word - h->sp->word, &ref.block) &&
		 ref.block.state == BLOCK_USED &&
		 word - ref.block.addr < ref.block.usable)
		keep(h->r, &ref);
}

/* Bytes looked at before the next hole is looked for. */
enum { HUNT_STEP = 1 << 20 };

static void hunt_bytes(struct hunt *h, const uint8_t *bytes, vaddr start,
		       uint64_t n, unsigned word)
{
	uint64_t step = (uint64_t)SCAN_WORDS * word;
	struct scan_hits hits;

	for (uint64_t at = 0; at < n; at += step) {
		size_t k = scan_words(bytes + at, min_u64(n - at, step) / word,
				      word, h->from, h->to - h->from, &hits);

		for (size_t i = 0; i < k; i++)
			met(h, start + at + hits.pos[i] * (uint64_t)word,
			    h->from + hits.off[i]);
	}
}

static void hunt_range(struct hunt *h, vaddr from, vaddr to)
{
	from = round_up(from, h->sp->word);
	while (from < to) {
		uint64_t n;
		const uint8_t *bytes;

		/* What nobody wrote to holds no address: it may be huge. */
		from = max_u64(from, round_down(space_next_stored(h->sp, from),
						h->sp->page));
		if (from >= to)
			return;
		bytes = space_view_max(h->sp, from, &n);
		if (!bytes) {
			size_t seg = space_first_seg(h->sp, from);

			if (seg == h->sp->n_segs)
				return;
			from = max_u64(h->sp->segs[seg].start > from
				       ? h->sp->segs[seg].start
				       : h->sp->segs[seg].end,
				       from + h->sp->word);
			from = round_up(from, h->sp->word);
			continue;
		}
		n = min_u64(min_u64(n, HUNT_STEP), to - from);
		n &= ~(uint64_t)(h->sp->word - 1);
		if (!n)
			return;
		hunt_bytes(h, bytes, from, n, h->sp->word);
		from += n;
	}
}

static void hunt_registers(struct hunt *h)
{
	const struct thread *t = &h->sp->threads[h->root->thread];

	for (uint32_t i = 0; i < thread_words(t); i++)
		if (thread_word(t, i) - h->from < h->to - h->from)
			met(h, i, thread_word(t, i));
}

static int by_kind(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;

	return ORDER(x->kind, y->kind) ?: ORDER(x->word, y->word);
}

static void hunt_heap(struct hunt *h)
{
	for (size_t i = 0; i < h->h->n_extents; i++) {
		const struct heap_extent *x = &h->h->extents[i];

		if (x->kind == EXTENT_BLOCKS || x->kind == EXTENT_MMAPPED)
			hunt_range(h, x->start, x->end + x->overlap);
	}
}

/* What was met before is what would be met now. */
static void recall(struct hunt *h, const struct graph_asked *asked)
{
	for (size_t i = 0; i < asked->n; i++)
		met(h, asked->refs[i].word, asked->refs[i].value);
	h->r->count[REFS_BLOCK] += asked->n_more;
}

void refs_find(struct refs *r, struct space *sp, struct heap *h,
	       const struct where *w, const struct graph_asked *asked,
	       vaddr from, vaddr to)
{
	struct hunt hunt = { .r = r, .sp = sp, .h = h, .from = from,
			     .to = to, .lookups = GRAPH_ASKED_MAX };
	struct roots roots;

	*r = (struct refs){ .n = 0 };
	roots_init(&roots, sp, h, w);
	for (size_t i = 0; i < roots.n; i++) {
		hunt.root = &roots.items[i];
		if (hunt.root->kind == ROOT_REGISTERS)
			hunt_registers(&hunt);
		else
			hunt_range(&hunt, hunt.root->start, hunt.root->end);
	}
	hunt.root = NULL;
	if (asked && asked->start == from && asked->end == to)
		recall(&hunt, asked);
	else
		hunt_heap(&hunt);
	SORT(r->item, r->n, by_kind);
	roots_fini(&roots);
}

/* ---- paths ---- */

/* Breadth first from the roots, until the block is met. */
static bool find_parents(const struct graph *g, uint32_t block,
			 uint32_t *parent, uint32_t *queue)
{
	size_t head = 0, tail = 0;

	for (size_t i = 0; i < g->roots.n; i++)
		if (g->roots.items[i].kind != ROOT_STALE)
			queue[tail++] = graph_root_node(g, i);
	while (head < tail) {
		uint32_t node = queue[head++];

		for (uint32_t e = g->off[node]; e < g->off[node + 1]; e++) {
			uint32_t to = g->dst[e];

			/* 0 is no node, so a parent is never 0. */
			if (to & (GRAPH_WEAK | GRAPH_SPARE) || parent[to])
				continue;
			parent[to] = node;
			if (to == block)
				return true;
			queue[tail++] = to;
		}
	}
	return false;
}

void refs_path(struct refs_path *p, const struct graph *g, uint32_t block)
{
	size_t bytes = ((size_t)g->n_nodes + 1) * sizeof(uint32_t);
	uint32_t *parent = mem_map_huge(bytes);
	uint32_t *queue = mem_map_huge(bytes);

	*p = (struct refs_path){ .n = 0 };
	if (find_parents(g, block, parent, queue)) {
		for (uint32_t to = block; !graph_is_root(g, to);) {
			struct refs_step step = { .node = parent[to] };

			(void)graph_word(g, step.node, to, &step.word);
			MEM_PUSH(p->steps, p->n, p->cap) = step;
			to = step.node;
		}
	}
	for (size_t i = 0; i < p->n / 2; i++) {
		struct refs_step swap = p->steps[i];

		p->steps[i] = p->steps[p->n - 1 - i];
		p->steps[p->n - 1 - i] = swap;
	}
	mem_unmap(parent, bytes);
	mem_unmap(queue, bytes);
}

void refs_path_fini(struct refs_path *p)
{
	free(p->steps);
	*p = (struct refs_path){ 0 };
}
