/* SPDX-License-Identifier: MIT */
/*
 * Addresses of a trace as functions.
 *
 * Names come from the trace itself if it was imported with some, else from
 * debug information, with lines and functions that were inlined, or from the
 * symbol tables of the objects that were mapped: below a sysroot or where they
 * were, with the same build id.  Else a place in an object, or the address.
 * Each address is looked up once, each object read once.
 */
#ifndef REPORT_FRAMES_H
#define REPORT_FRAMES_H

#include "base/map.h"
#include "base/types.h"
#include "corewalk/lines.h"
#include "replay/trace_read.h"

/* A function at an address; those that one address is in follow each other. */
struct named_frame {
	vaddr addr;		/* a return address */
	uint32_t function;	/* index; one for a name in an object */
	uint32_t module;	/* index in trace_info.modules + 1; 0 none */
	uint64_t line;		/* 0 unknown */
	bool first;		/* the innermost of its address */
	bool inlined;		/* into the next frame */
};

struct frame_function {
	const char *name;	/* owned; escaped for a terminal */
	const char *object;	/* owned; file or object, without folders */
	const char *file;	/* owned; its source, or "" */
	bool allocator;		/* malloc and what stands before it */
	bool named;		/* not just a place */
};

struct frames {
	struct trace *trace;	/* borrowed until frames_fini */
	struct named_frame *frames;	/* owned; in order of appearance */
	size_t n_frames, cap_frames;
	struct frame_function *functions;	/* owned; likewise */
	size_t n_functions, cap_functions;
	struct map by_addr;	/* index + 1 of the first, by address + 1 */
	uint32_t of_last;	/* the same of the last address there is */
	uint32_t *by_name;	/* owned; hash: index + 1 */
	size_t n_by_name;
	struct frame_object *objects;	/* owned; by module */
	const struct trace_name **given;	/* owned; by address */
	const struct target_options *options;	/* borrowed */
	struct debug *debug;	/* owned */
	struct lines *lines;	/* owned */
	const bool *allocators;	/* borrowed; by module: all of it is one */
};

/* Of the options, sysroots and folders of debug files count. */
void frames_init(struct frames *f, struct trace *trace,
		 const struct target_options *options);
void frames_fini(struct frames *f);

/* Index of the first frame of the address. */
uint32_t frames_find(struct frames *f, vaddr addr);

static inline const struct frame_function *
frames_function(const struct frames *f, uint32_t frame)
{
	return &f->functions[f->frames[frame].function];
}

#endif
