/* SPDX-License-Identifier: MIT */
/*
 * The tables that speak of the process: itself, its mappings and modules.
 */
#include "report/build.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "corewalk/module.h"
#include "corewalk/pages.h"

enum {
	T_KIND, T_PATH, T_PROGRAM, T_PID, T_SIGNAL, T_THREADS, T_PRIVATE,
	T_STORED, T_FAULT, T_COMMAND, T_MACHINE, T_PAGE, T_WRITER, T_MAPPINGS,
	T_MISSING, T_MODULES, T_SIZE, T_WANTED, T_STOPPED, T_TORN, T_RSS,
	T_RESIDENT, T_SWAPPED, T_REDACTED,
	T_COLUMNS
};

static const struct column target_columns[T_COLUMNS] = {
	[T_KIND] = COLUMN("kind", "kind", TEXT),
	[T_PATH] = COLUMN("path", "path", TEXT,
		.flags = COLUMN_RAW | COLUMN_PATH),
	[T_PROGRAM] = COLUMN("program", "program", TEXT,
		.flags = COLUMN_RAW | COLUMN_PATH),
	[T_PID] = COLUMN("pid", "pid", COUNT),
	[T_SIGNAL] = COLUMN("signal", "signal", TEXT),
	[T_THREADS] = COLUMN("threads", "threads", COUNT),
	[T_PRIVATE] = COLUMN("private_bytes", "private", BYTES),
	[T_STORED] = COLUMN("stored_bytes", "in file", BYTES),
	[T_FAULT] = COLUMN("fault_address", "fault at", ADDR),
	[T_COMMAND] = COLUMN("command", "command", TEXT,
		.flags = COLUMN_RAW | COLUMN_CONTENT),
	[T_MACHINE] = COLUMN("machine", "machine", TEXT),
	[T_PAGE] = COLUMN("page_bytes", "page", BYTES),
	[T_WRITER] = COLUMN("writer", "written by", TEXT),
	[T_MAPPINGS] = COLUMN("mappings", "mappings", COUNT),
	[T_MISSING] = COLUMN("missing_mappings", "missing", COUNT),
	[T_MODULES] = COLUMN("modules", "modules", COUNT),
	[T_SIZE] = COLUMN("file_bytes", "file size", BYTES),
	[T_WANTED] = COLUMN("whole_file_bytes", "whole file", BYTES),
	[T_STOPPED] = COLUMN("stopped_s", "stopped for", SECONDS),
	[T_TORN] = COLUMN("torn", "read while it ran", FLAG),
	[T_RSS] = COLUMN("rss_bytes", "resident in all", BYTES),
	[T_RESIDENT] = COLUMN("resident_bytes", "resident", BYTES),
	[T_SWAPPED] = COLUMN("swapped_bytes", "in swap", BYTES),
	[T_REDACTED] = DATA_COLUMN("redacted", FLAG),
};

const char *signal_name(int signal, char ret[16])
{
	const char *name = sigabbrev_np(signal);

	if (name)
		snprintf(ret, 16, "SIG%s", name);
	else
		snprintf(ret, 16, "signal %d", signal);
	return ret;
}

static const char *machine_name(enum machine machine)
{
	switch (machine) {
	case MACHINE_X86_64:
		return "x86_64";
	case MACHINE_I386:
		return "i386";
	case MACHINE_AARCH64:
		return "aarch64";
	}
	return "?";
}

bool is_process(const struct space *sp)
{
	return !strcmp(sp->kind, "process");
}

void set_pages(struct table *t, size_t resident, size_t swapped,
	       const struct report_input *in, const struct residency *pages)
{
	if (!space_pages_known(in->sp))
		return;
	table_set(t, resident, pages->resident);
	table_set(t, swapped, pages->swapped);
}

void show_pages(struct table *t, size_t stored, size_t resident,
		size_t swapped, const struct report_input *in)
{
	bool known = space_pages_known(in->sp);

	table_hide(t, known ? stored : resident);
	if (!known || !in->where->total.pages.swapped)
		table_hide(t, swapped);
}

size_t count_missing(const struct space *sp)
{
	return sp->missing_segs + sp->undumped_segs;
}

uint64_t find_rss(const struct where *w)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->n_maps; i++)
		sum += w->maps[i].pages.resident;
	return sum;
}

void build_target(struct report *r, const struct report_input *in)
{
	struct space *sp = in->sp;
	struct table *t = report_add(r, SECTION_TARGET, "target", "TARGET",
				     target_columns, T_COLUMNS);
	const struct where_amount *all = &in->where->total;
	char name[16];

	t->form = TABLE_OBJECT;
	table_row(t);
	table_set_text(t, T_KIND, sp->kind);
	table_set_text(t, T_PATH, sp->path ? sp->path : "?");
	table_set_text(t, T_PROGRAM, sp->program ? sp->program : "?");
	if (sp->pid)
		table_set(t, T_PID, sp->pid);
	if (sp->signal)
		table_set_text(t, T_SIGNAL, signal_name(sp->signal, name));
	table_set(t, T_THREADS, sp->n_threads);
	table_set(t, T_PRIVATE, all->bytes);
	table_set(t, T_STORED, all->stored);
	if (sp->has_fault_addr)
		table_set(t, T_FAULT, sp->fault_addr);
	if (sp->command)
		table_set_text(t, T_COMMAND, sp->command);
	table_set_text(t, T_MACHINE, machine_name(sp->machine));
	table_set(t, T_PAGE, sp->page);
	if (sp->writer)
		table_set_text(t, T_WRITER, sp->writer);
	table_set(t, T_MAPPINGS, sp->n_segs);
	table_set(t, T_MISSING, count_missing(sp));
	table_set(t, T_MODULES, sp->n_modules);
	table_set(t, T_REDACTED, r->options->redact);
	if (space_pages_known(sp)) {
		table_set(t, T_RSS, find_rss(in->where));
		table_set(t, T_RESIDENT, all->pages.resident);
		table_set(t, T_SWAPPED, all->pages.swapped);
	}
	if (is_process(sp)) {
		table_set_real(t, T_STOPPED, sp->stopped_s);
		table_set(t, T_TORN, sp->torn);
	} else {
		table_set(t, T_SIZE, sp->core_size);
		table_set(t, T_WANTED, sp->core_wanted);
	}
}

