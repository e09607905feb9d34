/* SPDX-License-Identifier: MIT */
#include "analysis/typed.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analysis/census.h"
#include "analysis/kin.h"
#include "base/mem.h"

enum {
	MAX_FRAMES = 1024,	/* of a thread */
	LOCALS_BUDGET = 1 << 26,	/* entries, for all frames */
	NEAR_STEPS = 1 << 21,	/* fields; then it may be enough */
};

static void add_modules(struct typed *ty, const struct typed_input *in)
{
	for (size_t i = 0; i < in->sp->n_modules; i++) {
		const struct debug_module *m =
			debug_of(in->debug, &in->sp->modules[i]);

		if (m->dwarf && dwarf_types_add(&ty->t, m->dwarf, m->bias,
						(uint32_t)i))
			ty->n_modules++;
	}
}

static void add_globals(struct typed *ty)
{
	for (size_t i = 0; i < ty->t.n_vars; i++) {
		const struct dvar *v = &ty->t.vars[i];
		uint32_t type = v->tls ? 0 : dwarf_var_type(&ty->t, v);

		if (type)
			spread_root(&ty->spread, v->addr, type);
	}
}

/*
 * Where the program's own thread-local variables begin, from the thread
 * pointer: before it on x86, behind two words on AArch64.  Those of libraries
 * are elsewhere.  False if it has none.
 */
static bool tls_start(struct space *sp, uint64_t *ret)
{
	enum {
		TLS = 7, MAX_PHDRS = 64,
		PHDR_SIZE = 56, AT_MEMSZ = 40, AT_ALIGN = 48,
	};

	for (uint64_t i = 0; i < min_u64(sp->at_phnum, MAX_PHDRS) &&
	     sp->word == 8; i++) {
		vaddr ph = sp->at_phdr + i * PHDR_SIZE;
		uint64_t memsz, align;
		uint32_t type;

		if (!space_u32(sp, ph, &type) || type != TLS ||
		    !space_u64(sp, ph + AT_MEMSZ, &memsz) ||
		    !space_u64(sp, ph + AT_ALIGN, &align) ||
		    align & (align - 1))
			continue;
		align = max_u64(align, 1);
		*ret = sp->machine == MACHINE_AARCH64 ? round_up(16, align) :
		       -round_up(memsz, align);
		return true;
	}
	return false;
}

static void add_thread_locals(struct typed *ty, const struct typed_input *in)
{
	struct space *sp = in->sp;
	uint64_t start;

	if (!tls_start(sp, &start))
		return;
	for (size_t i = 0; i < ty->t.n_vars; i++) {
		const struct dvar *v = &ty->t.vars[i];
		uint32_t type = v->tls ? dwarf_var_type(&ty->t, v) : 0;

		if (!type || !sp->modules[ty->t.files[v->file].module].is_exe)
			continue;
		for (size_t k = 0; k < sp->n_threads; k++)
			if (sp->threads[k].tls)
				spread_root(&ty->spread, sp->threads[k].tls +
					    start + v->addr, type);
	}
}

static void add_local(void *data, const struct dwarf_local *l)
{
	struct typed *ty = data;
	const struct dtype *type = dwarf_type_head(&ty->t, l->type);

	if (l->in_memory)
		spread_root(&ty->spread, l->value, l->type);
	else if (type->kind == DTYPE_POINTER)
		spread_pointer(&ty->spread, l->value, type->target);
}

static void add_locals(struct typed *ty, const struct typed_input *in)
{
	struct dwarf_frames frames = {
		.t = &ty->t, .sp = in->sp, .debug = in->debug,
		.lines = lines_new(), .cfi = in->cfi, .budget = LOCALS_BUDGET,
	};

	for (size_t i = 0; i < in->sp->n_threads; i++) {
		struct frame f;

		unwind_first(in->sp, &in->sp->threads[i], &f);
		for (unsigned k = 0; k < MAX_FRAMES && frames.budget; k++) {
			dwarf_locals(&frames, &f, add_local, ty);
			if (unwind_next(in->sp, in->cfi, &f) != UNWIND_MORE)
				break;
		}
	}
	lines_free(frames.lines);
}

static void note(struct typed *ty, const char *code, char *text)
{
	MEM_PUSH(ty->notes, ty->n_notes, ty->cap_notes) =
		(struct typed_note){ code, text };
}

static void note_all(struct typed *ty, const struct typed_input *in)
{
	char *const *findings;
	size_t n = debug_findings(in->debug, &findings);
	const struct dwarf_types *t = &ty->t;

	for (size_t i = 0; i < n; i++)
		note(ty, "debug-file", mem_strdup(findings[i]));
	if (t->n_skipped)
		note(ty, "debug-entries", mem_printf(
			"entries of debug information that make no sense: "
			"%" PRIu64, t->n_skipped));
	if (t->n_split)
		note(ty, "debug-split", mem_printf(
			"units with their types in .dwo files, which are "
			"not read: %" PRIu64, t->n_split));
	if (in->hints && ty->any && in->hints->n_unknown)
		note(ty, "hints-unknown", mem_printf(
			"hints whose types or members the program does not "
			"have: %zu, the first in line %u",
			in->hints->n_unknown, in->hints->first_unknown));
	if (in->hints && !ty->any)
		note(ty, "hints-unused", mem_strdup(
			"no module has debug information: hints count for "
			"nothing"));
	if (ty->any && ty->spread.exhausted)
		note(ty, "types-unfinished", mem_strdup(
			"types were spread for as long as the heap's size "
			"allows, and no longer"));
}

