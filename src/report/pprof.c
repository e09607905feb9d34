/* SPDX-License-Identifier: MIT */
/*
 * The message is perftools.profiles.Profile of google/pprof, whose field
 * numbers stand below.  Each part is made in a buffer of its own, as its
 * length comes before it.
 */
#include "report/pprof.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "report/replay_export.h"

enum {
	PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5, PROFILE_STRING = 6,
	PROFILE_TIME = 9, PROFILE_DURATION = 10, PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12, PROFILE_COMMENT = 13, PROFILE_DEFAULT = 14,
	VALUE_TYPE = 1, VALUE_UNIT = 2,
	SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2,
	MAPPING_ID = 1, MAPPING_START = 2, MAPPING_LIMIT = 3,
	MAPPING_OFFSET = 4, MAPPING_FILE = 5, MAPPING_BUILD = 6,
	MAPPING_FUNCTIONS = 7,
	LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LINE_FUNCTION = 1, LINE_LINE = 2,
	FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILE = 4,
};

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, N_VALUES = 5, CHUNK = 1 << 16 };
/* Of the values, those of what is live. */
enum { LIVE_FIRST = 2, LIVE_END = 4 };

struct writer {
	z_stream z;
	struct out *out;
	struct str part;	/* one field of the profile */
	struct str inner;	/* a message in it */
	struct str packed;
	/* Strings are written at the end, in order of their numbers. */
	struct str *strings;	/* owned */
	size_t n_strings, cap_strings;
	bool failed;
};

static void put_varint(struct str *s, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		str_addc(s, (char)(v | 0x80));
	str_addc(s, (char)v);
}

/* A field that is 0 is left out: that is its default. */
static void put_number(struct str *s, unsigned field, uint64_t v)
{
	if (!v)
		return;
	put_varint(s, field << 3 | WIRE_VARINT);
	put_varint(s, v);
}

static void put_bytes(struct str *s, unsigned field, const void *bytes,
		      size_t n)
{
	put_varint(s, field << 3 | WIRE_BYTES);
	put_varint(s, n);
	str_add(s, bytes, n);
}

static void deflate_some(struct writer *w, const void *bytes, size_t n,
			 int flush)
{
	int status;

	w->z.next_in = (Bytef *)bytes;
	w->z.avail_in = (uInt)n;
	do {
		w->z.next_out = (Bytef *)out_room(w->out, CHUNK);
		w->z.avail_out = CHUNK;
		status = deflate(&w->z, flush);
		out_done(w->out, CHUNK - w->z.avail_out);
	} while (status == Z_OK && (!w->z.avail_out || flush == Z_FINISH));
	w->failed |= status == Z_STREAM_ERROR;
}

/* The message in inner is a field of the profile. */
static void end_message(struct writer *w, unsigned field)
{
	str_clear(&w->part);
	put_bytes(&w->part, field, w->inner.text, w->inner.len);
	deflate_some(w, w->part.text, w->part.len, Z_NO_FLUSH);
	str_clear(&w->inner);
}

static void profile_number(struct writer *w, unsigned field, uint64_t v)
{
	str_clear(&w->part);
	put_number(&w->part, field, v);
	deflate_some(w, w->part.text, w->part.len, Z_NO_FLUSH);
}

/* Each call makes a new one: those that repeat are few. */
static uint64_t string_number(struct writer *w, const char *text, size_t n)
{
	struct str *s = &MEM_PUSH(w->strings, w->n_strings, w->cap_strings);

	str_init(s);
	str_add(s, text, n);
	return w->n_strings - 1;
}

static uint64_t text_number(struct writer *w, const char *text)
{
	return text[0] ? string_number(w, text, strlen(text)) : 0;
}

static void put_value_type(struct writer *w, unsigned field, const char *type,
			   const char *unit)
{
	put_number(&w->inner, VALUE_TYPE, text_number(w, type));
	put_number(&w->inner, VALUE_UNIT, text_number(w, unit));
	end_message(w, field);
}

static size_t first_value(const struct replay_input *in)
{
	return in->live_only ? LIVE_FIRST : 0;
}

static size_t end_value(const struct replay_input *in)
{
	return in->live_only ? LIVE_END : N_VALUES;
}

/* The order is Go's, so that tools which know that find the values. */
static const struct {
	const char *name, *unit;
} value_types[N_VALUES] = {
	{ "alloc_objects", "count" }, { "alloc_space", "bytes" },
	{ "inuse_objects", "count" }, { "inuse_space", "bytes" },
	{ "peak_space", "bytes" },
};