enum {
	M_ADDRESS, M_END, M_BYTES, M_STORED, M_RESIDENT, M_SWAPPED, M_FLAGS,
	M_MAPPINGS, M_PRIVATE, M_WHAT, M_COLUMNS
};

static const struct column map_columns[M_COLUMNS] = {
	[M_ADDRESS] = COLUMN("address", "address", ADDR,
		.flags = COLUMN_LEFT),
	[M_END] = COLUMN("end", "end", ADDR, .flags = COLUMN_NO_TEXT),
	[M_BYTES] = COLUMN("bytes", "size", BYTES, .flags = COLUMN_SUM),
	[M_STORED] = COLUMN("stored_bytes", "in file", BYTES,
		.flags = COLUMN_SUM),
	[M_RESIDENT] = COLUMN("resident_bytes", "resident", BYTES,
		.flags = COLUMN_SUM),
	[M_SWAPPED] = COLUMN("swapped_bytes", "in swap", BYTES,
		.flags = COLUMN_SUM),
	[M_FLAGS] = COLUMN("flags", "", TEXT),
	[M_MAPPINGS] = DATA_COLUMN("mappings", COUNT),
	[M_PRIVATE] = DATA_COLUMN("private", FLAG),
	[M_WHAT] = COLUMN("what", "what it is", TEXT, .flags = COLUMN_PATH),
};

void build_mappings(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_MAPPINGS, "mappings",
				     "MAPPINGS", map_columns, M_COLUMNS);

	for (size_t i = 0; i < in->where->n_maps; i++) {
		const struct where_map *m = &in->where->maps[i];

		table_row(t);
		table_set(t, M_ADDRESS, m->start);
		table_set(t, M_END, m->end);
		table_set(t, M_BYTES, m->end - m->start);
		table_set(t, M_STORED, m->stored);
		set_pages(t, M_RESIDENT, M_SWAPPED, in, &m->pages);
		table_printf(t, M_FLAGS, "%c%c%c%c",
			     m->flags & SEG_R ? 'r' : '-',
			     m->flags & SEG_W ? 'w' : '-',
			     m->flags & SEG_X ? 'x' : '-',
			     m->flags & SEG_SHARED ? 's' : 'p');
		table_set(t, M_MAPPINGS, m->mappings);
		table_set(t, M_PRIVATE, m->is_private);
		table_set_text(t, M_WHAT, m->what);
	}
	/* What takes memory first, mere reservations last; stable. */
	table_sort(t, M_BYTES, false);
	table_sort(t, M_PRIVATE, false);
	table_sort(t, M_STORED, false);
	show_pages(t, M_STORED, M_RESIDENT, M_SWAPPED, in);
}

enum {
	O_LABEL, O_NAME, O_ADDRESS, O_END, O_BUILD_ID, O_EXE, O_FILE,
	O_COLUMNS
};

static const struct column module_columns[O_COLUMNS] = {
	[O_LABEL] = COLUMN("label", "", TEXT,
		.flags = COLUMN_RAW | COLUMN_NO_DATA, .width = 20),
	[O_NAME] = COLUMN("name", "", TEXT,
		.flags = COLUMN_NO_TEXT | COLUMN_PATH),
	[O_ADDRESS] = COLUMN("address", "address", ADDR,
		.flags = COLUMN_NO_TEXT),
	[O_END] = COLUMN("end", "end", ADDR, .flags = COLUMN_NO_TEXT),
	[O_BUILD_ID] = COLUMN("build_id", "build id", TEXT),
	[O_EXE] = COLUMN("program", "program", FLAG, .flags = COLUMN_NO_TEXT),
	[O_FILE] = COLUMN("file", "file", TEXT),
};

static void set_build_id(struct table *t, const struct module *m)
{
	char hex[2 * sizeof(m->build_id) + 1] = "";

	for (size_t i = 0; i < m->build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", m->build_id[i]);
	if (m->build_id_len)
		table_set_text(t, O_BUILD_ID, hex);
}

void build_modules(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_MODULES, "modules", "MODULES",
				     module_columns, O_COLUMNS);

	for (size_t i = 0; i < in->sp->n_modules; i++) {
		const struct module *m = &in->sp->modules[i];

		table_row(t);
		table_set_text(t, O_LABEL, module_name(in->sp, m));
		table_set_text(t, O_NAME, in->sp->files[m->file].name);
		table_set(t, O_ADDRESS, m->start);
		table_set(t, O_END, m->end);
		set_build_id(t, m);
		table_set(t, O_EXE, m->is_exe);
		table_set_text(t, O_FILE,
			       m->path ? "used" : space_why_text(m->why));
	}
}
