/* SPDX-License-Identifier: MIT */
#include "analysis/php_frames.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	MAX_FRAMES = 1 << 20,
	MAX_PAGES = 1 << 16,
	MAX_ARGS = 100000,
	MAX_RANGES = 1 << 16,
	/* In a frame's info. */
	HAS_SYMBOLS = 1 << 20,
	HAS_NAMED = 1 << 27,
};

static uint32_t get_u32(struct php_graph *g, vaddr addr)
{
	uint32_t ret = 0;

	return space_u32(g->sp, addr, &ret) ? ret : 0;
}

static uint64_t get_u64(struct php_graph *g, vaddr addr)
{
	uint64_t ret = 0;

	return space_u64(g->sp, addr, &ret) ? ret : 0;
}

/* False if there is no frame. */
static bool read_frame(struct php_graph *g, vaddr addr, struct php_frame *ret)
{
	uint8_t p[PHP_FRAME], kind = 0;

	if (addr % 16 || !php_pay(g, 4) ||
	    space_read(g->sp, addr, p, sizeof(p)) != sizeof(p))
		return false;
	*ret = (struct php_frame){
		.addr = addr, .opline = load_u64(p),
		.function = load_u64(p + PHP_FRAME_FUNCTION),
		.info = load_u32(p + PHP_FRAME_INFO),
		.n_args = load_u32(p + PHP_FRAME_ARGS),
	};
	if (!ret->function)
		return true;
	if (!space_u8(g->sp, ret->function, &kind) ||
	    (kind != PHP_USER && kind != PHP_INTERNAL) ||
	    ret->n_args > MAX_ARGS)
		return false;
	ret->internal = kind == PHP_INTERNAL;
	if (!ret->internal)
		ret->line = get_u32(g, ret->opline + PHP_OP_LINE);
	return true;
}

static void follow_chain(struct php_frames *f, struct php_graph *g, vaddr addr,
			 bool pending)
{
	struct php_frame frame;

	while (addr && f->n < MAX_FRAMES && php_block(g, addr) &&
	       read_frame(g, addr, &frame)) {
		frame.pending = pending;
		MEM_PUSH(f->items, f->n, f->cap) = frame;
		addr = get_u64(g, addr + PHP_FRAME_PREV);
	}
}

/* ---- frames in no list ---- */

/* Its header, variables, temporaries and arguments, in slots of 16 bytes. */
static uint64_t frame_slots(struct php_graph *g, const struct php_frame *f)
{
	const struct php_layout *at = g->at;
	uint32_t params;

	if (f->internal || !f->function)
		return 5 + (uint64_t)f->n_args;
	params = get_u32(g, f->function + PHP_FUNCTION_PARAMS);
	return 5 + (uint64_t)f->n_args +
		get_u32(g, f->function + at->n_vars) +
		get_u32(g, f->function + at->temps) -
		min_u64(f->n_args, params);
}

static void look_at_page(struct php_frames *f, struct php_graph *g,
			 const vaddr *known, size_t n_known, vaddr page,
			 vaddr top)
{
	vaddr at = page + PHP_STACK_FIRST;
	struct php_frame frame;

	while (at + PHP_FRAME <= top && f->n < MAX_FRAMES &&
	       read_frame(g, at, &frame) && frame.function) {
		frame.left = true;
		if (!FIND(known, n_known, at))
			MEM_PUSH(f->items, f->n, f->cap) = frame;
		at += 16 * frame_slots(g, &frame);
	}
}

/* All pages from the current one on, each up to its top. */
static void find_left(struct php_frames *f, struct php_graph *g, vaddr eg)
{
	vaddr page = get_u64(g, eg + g->at->stack + 16);
	vaddr top = get_u64(g, eg + g->at->stack);
	size_t n = f->n;
	AUTO_FREE vaddr *known = mem_alloc((n + 1) * sizeof(*known));

	for (size_t i = 0; i < n; i++)
		known[i] = f->items[i].addr;
	SORT(known, n, num_compare_u64);
	for (unsigned i = 0; page && i < MAX_PAGES && php_block(g, page);
	     i++) {
		vaddr start = php_block_start(g, page);

		look_at_page(f, g, known, n, page, min_u64(top, start +
			     php_block_bytes(g, page)));
		page = get_u64(g, page + PHP_STACK_PREV);
		top = page ? get_u64(g, page + PHP_STACK_TOP) : 0;
	}
}

void php_frames_init(struct php_frames *f, struct php_graph *g,
		     vaddr executor)
{
	*f = (struct php_frames){ 0 };
	follow_chain(f, g, get_u64(g, executor + g->at->frame), false);
	f->n_running = f->n;
	for (size_t i = 0; i < f->n_running; i++) {
		vaddr call = get_u64(g, f->items[i].addr + PHP_FRAME_CALL);

		/* Of an internal function, nobody clears it. */
		if (!f->items[i].internal)
			follow_chain(f, g, call, true);
	}
	find_left(f, g, executor);
}