/*
 * Does a block that says something of block, by edge e of a graph for few, have
 * still more to say?  Variables have all been read unless they wait.
 */
static bool may_claim(const struct typed *ty, const struct graph *g,
		      uint32_t e)
{
	uint32_t node = graph_source(g, e);

	return spread_waits(&ty->spread, node) ||
	       (!graph_is_root(g, node) &&
		ty->spread.blocks[node].fit < FIT_EXACT);
}

/* Is all that points to it settled, and was followed? */
static bool is_done(const struct typed *ty, const struct graph *g, vaddr addr)
{
	enum { MAX_EDGES = 256 };
	uint32_t block = index_find(ty->spread.ix, addr);

	if (spread_settled(&ty->spread, addr))
		return true;
	if (!g || g->extent != GRAPH_STEP || g->n_edges > MAX_EDGES)
		return false;
	for (uint32_t e = 0; e < g->n_edges; e++)
		if ((g->dst[e] & GRAPH_NODE) == block && may_claim(ty, g, e))
			return false;
	return true;
}

/* Few blocks may be far from all else, and be settled all the same. */
static bool is_enough(const struct typed *ty, const struct typed_input *in)
{
	const struct graph *g = in->hints ? NULL : in->graph;

	for (size_t i = 0; i < in->n_wanted; i++)
		if (!is_done(ty, g, in->wanted[i]))
			return false;
	return in->wanted != NULL;
}

/* Some steps at a time, until the blocks asked about are settled. */
static bool near_is_enough(struct typed *ty, const struct typed_input *in)
{
	struct spread *s = &ty->spread;

	while (s->steps && (s->n_queue || s->n_pending)) {
		s->pause = s->steps - min_u64(s->steps, NEAR_STEPS);
		spread_run(s);
		if (!is_enough(ty, in))
			continue;
		for (size_t i = 0; i < in->n_wanted; i++)
			spread_object(s, in->wanted[i]);
		return true;
	}
	s->pause = 0;
	return false;
}

static void follow(struct typed *ty, const struct typed_input *in)
{
	struct spread *s = &ty->spread;

	progress_phase(in->progress, "following pointers");
	add_globals(ty);
	add_thread_locals(ty, in);
	add_locals(ty, in);
	if (in->wanted && !s->only && near_is_enough(ty, in))
		return;
	spread_run(s);
	spread_objects(s, in->heap);
}

void typed_init(struct typed *ty, const struct typed_input *in)
{
	*ty = (struct typed){ 0 };
	progress_phase(in->progress, "reading debug information");
	dwarf_types_init(&ty->t);
	add_modules(ty, in);
	ty->any = ty->n_modules > 0;
	ty->few = in->wanted != NULL;
	if (!ty->any) {
		note_all(ty, in);
		return;
	}
	if (in->hints)
		hints_resolve(in->hints, &ty->t);
	spread_init(&ty->spread, in->sp, in->ix, in->symbols, &ty->t,
		    in->hints);
	/* A hint's pointer may lead beside the block that it is about. */
	if (in->graph && in->graph->extent == GRAPH_KIN && !in->hints)
		ty->spread.only = in->graph->kin;
	follow(ty, in);
	note_all(ty, in);
}

void typed_fini(struct typed *ty)
{
	if (ty->any)
		spread_fini(&ty->spread);
	dwarf_types_fini(&ty->t);
	for (size_t i = 0; i < ty->n_notes; i++)
		free(ty->notes[i].text);
	free(ty->notes);
}

/* ---- names ---- */

/* A block's type and how it is known, to a number of the table of types. */
static uint32_t number_of(struct typed *ty, struct types *types,
			  struct map *numbers, uint32_t block)
{
	uint32_t type = ty->spread.blocks[block].type, number;
	uint8_t known = ty->spread.blocks[block].known;
	uint64_t key = ((uint64_t)type << 8 | known) + 1;
	struct str name;

	number = map_get(numbers, key);
	if (number)
		return number;
	str_init(&name);
	spread_name(&ty->spread, type, &name);
	number = types_add(types, name.text, known,
			   type & SPREAD_ARRAY ? 0 :
			   dwarf_type_size(&ty->t, type), 0);
	str_fini(&name);
	map_put(numbers, key, number);
	return number;
}

void typed_name(struct types *types, const struct census_input *in)
{
	struct typed *ty = in->typed;
	const uint64_t *only = ty && ty->few ? in->only : NULL;
	struct map numbers = { 0 };

	if (!ty || !ty->any)
		return;
	for (uint32_t i = 1; i < types->n_blocks; i++) {
		/* Most words of these bits are empty. */
		if (!(i & 63) && only && !only[i >> 6])
			i += 63;
		else if (ty->spread.blocks[i].fit)
			types_set(types, i, number_of(ty, types, &numbers, i));
	}
	map_fini(&numbers);
}
