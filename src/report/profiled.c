/* SPDX-License-Identifier: MIT */
#include "report/profiled.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/module.h"
#include "replay/trace_write.h"

/* ---- stacks ---- */

/* One sample, for sorting. */
struct by_stack {
	const struct heap_profile *profile;
	const struct heap_sample *sample;
	uint32_t *number;	/* where its stack's number goes */
};

static int compare_stacks(const void *a, const void *b)
{
	const struct by_stack *x = a, *y = b;
	const vaddr *p = x->profile->pcs, *q = y->profile->pcs;
	uint32_t n = x->sample->depth, m = y->sample->depth;

	/* The outermost first: then neighbours share most. */
	for (uint32_t i = 1; i <= n && i <= m; i++) {
		vaddr u = p[x->sample->pc + n - i];
		vaddr v = q[y->sample->pc + m - i];

		if (u != v)
			return u < v ? -1 : 1;
	}
	return ORDER(n, m);
}

/* Equal stacks get one number; one without a frame is 0, the unknown one. */
static void write_stacks(struct profiled *p, struct trace_writer *w)
{
	struct by_stack *all = NULL;
	size_t n = 0, cap = 0;
	uint32_t number = 0;

	for (size_t i = 0; i < p->n_parts; i++)
		for (size_t k = 0; k < p->parts[i].profile->n; k++)
			MEM_PUSH(all, n, cap) = (struct by_stack){
				p->parts[i].profile,
				&p->parts[i].profile->samples[k],
				&p->parts[i].stacks[k],
			};
	SORT(all, n, compare_stacks);
	for (size_t i = 0; i < n; i++) {
		const struct heap_sample *s = all[i].sample;

		if (s->depth && (!number ||
				 compare_stacks(&all[i - 1], &all[i])))
			number = trace_writer_stack(w, all[i].profile->pcs +
						    s->pc, s->depth);
		*all[i].number = s->depth ? number : 0;
	}
	free(all);
}

/* A path that is not to be looked at, or leads to another file, has no /. */
static void write_modules(struct space *sp, struct debug *debug,
			  struct trace_writer *w)
{
	for (size_t i = 0; i < sp->n_modules; i++) {
		const struct module *m = &sp->modules[i];
		vaddr bias = debug_of(debug, m)->bias;
		const char *path = m->path ? m->path :
			module_name(sp, m);
		struct trace_segment segment = {
			.vaddr = m->start - bias, .memsz = m->end - m->start,
		};
		struct trace_module module = {
			.bias = bias, .segments = &segment, .n_segments = 1,
			.path = { path, strlen(path) },
			.build_id = { (const char *)m->build_id,
				      m->build_id_len },
		};

		trace_writer_module(w, &module);
	}
}

static bool make_trace(struct profiled *p, struct space *sp,
		       struct debug *debug, struct err *err)
{
	const struct trace_head head = {
		.pid = sp->pid, .page_size = (uint32_t)sp->page,
		.flags = TRACE_SAMPLED,
	};
	int fd = memfd_create("profile", MFD_CLOEXEC);
	int again = fd < 0 ? -1 : dup(fd);
	struct trace_writer *w;

	if (again < 0) {
		if (fd >= 0)
			close(fd);
		return err_system(err, "no memory for a profile");
	}
	w = trace_writer_fd(fd, sp->path ? sp->path : "profile", &head);
	write_modules(sp, debug, w);
	write_stacks(p, w);
	if (!trace_writer_close(w, err)) {
		close(again);
		return false;
	}
	p->trace = trace_open_fd(again, sp->path ? sp->path : "profile", err);
	return p->trace != NULL;
}

/* ---- samples ---- */

struct sample profiled_sample(const struct profiled_part *part, size_t i)
{
	const struct heap_sample *s = &part->profile->samples[i];
	uint64_t rate = part->rate.bytes ? part->rate.bytes : SAMPLER_ALL;
	struct sample ret = {
		.size = s->allocated, .rate = rate,
		.length = max_u64(min_u64(s->length, SAMPLER_MAX_LENGTH), 1),
		.marks = 1,
	};

	/* The weight is rate + length - first. */
	ret.first = s->weight ? rate + ret.length - s->weight : 1;
	if (ret.first < 1 || ret.first > ret.length)
		ret.first = 1;
	return ret;
}

static void add_to_replay(struct replay *r, const struct sample *s,
			  uint32_t stack)
{
	profile_add(&r->profile, stack, s);
	r->sites[stack].allocations++;
	r->sites[stack].live_blocks++;
	r->sites[stack].live_bytes += s->size;
	r->live_bytes += s->size;
	r->live_blocks++;
	r->allocations++;
	r->n_events++;
}

static void add_samples(struct profiled *p, const struct profiled_part *part)
{
	bool live = part->profile->kind == HEAP_PROFILE_LIVE;

	for (size_t i = 0; i < part->profile->n; i++) {
		const struct heap_sample *s = &part->profile->samples[i];
		struct sample sample = profiled_sample(part, i);

		add_to_replay(live ? &p->live : &p->growth, &sample,
			      part->stacks[i]);
		if (!live)
			continue;
		p->newest_ns = max_u64(p->newest_ns, s->born_ns);
		profile_add(&p->classes,
			    (uint32_t)usage_find(&p->exact,
						 part->profile->allocator,
						 s->allocated),
			    &sample);
	}
}

