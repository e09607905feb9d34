/* SPDX-License-Identifier: MIT */
#include "analysis/php_graph.h"

#include "analysis/php_shape.h"
#include "base/mem.h"

enum {
	MAX_NODES = 1 << 28,
	LEAST_VALUE = 32,	/* bytes of a string or a reference */
	MAX_EDGES = 1 << 30,
	MAX_PROPS = 1 << 16,
	MAX_OFFSET = 4096,	/* of an object in its block */
	FREE_STEPS = 1 << 20,	/* and one for four bytes */
};

/* ---- blocks ---- */

uint32_t php_block(const struct php_graph *g, vaddr addr)
{
	uint32_t number = index_find(g->ix, addr);

	return g->mine[number >> 6] >> (number & 63) & 1 ? number : 0;
}

vaddr php_block_start(const struct php_graph *g, vaddr addr)
{
	return index_start(g->ix, addr);
}

uint64_t php_block_bytes(const struct php_graph *g, vaddr addr)
{
	return index_end(g->ix, addr) - index_start(g->ix, addr);
}

bool php_claim(struct php_graph *g, uint32_t node, vaddr addr)
{
	uint32_t number = php_block(g, addr);

	if (!number || g->owner[number] ||
	    !index_starts(g->ix, addr - g->ix->base))
		return false;
	g->owner[number] = node;
	g->nodes[node].bytes += php_block_bytes(g, addr);
	g->nodes[node].blocks++;
	return true;
}

/* Bits for the blocks of one arena. */
static void mark_mine(struct php_graph *g, uint32_t arena)
{
	const struct heap *h = g->heap;

	for (size_t i = 0; i < h->n_extents; i++) {
		const struct heap_extent *x = &h->extents[i];
		struct heap_iter it;
		struct block b;

		if (x->arena != arena || (x->kind != EXTENT_BLOCKS &&
					  x->kind != EXTENT_MMAPPED))
			continue;
		heap_iter_range(&it, h, x->start, x->end);
		while (heap_iter_next(&it, &b)) {
			uint32_t number = b.state == BLOCK_USED ?
				index_find(g->ix, b.addr) : 0;

			if (number)
				g->mine[number >> 6] |=
					UINT64_C(1) << (number & 63);
		}
	}
}

void php_graph_init(struct php_graph *g, struct space *sp, struct heap *h,
		    const struct index *ix, uint32_t arena,
		    const struct php_layout *at)
{
	uint64_t bytes = 0;

	*g = (struct php_graph){
		.sp = sp, .heap = h, .ix = ix, .at = at, .done = 1,
		.n_slots = 1 << 12,
	};
	g->mine = mem_zalloc(((size_t)ix->n / 64 + 1) * sizeof(*g->mine));
	g->owner = mem_map(((size_t)ix->n + 1) * sizeof(*g->owner));
	g->slots = mem_zalloc(g->n_slots * sizeof(*g->slots));
	MEM_PUSH(g->nodes, g->n, g->cap) = (struct php_node){ 0 };
	MEM_PUSH(g->off, g->n_off, g->cap_off) = 0;
	for (size_t i = 0; i < sp->n_segs; i++)
		bytes += sp->segs[i].avail;
	g->steps = FREE_STEPS + bytes / 4;
	/* Blocks, and what is in none: constants, what opcache shares. */
	g->max_nodes = min_u64(ix->n + bytes / LEAST_VALUE + 1, MAX_NODES);
	mark_mine(g, arena);
}

void php_graph_fini(struct php_graph *g)
{
	free(g->mine);
	mem_unmap(g->owner, ((size_t)g->ix->n + 1) * sizeof(*g->owner));
	free(g->nodes);
	free(g->slots);
	free(g->off);
	free(g->dst);
	free(g->roots);
	free(g->root_dst);
	map_fini(&g->by_entry);
	free(g->classes);
}

bool php_pay(struct php_graph *g, uint64_t n)
{
	if (g->steps < n) {
		g->steps = 0;
		g->cut = true;
		return false;
	}
	g->steps -= n;
	return true;
}

/* ---- nodes and edges ---- */