void php_frames_fini(struct php_frames *f)
{
	free(f->items);
}

/* ---- what they hold ---- */

/* Temporaries hold something only while it is their time. */
static void add_temporaries(struct php_graph *g, const struct php_frame *f,
			    uint32_t first, uint32_t n)
{
	const struct php_layout *at = g->at;
	uint64_t ranges = get_u64(g, f->function + at->live);
	uint32_t n_ranges = get_u32(g, f->function + at->live - 8);
	vaddr ops = get_u64(g, f->function + at->opcodes);
	uint64_t now = (f->opline - ops) / PHP_OP;

	php_root(g, PHP_ROOT_TEMPORARY, f->function, 0);
	for (uint32_t i = 0; i < n_ranges && i < MAX_RANGES; i++) {
		uint32_t r[3], slot;

		if (!php_pay(g, 1) ||
		    space_read(g->sp, ranges + 12 * (uint64_t)i, r,
			       sizeof(r)) != sizeof(r))
			break;
		slot = ((r[0] & ~7u) - PHP_FRAME) / PHP_ZVAL;
		if (r[1] <= now && now < r[2] && slot >= first &&
		    slot - first < n)
			php_follow_zvals(g, f->addr + PHP_FRAME +
					 (uint64_t)slot * PHP_ZVAL, 1);
	}
}

static void add_variables(struct php_graph *g, const struct php_frame *f,
			  uint32_t n)
{
	vaddr vars = get_u64(g, f->function + g->at->vars);

	for (uint32_t i = 0; i < n && php_pay(g, 1); i++) {
		php_root(g, PHP_ROOT_LOCAL, f->function,
			 get_u64(g, vars + 8 * (uint64_t)i));
		g->roots[g->n_roots - 1].left = f->left;
		php_follow_zvals(g, f->addr + PHP_FRAME +
				 (uint64_t)i * PHP_ZVAL, 1);
	}
}

/* Variables that have no place in the frame. */
static void add_symbols(struct php_graph *g, const struct php_frame *f,
			vaddr symbols)
{
	struct php_table t;
	struct php_element e;
	uint32_t node = php_reserve(g, symbols, PHP_KIND_ENGINE);

	if (!node || !php_table_open(&t, g, symbols))
		return;
	php_claim(g, node, t.data);
	while (php_table_next(&t, &e)) {
		if ((e.type & 0xff) == g->at->indirect)
			continue;
		php_root(g, PHP_ROOT_LOCAL, f->function, e.key);
		php_follow_zval(g, e.value, e.type);
	}
}

static void add_user(struct php_graph *g, const struct php_frame *f, vaddr eg)
{
	uint32_t n_vars = get_u32(g, f->function + g->at->n_vars);
	uint32_t temps = get_u32(g, f->function + g->at->temps);
	uint32_t params = get_u32(g, f->function + PHP_FUNCTION_PARAMS);
	vaddr symbols = 0;

	if (f->info & HAS_SYMBOLS)
		symbols = get_u64(g, f->addr + PHP_FRAME_SYMBOLS);
	if (symbols && symbols != eg + PHP_EG_SYMBOLS)
		add_symbols(g, f, symbols);
	if (n_vars > MAX_ARGS || temps > MAX_ARGS)
		return;
	/* Those of a file are globals, which have been before. */
	if (f->pending) {
		n_vars = (uint32_t)min_u64(n_vars, f->n_args);
		temps = 0;
	}
	if (!symbols || symbols != eg + PHP_EG_SYMBOLS)
		add_variables(g, f, n_vars);
	if (!f->pending && !f->left)
		add_temporaries(g, f, n_vars, temps);
	php_root(g, PHP_ROOT_ARGUMENT, f->function, 0);
	if (f->n_args > params && !f->pending)
		php_follow_zvals(g, f->addr + PHP_FRAME + PHP_ZVAL *
				 ((uint64_t)n_vars + temps),
				 f->n_args - params);
}

void php_frames_roots(const struct php_frames *f, struct php_graph *g,
		      vaddr executor)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct php_frame *frame = &f->items[i];

		if (!frame->function)
			continue;
		php_root(g, PHP_ROOT_THIS, frame->function, 0);
		php_follow_zvals(g, frame->addr + PHP_FRAME_THIS, 1);
		php_root(g, PHP_ROOT_ARGUMENT, frame->function, 0);
		if (frame->info & HAS_NAMED && g->at->api > 20190902)
			php_follow(g, get_u64(g, frame->addr +
					      PHP_FRAME_NAMED),
				   PHP_KIND_ARRAY);
		if (frame->internal)
			php_follow_zvals(g, frame->addr + PHP_FRAME,
					 frame->n_args);
		else
			add_user(g, frame, executor);
	}
}