/* What a viewer shows at first: what the report is about. */
static const char *default_type(const struct replay_input *in)
{
	if (in->live_only)
		return "inuse_space";
	switch (replay_view(in->metric)) {
	case VIEW_MARKED:
		return "peak_space";
	case VIEW_LIVE:
		return "inuse_space";
	default:
		return "alloc_space";
	}
}

static void put_types(struct writer *w, const struct replay_input *in)
{
	for (size_t i = first_value(in); i < end_value(in); i++)
		put_value_type(w, PROFILE_SAMPLE_TYPE, value_types[i].name,
			       value_types[i].unit);
}

/* False if the stack has nothing to say. */
static bool stack_values(const struct replay *r, uint32_t stack, bool exact,
			 uint64_t ret[N_VALUES])
{
	const struct replay_site *s = &r->sites[stack];
	const struct profile_row *row = profile_find(&r->profile, stack);
	struct profile_figures f[PROFILE_VIEWS];

	if (exact) {
		ret[0] = s->allocations;
		ret[1] = s->allocated_bytes;
		ret[2] = s->live_blocks;
		ret[3] = s->live_bytes;
		ret[4] = s->marked_bytes;
		return s->allocations;
	}
	if (!row)
		return false;
	for (unsigned v = 0; v < PROFILE_VIEWS; v++)
		profile_get(row, v, &f[v]);
	ret[0] = num_whole(f[VIEW_ALLOCATED].blocks.value);
	ret[1] = num_whole(f[VIEW_ALLOCATED].bytes.value);
	ret[2] = num_whole(f[VIEW_LIVE].blocks.value);
	ret[3] = num_whole(f[VIEW_LIVE].bytes.value);
	ret[4] = num_whole(f[VIEW_MARKED].bytes.value);
	return true;
}

/* Packed: a length, then varints. */
static void put_packed(struct writer *w, unsigned field)
{
	put_bytes(&w->inner, field, w->packed.text, w->packed.len);
	str_clear(&w->packed);
}

static uint32_t first_of(const struct frames *f, uint32_t frame)
{
	while (!f->frames[frame].first)
		frame--;
	return frame;
}

static void put_samples(struct writer *w, const struct replay_input *in,
			bool exact)
{
	uint32_t frames[TRACE_DEPTH_MAX];
	uint64_t values[N_VALUES];

	for (uint32_t i = 0; i < in->replay->n_sites; i++) {
		size_t n;

		if (!stack_values(in->replay, i, exact, values))
			continue;
		n = sites_frames(in->frames, i, frames, TRACE_DEPTH_MAX);
		/* A location has all functions of its address. */
		for (size_t k = 0; k < n; k++)
			if (!k || in->frames->frames[frames[k]].first)
				put_varint(&w->packed,
					   first_of(in->frames, frames[k])
					   + 1);
		put_packed(w, SAMPLE_LOCATION);
		for (size_t k = first_value(in); k < end_value(in); k++)
			put_varint(&w->packed, values[k]);
		put_packed(w, SAMPLE_VALUE);
		end_message(w, PROFILE_SAMPLE);
	}
}

static uint64_t id_number(struct writer *w, const struct trace_text *id)
{
	struct str hex;
	uint64_t ret;

	if (!id->len)
		return 0;
	str_init(&hex);
	for (size_t i = 0; i < id->len; i++)
		str_printf(&hex, "%02x", (unsigned char)id->text[i]);
	ret = string_number(w, hex.text, hex.len);
	str_fini(&hex);
	return ret;
}

/* Number i + 1 is module i, whose first segment is where it lies. */
static void put_mappings(struct writer *w, const struct replay_input *in)
{
	const struct trace_info *info = trace_info(in->trace);

	for (size_t i = 0; i < info->n_modules; i++) {
		const struct trace_module *m = &info->modules[i];
		uint64_t start = UINT64_MAX, limit = 0;

		for (size_t k = 0; k < m->n_segments; k++) {
			vaddr at = m->bias + m->segments[k].vaddr;

			start = min_u64(start, at);
			limit = max_u64(limit, at + m->segments[k].memsz);
		}
		put_number(&w->inner, MAPPING_ID, i + 1);
		put_number(&w->inner, MAPPING_START, limit ? start : 0);
		put_number(&w->inner, MAPPING_LIMIT, limit);
		put_number(&w->inner, MAPPING_FILE,
			   text_number(w, replay_path(in, m->path.text)));
		put_number(&w->inner, MAPPING_BUILD,
			   id_number(w, &m->build_id));
		put_number(&w->inner, MAPPING_FUNCTIONS, 1);
		end_message(w, PROFILE_MAPPING);
	}
}

