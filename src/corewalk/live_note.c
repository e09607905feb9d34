/* SPDX-License-Identifier: MIT */
/*
 * Notes of a process, as Linux would write them if it dumped core now
 * (Linux, fs/binfmt_elf.c, fill_note_info, and include/linux/elfcore.h).
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "corewalk/live.h"

enum {
	STATUS_REGS = 112,	/* offset of pr_reg in struct elf_prstatus */
	PSARGS = 80,
	FNAME = 16,
};

static void add_u32(struct str *s, uint32_t value)
{
	str_add(s, &value, sizeof(value));
}

static void add_u64(struct str *s, uint64_t value)
{
	str_add(s, &value, sizeof(value));
}

static void add_zeros(struct str *s, size_t n)
{
	static const char zeros[64];

	for (; n > sizeof(zeros); n -= sizeof(zeros))
		str_add(s, zeros, sizeof(zeros));
	str_add(s, zeros, n);
}

static void pad(struct str *s)
{
	add_zeros(s, -s->len & 3);
}

static void add_note(struct str *to, const char *owner, uint32_t type,
		     const void *desc, size_t n)
{
	add_u32(to, (uint32_t)strlen(owner) + 1);
	add_u32(to, (uint32_t)n);
	add_u32(to, type);
	str_add(to, owner, strlen(owner) + 1);
	pad(to);
	str_add(to, desc, n);
	pad(to);
}

/* ---- threads ---- */

static void note_status(struct live *lv, const struct live_thread *t,
			const struct live_stat *stat)
{
	struct str d;

	str_init(&d);
	add_zeros(&d, 32);
	add_u32(&d, (uint32_t)t->tid);
	add_u32(&d, (uint32_t)stat->ppid);
	add_u32(&d, (uint32_t)stat->pgrp);
	add_u32(&d, (uint32_t)stat->sid);
	add_zeros(&d, STATUS_REGS - d.len);
	str_add(&d, t->regs, t->n_regs);
	add_u32(&d, t->n_fpregs != 0);
	add_u32(&d, 0);
	add_note(&lv->notes, "CORE", NT_PRSTATUS, d.text, d.len);
	str_fini(&d);
}

/* What follows the notes of the process, for the first thread. */
static void note_more_regs(struct live *lv, const struct live_thread *t)
{
	if (t->n_fpregs)
		add_note(&lv->notes, "CORE", NT_FPREGSET, t->fpregs,
			 t->n_fpregs);
	if (t->n_xstate)
		add_note(&lv->notes, "LINUX", NT_X86_XSTATE, t->xstate,
			 t->n_xstate);
	if (t->has_tls)
		add_note(&lv->notes, "LINUX", NT_ARM_TLS, &t->tls,
			 sizeof(t->tls));
}

/* ---- the process ---- */

/* Arguments are separated by zeros in /proc, by blanks in a core. */
static void add_args(struct live *lv, struct str *d)
{
	struct str args;
	size_t i, n = 0;

	str_init(&args);
	if (live_read(lv->proc_fd, "cmdline", &args))
		n = min_u64(args.len, PSARGS - 1);
	for (i = 0; i < n; i++)
		str_addc(d, args.text[i] ? args.text[i] : ' ');
	add_zeros(d, PSARGS - n);
	str_fini(&args);
}

static void add_name(struct live *lv, struct str *d)
{
	struct str name;
	size_t n = 0;

	str_init(&name);
	if (live_read(lv->proc_fd, "comm", &name))
		n = min_u64(strcspn(name.text, "\n"), FNAME - 1);
	str_add(d, name.text, n);
	add_zeros(d, FNAME - n);
	str_fini(&name);
}

static bool note_psinfo(struct live *lv, const struct live_stat *stat)
{
	static const char states[] = "RSDTZW";
	const char *at = strchr(states, stat->state);
	struct live_status status;
	struct str d;

	if (!live_read_status(lv->proc_fd, &status))
		return false;
	str_init(&d);
	str_addc(&d, at ? (char)(at - states) : 0);
	str_addc(&d, stat->state);
	str_addc(&d, 0);
	str_addc(&d, (char)stat->nice);
	add_u32(&d, 0);
	add_u64(&d, stat->flags);
	add_u32(&d, status.uid);
	add_u32(&d, status.gid);
	add_u32(&d, (uint32_t)lv->pid);
	add_u32(&d, (uint32_t)stat->ppid);
	add_u32(&d, (uint32_t)stat->pgrp);
	add_u32(&d, (uint32_t)stat->sid);
	add_name(lv, &d);
	add_args(lv, &d);
	add_note(&lv->notes, "CORE", NT_PRPSINFO, d.text, d.len);
	str_fini(&d);
	return true;
}

static bool note_auxv(struct live *lv)
{
	struct str auxv;
	bool ok;

	str_init(&auxv);
	ok = live_read(lv->mm_fd, "auxv", &auxv);
	if (ok)
		add_note(&lv->notes, "CORE", NT_AUXV, auxv.text, auxv.len);
	str_fini(&auxv);
	return ok;
}

/* Named shared memory is a file of /dev/zero, as the kernel calls it. */
static const char *file_name(const struct live_map *map)
{
	return map->name[0] == '[' ? "/dev/zero (deleted)" : map->name;
}

static void note_files(struct live *lv)
{
	uint64_t i, count = 0;
	struct str d;

	for (i = 0; i < lv->n_maps; i++)
		count += lv->maps[i].has_file;
	str_init(&d);
	add_u64(&d, count);
	add_u64(&d, lv->sp->page);
	for (i = 0; i < lv->n_maps; i++) {
		const struct live_map *map = &lv->maps[i];

		if (!map->has_file)
			continue;
		add_u64(&d, map->start);
		add_u64(&d, map->end);
		add_u64(&d, map->off / lv->sp->page);
	}
	for (i = 0; i < lv->n_maps; i++)
		if (lv->maps[i].has_file)
			str_add(&d, file_name(&lv->maps[i]),
				strlen(file_name(&lv->maps[i])) + 1);
	add_note(&lv->notes, "CORE", NT_FILE, d.text, d.len);
	str_fini(&d);
}

/* The main thread, which has the number of the process, comes first. */
static void main_first(struct live *lv)
{
	size_t i;

	for (i = 0; i < lv->n_threads; i++) {
		struct live_thread t = lv->threads[i];

		if (t.tid != lv->pid)
			continue;
		memmove(lv->threads + 1, lv->threads, i * sizeof(t));
		lv->threads[0] = t;
		return;
	}
}

bool live_notes(struct live *lv, struct err *err)
{
	struct live_stat stat;
	size_t i;

	str_clear(&lv->notes);
	main_first(lv);
	if (!live_read_stat(lv->proc_fd, &stat))
		return live_refused(lv, "cannot read stat", errno, err);
	if (lv->n_threads)
		note_status(lv, &lv->threads[0], &stat);
	if (!note_psinfo(lv, &stat))
		return live_refused(lv, "cannot read status", errno, err);
	if (!note_auxv(lv))
		return live_refused(lv, "cannot read auxv", errno, err);
	note_files(lv);
	for (i = 0; i < lv->n_threads; i++) {
		if (i)
			note_status(lv, &lv->threads[i], &stat);
		note_more_regs(lv, &lv->threads[i]);
	}
	return true;
}