static void start_replay(struct replay *r, const struct trace *t,
			 uint64_t rate)
{
	const struct replay_options options = {
		.rate = rate, .unit = UNIT_USABLE, .mark = MARK_EXACT_PEAK,
		.n_stacks = trace_info(t)->n_stacks, .ns_per_tick = 1,
	};

	replay_init(r, &options);
	r->sampled = true;
	r->n_sites = (size_t)options.n_stacks + 1;
	r->sites = mem_zalloc(r->n_sites * sizeof(*r->sites));
}

static struct replay_input input_of(struct profiled *p, struct replay *r,
				    struct sites *sites, size_t depth)
{
	profile_finish(&r->profile);
	sites_init(sites, r, &p->frames, depth);
	return (struct replay_input){
		.trace = p->trace, .replay = r, .frames = &p->frames,
		.sites = sites, .metric = METRIC_END, .live_only = true,
	};
}

/* ---- what the walk found ---- */

static void count_as(struct profiled *p, uint32_t allocator, uint64_t size,
		     uint64_t allocated)
{
	usage_resize(&p->exact, allocator, size, allocated);
	if (size > allocated)
		p->cost += size - allocated;
}

static void count_exact(struct profiled *p, struct heap *h)
{
	bool *wanted = mem_zalloc(h->n_arenas * sizeof(*wanted));
	bool *sampled = mem_zalloc(h->n_allocators * sizeof(*sampled));
	struct block b;

	for (size_t i = 0; i < p->n_parts; i++)
		if (p->parts[i].profile->kind == HEAP_PROFILE_LIVE)
			sampled[p->parts[i].profile->allocator] = true;
	for (size_t i = 0; i < h->n_arenas; i++)
		wanted[i] = sampled[h->arenas[i].allocator];
	usage_init_some(&p->exact, h, wanted);
	for (size_t i = 0; i < p->n_parts; i++) {
		const struct heap_profile *f = p->parts[i].profile;

		for (size_t k = 0; k < f->n; k++)
			if (f->kind == HEAP_PROFILE_LIVE &&
			    heap_find(h, f->samples[k].addr, &b) &&
			    b.state == BLOCK_USED && wanted[b.arena])
				count_as(p, h->arenas[b.arena].allocator,
					 b.size, f->samples[k].allocated);
	}
	free(wanted);
	free(sampled);
}

static void find_parts(struct profiled *p, struct space *sp,
		       struct symbols *symbols, uint64_t rate)
{
	const struct heap *h = p->heap;

	p->allocators = mem_zalloc(sp->n_modules * sizeof(*p->allocators));
	p->n_parts = h->n_profiles;
	p->parts = mem_zalloc(p->n_parts * sizeof(*p->parts));
	for (size_t i = 0; i < p->n_parts; i++) {
		struct profiled_part *part = &p->parts[i];

		part->profile = &h->profiles[i];
		if (part->profile->module && !part->profile->module->is_exe)
			p->allocators[part->profile->module -
				      sp->modules] = true;
		part->stacks = mem_zalloc(part->profile->n *
					  sizeof(*part->stacks));
		part->rate = profile_rate_find(sp, symbols, h, part->profile);
		for (size_t k = 0; k < part->profile->n; k++)
			part->bytes += part->profile->samples[k].allocated;
		if (part->profile->kind != HEAP_PROFILE_LIVE)
			continue;
		if (rate)
			part->rate = (struct profile_rate){ rate, "option" };
		p->rate = max_u64(p->rate, part->rate.bytes);
	}
}

static void free_parts(struct profiled *p)
{
	for (size_t i = 0; i < p->n_parts; i++)
		free(p->parts[i].stacks);
	free(p->parts);
	free(p->allocators);
}

bool profiled_init(struct profiled *p, struct space *sp, struct heap *h,
		   struct symbols *symbols,
		   const struct profiled_options *options, struct err *err)
{
	*p = (struct profiled){ .heap = h };
	find_parts(p, sp, symbols, options->rate);
	if (!make_trace(p, sp, options->debug, err)) {
		free_parts(p);
		return false;
	}
	frames_init(&p->frames, p->trace, options->target);
	p->frames.allocators = p->allocators;
	start_replay(&p->live, p->trace, p->rate ? p->rate : SAMPLER_ALL);
	start_replay(&p->growth, p->trace, SAMPLER_ALL);
	profile_init(&p->classes, ESTIMATOR_HT);
	count_exact(p, h);
	for (size_t i = 0; i < p->n_parts; i++)
		add_samples(p, &p->parts[i]);
	p->live_input = input_of(p, &p->live, &p->live_sites, options->depth);
	p->growth_input = input_of(p, &p->growth, &p->growth_sites,
				   options->depth);
	return true;
}

void profiled_fini(struct profiled *p)
{
	sites_fini(&p->live_sites);
	sites_fini(&p->growth_sites);
	replay_fini(&p->live);
	replay_fini(&p->growth);
	profile_fini(&p->classes);
	usage_fini(&p->exact);
	frames_fini(&p->frames);
	trace_close(p->trace);
	free_parts(p);
	*p = (struct profiled){ .heap = NULL };
}