static void put_locations(struct writer *w, const struct frames *f)
{
	for (size_t i = 0; i < f->n_frames; i++) {
		const struct named_frame *frame = &f->frames[i];

		if (!frame->first)
			continue;
		put_number(&w->inner, LOCATION_ID, i + 1);
		put_number(&w->inner, LOCATION_MAPPING, frame->module);
		put_number(&w->inner, LOCATION_ADDRESS,
			   frame->addr ? frame->addr - 1 : 0);
		for (bool more = true; more; frame++) {
			more = frame->inlined;
			put_number(&w->packed, LINE_FUNCTION,
				   frame->function + 1);
			put_number(&w->packed, LINE_LINE, frame->line);
			put_packed(w, LOCATION_LINE);
		}
		end_message(w, PROFILE_LOCATION);
	}
}

static void put_functions(struct writer *w, const struct replay_input *in)
{
	const struct frames *f = in->frames;

	for (size_t i = 0; i < f->n_functions; i++) {
		const struct frame_function *function = &f->functions[i];
		uint64_t name = text_number(w, function->name);

		put_number(&w->inner, FUNCTION_ID, i + 1);
		put_number(&w->inner, FUNCTION_NAME, name);
		put_number(&w->inner, FUNCTION_SYSTEM_NAME, name);
		put_number(&w->inner, FUNCTION_FILE,
			   text_number(w, replay_path(in, function->file)));
		end_message(w, PROFILE_FUNCTION);
	}
}

static void put_strings(struct writer *w)
{
	for (size_t i = 0; i < w->n_strings; i++) {
		str_clear(&w->part);
		put_bytes(&w->part, PROFILE_STRING, w->strings[i].text,
			  w->strings[i].len);
		deflate_some(w, w->part.text, w->part.len, Z_NO_FLUSH);
	}
}

static void put_profile(struct writer *w, const struct replay_input *in,
			bool exact, const char *command_line)
{
	const struct trace_info *info = trace_info(in->trace);

	string_number(w, "", 0);
	put_types(w, in);
	put_samples(w, in, exact);
	put_mappings(w, in);
	put_locations(w, in->frames);
	put_functions(w, in);
	profile_number(w, PROFILE_TIME, info->start_ns);
	profile_number(w, PROFILE_DURATION,
		       trace_ns(in->trace, in->replay->last_tick));
	put_value_type(w, PROFILE_PERIOD_TYPE, "space", "bytes");
	profile_number(w, PROFILE_PERIOD,
		       exact ? 1 : in->replay->options.rate);
	profile_number(w, PROFILE_COMMENT, text_number(w, command_line));
	profile_number(w, PROFILE_DEFAULT, text_number(w, default_type(in)));
	put_strings(w);
	deflate_some(w, "", 0, Z_FINISH);
}

bool pprof_write(const struct replay_input *in, bool exact,
		 const char *command_line, struct out *o, struct err *err)
{
	struct writer w = { .out = o };
	/* No time and no name, but whose it is. */
	gz_header head = { .os = 3, .comment = (Bytef *)PPROF_COMMENT };

	/* 16: a gzip header */
	if (deflateInit2(&w.z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(err, ERR_SYSTEM, "zlib: no memory");
	deflateSetHeader(&w.z, &head);
	str_init(&w.part);
	str_init(&w.inner);
	str_init(&w.packed);
	put_profile(&w, in, exact, command_line);
	deflateEnd(&w.z);
	str_fini(&w.part);
	str_fini(&w.inner);
	str_fini(&w.packed);
	for (size_t i = 0; i < w.n_strings; i++)
		str_fini(&w.strings[i]);
	free(w.strings);
	if (w.failed)
		return err_set(err, ERR_SYSTEM, "zlib: cannot compress");
	return true;
}

/* ';' and blanks separate: they must not stand in a name. */
static void folded_name(const char *name, struct out *o)
{
	for (; *name; name++)
		out_addc(o, *name == ';' ? ':' : *name == ' ' ? '_' : *name);
}

void folded_write(const struct replay_input *in, bool exact, struct out *o)
{
	uint32_t frames[TRACE_DEPTH_MAX];

	for (uint32_t i = 0; i < in->replay->n_sites; i++) {
		uint64_t value = replay_stack_bytes(in, i, in->metric,
						    exact);
		size_t n;

		if (!value)
			continue;
		n = sites_frames(in->frames, i, frames, TRACE_DEPTH_MAX);
		if (!n)
			out_adds(o, "unknown");
		for (size_t k = n; k; k--) {
			folded_name(frames_function(in->frames,
						    frames[k - 1])->name, o);
			if (k > 1)
				out_addc(o, ';');
		}
		out_printf(o, " %llu\n", (unsigned long long)value);
	}
}