/*
 * Where the address is, or would be.  No struct map: that has keys beside its
 * numbers, 12 bytes instead of 4 for each slot, and nodes can be many.
 */
static uint32_t *slot_of(const struct php_graph *g, vaddr addr)
{
	size_t i = (addr >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 20 &
		   (g->n_slots - 1);

	while (g->slots[i] && g->nodes[g->slots[i]].addr != addr)
		i = (i + 1) & (g->n_slots - 1);
	return &g->slots[i];
}

uint32_t php_node_at(const struct php_graph *g, vaddr addr)
{
	return *slot_of(g, addr);
}

static void grow_slots(struct php_graph *g)
{
	free(g->slots);
	g->n_slots *= 2;
	g->slots = mem_zalloc(g->n_slots * sizeof(*g->slots));
	for (size_t i = 1; i < g->n; i++)
		*slot_of(g, g->nodes[i].addr) = (uint32_t)i;
}

static uint32_t add_node(struct php_graph *g, vaddr addr, enum php_kind kind)
{
	uint32_t parent = g->from ? g->from :
		PHP_ROOT_BIT | (uint32_t)(g->n_roots - 1);
	uint32_t node = (uint32_t)g->n;

	if (g->n >= g->max_nodes) {
		g->cut = true;
		return 0;
	}
	MEM_PUSH(g->nodes, g->n, g->cap) = (struct php_node){
		.addr = addr, .parent = parent, .kind = kind,
	};
	if (g->n * 2 > g->n_slots)
		grow_slots(g);
	else
		*slot_of(g, addr) = node;
	return node;
}

static void add_edge(struct php_graph *g, uint32_t node)
{
	if (g->n_dst + g->n_root_dst >= MAX_EDGES)
		g->cut = true;
	else if (g->from)
		MEM_PUSH(g->dst, g->n_dst, g->cap_dst) = node;
	else
		MEM_PUSH(g->root_dst, g->n_root_dst, g->cap_root_dst) = node;
}

uint32_t php_reserve(struct php_graph *g, vaddr addr, enum php_kind kind)
{
	uint32_t node = php_node_at(g, addr);

	if (!addr || node)
		return node;
	node = add_node(g, addr, kind);
	if (node) {
		g->nodes[node].parent = 0;
		php_claim(g, node, addr);
	}
	return node;
}

/* One that had nothing gives its place to the next. */
void php_root(struct php_graph *g, enum php_root_kind kind, vaddr owner,
	      vaddr name)
{
	struct php_root root = {
		.kind = kind, .owner = owner, .name = name,
		.first = (uint32_t)g->n_root_dst,
	};

	g->from = 0;
	if (g->n_roots && g->roots[g->n_roots - 1].first == g->n_root_dst)
		g->roots[g->n_roots - 1] = root;
	else
		MEM_PUSH(g->roots, g->n_roots, g->cap_roots) = root;
}

static const uint8_t value_type[PHP_KINDS] = {
	[PHP_KIND_STRING] = PHP_STRING, [PHP_KIND_ARRAY] = PHP_ARRAY,
	[PHP_KIND_OBJECT] = PHP_OBJECT, [PHP_KIND_RESOURCE] = PHP_RESOURCE,
	[PHP_KIND_REFERENCE] = PHP_REFERENCE, [PHP_KIND_AST] = PHP_AST,
};

/* How far into its block an object lies: its handlers say so. */
static uint32_t object_offset(struct php_graph *g, vaddr object)
{
	uint64_t handlers;
	uint32_t off;

	if (!space_u64(g->sp, object + PHP_OBJECT_HANDLERS, &handlers) ||
	    !space_u32(g->sp, handlers, &off) || off > MAX_OFFSET)
		return 0;
	return off;
}

uint32_t php_follow(struct php_graph *g, vaddr addr, enum php_kind kind)
{
	uint32_t node, type;

	if (!addr || addr % 8 || !php_pay(g, 1))
		return 0;
	node = php_node_at(g, addr);
	if (!node) {
		if (value_type[kind] &&
		    (!space_u32(g->sp, addr + 4, &type) ||
		     (type & PHP_TYPE_MASK) != value_type[kind]))
			return 0;
		node = add_node(g, addr, kind);
		if (!node)
			return 0;
		php_claim(g, node, kind != PHP_KIND_OBJECT ? addr :
			  addr - object_offset(g, addr));
	}
	add_edge(g, node);
	return node;
}

/* ---- zvals ---- */

static enum php_kind kind_of_type(uint32_t type)
{
	switch (type & 0xff) {
	case PHP_STRING: return PHP_KIND_STRING;
	case PHP_ARRAY: return PHP_KIND_ARRAY;
	case PHP_OBJECT: return PHP_KIND_OBJECT;
	case PHP_RESOURCE: return PHP_KIND_RESOURCE;
	case PHP_REFERENCE: return PHP_KIND_REFERENCE;
	case PHP_AST: return PHP_KIND_AST;
	default: return PHP_KIND_NONE;
	}
}

static void follow_plain(struct php_graph *g, uint64_t value, uint32_t type)
{
	enum php_kind kind = kind_of_type(type);

	if (kind && (type & PHP_COUNTED || g->code))
		php_follow(g, value, kind);
	else if ((type & 0xff) == g->at->pointer)
		php_follow_word(g, value);
}

void php_follow_zval(struct php_graph *g, uint64_t value, uint32_t type)
{
	uint64_t other;

	if ((type & 0xff) != g->at->indirect)
		follow_plain(g, value, type);
	else if (space_u64(g->sp, value, &other) &&
		 space_u32(g->sp, value + PHP_ZVAL_TYPE, &type))
		follow_plain(g, other, type);
}

void php_follow_zvals(struct php_graph *g, vaddr addr, uint64_t n)
{
	uint8_t buf[1024];

	while (n) {
		uint64_t some = min_u64(n, sizeof(buf) / PHP_ZVAL);

		if (!php_pay(g, some) || space_read(g->sp, addr, buf, some *
						    PHP_ZVAL) !=
		    some * PHP_ZVAL)
			return;
		for (uint64_t i = 0; i < some; i++)
			php_follow_zval(g, load_u64(buf + i * PHP_ZVAL),
					load_u32(buf + i * PHP_ZVAL +
						 PHP_ZVAL_TYPE));
		n -= some;
		addr += some * PHP_ZVAL;
	}
}

/* What a block is by its shape, when nothing says what refers to it. */
static enum php_kind shape_of(struct php_graph *g, vaddr word, vaddr start)
{
	uint64_t size = php_block_bytes(g, start);
	const uint8_t *p = space_view(g->sp, start, size);
	uint64_t off = word - start;

	if (!p)
		return PHP_KIND_NONE;
	if (off)
		return off <= MAX_OFFSET &&
		       php_is_object(g->sp, p, size, (uint32_t)off) ?
			PHP_KIND_OBJECT : PHP_KIND_NONE;
	return kind_of_type(php_shape(g->sp, p, size));
}

/* What is the engine's as a whole belongs to no value. */
static bool is_reserved(enum php_kind kind)
{
	return kind == PHP_KIND_ARENA || kind == PHP_KIND_STACK ||
	       kind == PHP_KIND_ENGINE;
}

bool php_follow_word(struct php_graph *g, vaddr word)
{
	uint32_t number = php_block(g, word);
	enum php_kind kind;
	vaddr start;

	if (!number || !php_pay(g, 1))
		return false;
	if (g->owner[number]) {
		if (!is_reserved(g->nodes[g->owner[number]].kind))
			add_edge(g, g->owner[number]);
		return true;
	}
	start = php_block_start(g, word);
	kind = shape_of(g, word, start);
	if (kind)
		return php_follow(g, word, kind) != 0;
	return php_follow(g, start, g->code ? PHP_KIND_CODE :
			  PHP_KIND_OPAQUE) != 0;
}

/* ---- tables ---- */

bool php_table_open(struct php_table *t, struct php_graph *g, vaddr array)
{
	uint8_t head[PHP_ARRAY_BYTES];
	uint32_t flags, hash;
	vaddr at;

	t->used = t->n_buffer = t->first_buffer = t->i = 0;
	if (!array || space_read(g->sp, array, head, sizeof(head)) !=
	    sizeof(head))
		return false;
	flags = load_u32(head + PHP_ARRAY_FLAGS);
	hash = 0 - load_u32(head + PHP_ARRAY_MASK);
	at = load_u64(head + PHP_ARRAY_DATA);
	t->g = g;
	t->at = at;
	t->data = at - 4 * (uint64_t)hash;
	t->count = load_u32(head + PHP_ARRAY_COUNT);
	t->size = load_u32(head + PHP_ARRAY_SIZE);
	t->each = flags & PHP_ARRAY_PACKED ? g->at->packed : PHP_BUCKET;
	if (flags & PHP_ARRAY_EMPTY || !hash || at % 8 ||
	    load_u32(head + PHP_ARRAY_USED) > t->size || t->count > t->size)
		return false;
	t->used = load_u32(head + PHP_ARRAY_USED);
	return true;
}

static bool fill(struct php_table *t)
{
	uint32_t n = (uint32_t)min_u64(sizeof(t->buffer) / t->each,
				       t->used - t->i);
	uint64_t got;

	if (!n || !php_pay(t->g, n))
		return false;
	got = space_read(t->g->sp, t->at + (uint64_t)t->i * t->each,
			 t->buffer, (uint64_t)n * t->each);
	t->first_buffer = t->i;
	t->n_buffer = (uint32_t)(got / t->each);
	return t->n_buffer != 0;
}

bool php_table_next(struct php_table *t, struct php_element *ret)
{
	for (;;) {
		const uint8_t *p;

		if (t->i - t->first_buffer >= t->n_buffer && !fill(t))
			return false;
		p = t->buffer + (size_t)(t->i - t->first_buffer) * t->each;
		*ret = (struct php_element){
			.value = load_u64(p),
			.type = load_u32(p + PHP_ZVAL_TYPE),
			.hash = t->i++,
		};
		if (!(ret->type & 0xff))
			continue;
		if (t->each == PHP_BUCKET) {
			ret->hash = load_u64(p + PHP_BUCKET_HASH);
			ret->key = load_u64(p + PHP_BUCKET_KEY);
		}
		return true;
	}
}

static void follow_key(struct php_graph *g, vaddr key)
{
	uint32_t type;

	if (key && space_u32(g->sp, key + 4, &type) &&
	    (g->code || !(type & PHP_IMMUTABLE)))
		php_follow(g, key, PHP_KIND_STRING);
}

static void look_at_array(struct php_graph *g, uint32_t node)
{
	struct php_table t;
	struct php_element e;
	uint32_t type = 0;

	if (!php_table_open(&t, g, g->nodes[node].addr) ||
	    !space_u32(g->sp, g->nodes[node].addr + 4, &type))
		return;
	php_claim(g, node, t.data);
	g->code = type & PHP_IMMUTABLE;
	while (php_table_next(&t, &e)) {
		follow_key(g, e.key);
		php_follow_zval(g, e.value, e.type);
	}
	g->code = false;
}

/* ---- objects ---- */

static void read_class(struct php_graph *g, struct php_class *c)
{
	static const struct {
		const char *name;
		enum php_class_kind kind;
	} special[] = {
		{ "Closure", PHP_CLOSURE }, { "Generator", PHP_GENERATOR },
		{ "Fiber", PHP_FIBER },
	};
	uint32_t n = 0, flags = 0;
	uint8_t type = 0;
	struct str name;

	str_init(&name);
	c->good = space_u8(g->sp, c->entry, &type) &&
		(type == PHP_INTERNAL || type == PHP_USER) &&
		space_u32(g->sp, c->entry + g->at->n_props, &n) &&
		space_u32(g->sp, c->entry + PHP_CLASS_FLAGS, &flags) &&
		n <= MAX_PROPS && php_class_name(g->sp, c->entry, &name);
	c->n_props = n;
	c->internal = type == PHP_INTERNAL;
	for (size_t i = 0; c->good && i < countof(special); i++)
		if (c->internal && !strcmp(name.text, special[i].name))
			c->kind = special[i].kind;
	str_fini(&name);
}

const struct php_class *php_class_at(struct php_graph *g, vaddr entry)
{
	struct php_class *c;
	uint32_t *number;

	if (!entry || entry % 8)
		return NULL;
	number = map_at(&g->by_entry, entry);
	if (*number) {
		c = &g->classes[*number - 1];
	} else {
		c = &MEM_PUSH(g->classes, g->n_classes, g->cap_classes);
		*c = (struct php_class){ .entry = entry };
		*number = (uint32_t)g->n_classes;
		read_class(g, c);
	}
	return c->good ? c : NULL;
}

/* Words of a block, or of a part of it, that lead to blocks. */
static void scan(struct php_graph *g, vaddr at, vaddr end)
{
	uint8_t buf[1024];

	for (at = round_up(at, 8); at < end; at += sizeof(buf)) {
		uint64_t n = min_u64(end - at, sizeof(buf)) / 8;

		if (!php_pay(g, n) ||
		    space_read(g->sp, at, buf, n * 8) != n * 8)
			return;
		for (uint64_t i = 0; i < n; i++)
			php_follow_word(g, load_u64(buf + i * 8));
	}
}

/* Null, a number, or a value that is what the zval says. */
static bool is_zval(struct php_graph *g, const uint8_t *p)
{
	uint32_t type = load_u32(p + PHP_ZVAL_TYPE), own;
	enum php_kind kind = kind_of_type(type);

	if ((type & 0xff) < PHP_STRING)
		return type < PHP_STRING;
	return kind && value_type[kind] == (type & 0xff) &&
	       type <= UINT16_MAX &&
	       space_u32(g->sp, load_u64(p) + 4, &own) &&
	       (own & PHP_TYPE_MASK) == value_type[kind];
}

/*
 * A block of an extension that is a list of zvals from its start to its end:
 * what a value's word has when its type is null is stale.
 */
static bool is_zvals(struct php_graph *g, vaddr addr, uint64_t size)
{
	const uint8_t *p = space_view(g->sp, addr, size);

	if (!p || size % PHP_ZVAL || size < 4 * PHP_ZVAL)
		return false;
	for (uint64_t at = 0; at < size; at += PHP_ZVAL)
		if (!php_pay(g, 1) || !is_zval(g, p + at))
			return false;
	return true;
}

static void look_at_opaque(struct php_graph *g, vaddr addr)
{
	uint64_t size = php_block(g, addr) ? php_block_bytes(g, addr) : 0;

	if (is_zvals(g, addr, size))
		php_follow_zvals(g, addr, size / PHP_ZVAL);
	else
		scan(g, addr, addr + size);
}

/* Variables and temporaries of a call that was put aside, up to top. */
static void follow_frame(struct php_graph *g, uint32_t node, vaddr frame,
			 vaddr top)
{
	vaddr block, end;

	if (!php_block(g, frame))
		return;
	block = php_block_start(g, frame);
	end = block + php_block_bytes(g, frame);
	php_claim(g, node, block);
	scan(g, frame, min_u64(top, end));
}

static void look_at_special(struct php_graph *g, uint32_t node,
			    const struct php_class *c)
{
	const struct php_layout *at = g->at;
	vaddr object = g->nodes[node].addr;
	uint64_t map, frame, page;

	/* Its code is that of the function that made it. */
	if (c->kind == PHP_CLOSURE) {
		if (space_u64(g->sp, object + PHP_CLOSURE_FUNCTION +
			      at->statics - 8, &map))
			php_follow(g, php_map(g, map), PHP_KIND_ARRAY);
		php_follow_zvals(g, object + PHP_CLOSURE_FUNCTION +
				 at->function_size, 1);
	} else if (c->kind == PHP_GENERATOR) {
		if (space_u64(g->sp, object + at->generator_frame, &frame))
			follow_frame(g, node, frame, UINT64_MAX);
		php_follow_zvals(g, object + at->generator_value, 3);
		php_follow_zvals(g, object + at->generator_value + 64, 1);
	} else if (at->fiber_stack) {
		if (space_u64(g->sp, object + at->fiber_stack, &page) &&
		    space_u64(g->sp, page + PHP_STACK_TOP, &map))
			follow_frame(g, node, page, map);
	}
}

static void look_at_object(struct php_graph *g, uint32_t node)
{
	vaddr object = g->nodes[node].addr, block;
	uint64_t entry, dynamic;
	const struct php_class *c;
	uint64_t end;

	if (!space_u64(g->sp, object + PHP_OBJECT_CLASS, &entry) ||
	    !space_u64(g->sp, object + PHP_OBJECT_DYNAMIC, &dynamic))
		return;
	php_follow(g, dynamic, PHP_KIND_ARRAY);
	c = php_class_at(g, entry);
	if (!c)
		return;
	php_follow_zvals(g, object + PHP_OBJECT_BYTES, c->n_props);
	if (c->kind != PHP_PLAIN)
		look_at_special(g, node, c);
	if (!php_block(g, object))
		return;
	/*
	 * What an extension keeps before the object, or else behind it: before
	 * it nothing but slack is behind it.
	 */
	block = php_block_start(g, object);
	end = block + php_block_bytes(g, object);
	if (c->kind == PHP_PLAIN && block != object)
		scan(g, block, object);
	else if (c->kind == PHP_PLAIN && c->internal)
		scan(g, object + PHP_OBJECT_BYTES +
		     (uint64_t)c->n_props * PHP_ZVAL, end);
}

/* ---- the others ---- */

static void look_at_resource(struct php_graph *g, uint32_t node)
{
	uint64_t data;

	if (space_u64(g->sp, g->nodes[node].addr + g->at->resource, &data))
		php_follow_word(g, data);
}

static void follow_scope(struct php_graph *g, vaddr function)
{
	uint8_t type;

	if (space_u8(g->sp, function, &type) && type == PHP_USER)
		php_follow(g, function, PHP_KIND_FUNCTION);
}

static void look_at_function(struct php_graph *g, uint32_t node)
{
	vaddr f = g->nodes[node].addr;
	uint64_t inner, one;
	uint32_t n = 0;

	g->code = true;
	scan(g, f, f + g->at->function_size);
	if (g->at->inner &&
	    space_u32(g->sp, f + g->at->n_inner, &n) && n < MAX_PROPS &&
	    space_u64(g->sp, f + g->at->inner, &inner))
		for (uint32_t i = 0; i < n; i++)
			if (space_u64(g->sp, inner + 8 * (uint64_t)i, &one))
				follow_scope(g, one);
	g->code = false;
}

static void look_at(struct php_graph *g, uint32_t node)
{
	vaddr addr = g->nodes[node].addr;

	switch (g->nodes[node].kind) {
	case PHP_KIND_ARRAY:
		look_at_array(g, node);
		break;
	case PHP_KIND_OBJECT:
		look_at_object(g, node);
		break;
	case PHP_KIND_REFERENCE:
		php_follow_zvals(g, addr + PHP_REFERENCE_VALUE, 1);
		break;
	case PHP_KIND_RESOURCE:
		look_at_resource(g, node);
		break;
	case PHP_KIND_FUNCTION:
		look_at_function(g, node);
		break;
	case PHP_KIND_CODE:
	case PHP_KIND_AST:
		g->code = true;
		if (php_block(g, addr))
			scan(g, addr, addr + php_block_bytes(g, addr));
		g->code = false;
		break;
	case PHP_KIND_OPAQUE:
		look_at_opaque(g, addr);
		break;
	default:
		break;
	}
}

void php_drain(struct php_graph *g)
{
	for (; g->done < g->n; g->done++) {
		g->from = g->done;
		MEM_PUSH(g->off, g->n_off, g->cap_off) = (uint32_t)g->n_dst;
		if (!g->cut)
			look_at(g, g->done);
	}
	g->from = 0;
}

vaddr php_map(struct php_graph *g, uint64_t pointer)
{
	uint64_t ret = pointer;

	if (!pointer)
		return 0;
	if (pointer & 1)
		return g->map_base && space_u64(g->sp, g->map_base + pointer,
						&ret) ? ret : 0;
	if (g->at->map_twice && !space_u64(g->sp, pointer, &ret))
		return 0;
	return ret;
}
