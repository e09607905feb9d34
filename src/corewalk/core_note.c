/* SPDX-License-Identifier: MIT */
/*
 * The notes of a core: threads, auxiliary vector, signal, mapped files.
 *
 * Linux puts the notes of the process between the first thread's NT_PRSTATUS
 * and its other notes; gdb writes NT_PRPSINFO first.  What fits both: a thread
 * begins at each NT_PRSTATUS, notes of the process may stand anywhere.
 * Offsets are those of struct elf_prstatus and struct elf_prpsinfo (Linux,
 * include/linux/elfcore.h) on each machine.
 */
#include "corewalk/core.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/own.h"

enum {
	NT_PRSTATUS = 1,
	NT_FPREGSET = 2,
	NT_PRPSINFO = 3,
	NT_AUXV = 6,
	NT_SIGINFO = 0x53494749,
	NT_FILE = 0x46494c45,
	NT_386_TLS = 0x200,
	NT_X86_XSTATE = 0x202,
	NT_ARM_TLS = 0x401,

	AT_NULL = 0,
	AT_PHDR = 3,
	AT_PHNUM = 5,
	AT_PAGESZ = 6,
	AT_BASE = 7,
	AT_ENTRY = 9,
	AT_EXECFN = 31,
	AT_SYSINFO_EHDR = 33,

	SI_CODE_KERNEL = 0x80,	/* sent by the kernel, without an address */
	PSARGS_SIZE = 80,
	FXSAVE_XMM = 160,	/* Intel SDM 1, 10.5.1 and 13.4 */
	FXSAVE_XMM_SIZE = 256,
	XSAVE_MORE = 576,
	ARM_VECTORS = 512,	/* struct user_fpsimd_state of Linux */
	USER_DESC_SIZE = 16,	/* struct user_desc in NT_386_TLS */
	I386_GS = 10,
};

static const uint32_t NT_GDB_TDESC = 0xff000000;

/* Where things are in the notes of one machine. */
struct note_layout {
	unsigned status_pid, status_regs;
	unsigned n_regs, sp, pc;
	int tls;		/* index of a register, or -1 */
	unsigned info_pid, info_fname, info_psargs;
	unsigned siginfo_addr;
};

static const struct note_layout layouts[] = {
	[MACHINE_X86_64] = { 32, 112, 27, 19, 16, 21, 24, 40, 56, 16 },
	[MACHINE_I386] = { 24, 72, 17, 15, 12, -1, 12, 28, 44, 12 },
	[MACHINE_AARCH64] = { 32, 112, 34, 31, 32, -1, 24, 40, 56, 16 },
};

static uint64_t word_at(const struct space *sp, const uint8_t *p)
{
	return sp->word == 8 ? load_u64(p) : load_u32(p);
}

static void note_prstatus(struct space *sp, const struct elf_note *note)
{
	const struct note_layout *at = &layouts[sp->machine];
	struct core *core = sp->priv;
	struct thread *t;
	unsigned i;

	if (note->desc_len < at->status_regs + at->n_regs * sp->word)
		return;
	t = &MEM_PUSH(sp->threads, sp->n_threads, core->cap_threads);
	memset(t, 0, sizeof(*t));
	t->tid = load_u32(note->desc + at->status_pid);
	t->n_regs = at->n_regs;
	for (i = 0; i < at->n_regs; i++)
		t->regs[i] = word_at(sp, note->desc + at->status_regs +
				     i * sp->word);
	t->sp = t->regs[at->sp];
	t->pc = t->regs[at->pc];
	if (at->tls >= 0)
		t->tls = t->regs[at->tls];
	if (sp->n_threads == 1 && !core->has_siginfo)
		sp->signal = load_u16(note->desc + 12);
}

/* Text of a fixed field; trailing blanks are Linux's, not the program's. */
static char *field_text(const uint8_t *field, size_t size)
{
	size_t len = strnlen((const char *)field, size);
	char *text;

	while (len && field[len - 1] == ' ')
		len--;
	text = mem_alloc(len + 1);
	memcpy(text, field, len);
	text[len] = '\0';
	return text;
}

static void note_prpsinfo(struct space *sp, const struct elf_note *note)
{
	const struct note_layout *at = &layouts[sp->machine];
	struct core *core = sp->priv;

	if (note->desc_len < at->info_psargs + PSARGS_SIZE || sp->command)
		return;
	sp->pid = load_u32(note->desc + at->info_pid);
	memcpy(core->fname, note->desc + at->info_fname, 16);
	core->fname[16] = '\0';
	sp->command = field_text(note->desc + at->info_psargs, PSARGS_SIZE);
}

/* gdb writes one for each thread; the first is that of the first thread. */
static void note_siginfo(struct space *sp, const struct elf_note *note)
{
	const struct note_layout *at = &layouts[sp->machine];
	struct core *core = sp->priv;
	int32_t code;

	if (note->desc_len < at->siginfo_addr + sp->word || core->has_siginfo)
		return;
	core->has_siginfo = true;
	sp->signal = (int)load_u32(note->desc);
	code = (int32_t)load_u32(note->desc + 8);
	sp->fault_addr = word_at(sp, note->desc + at->siginfo_addr);
	sp->has_fault_addr = (sp->signal == SIGSEGV || sp->signal == SIGBUS) &&
			     code > 0 && code != SI_CODE_KERNEL;
}

static void auxv_entry(struct space *sp, uint64_t key, uint64_t value)
{
	struct core *core = sp->priv;

	switch (key) {
	case AT_PHDR:
		sp->at_phdr = value;
		break;
	case AT_PHNUM:
		sp->at_phnum = value;
		break;
	case AT_PAGESZ:
		if (value >= 4096 && value <= MIB && !(value & (value - 1)))
			sp->page = value;
		break;
	case AT_BASE:
		sp->at_base = value;
		break;
	case AT_ENTRY:
		sp->at_entry = value;
		break;
	case AT_EXECFN:
		core->at_execfn = value;
		break;
	case AT_SYSINFO_EHDR:
		sp->at_sysinfo = value;
		break;
	}
}

static void note_auxv(struct space *sp, const struct elf_note *note)
{
	struct core *core = sp->priv;
	uint32_t i, n = note->desc_len / (2 * sp->word);

	if (core->has_auxv)
		return;
	core->has_auxv = true;
	for (i = 0; i < n; i++) {
		const uint8_t *p = note->desc + (size_t)i * 2 * sp->word;
		uint64_t key = word_at(sp, p);

		if (key == AT_NULL)
			break;
		auxv_entry(sp, key, word_at(sp, p + sp->word));
	}
}

static void add_vectors(const struct space *sp, struct thread *t,
			const uint8_t *p, uint64_t n)
{
	uint64_t left = THREAD_MAX_VECTORS - t->n_vectors;

	n = min_u64(n / sp->word, left);
	t->vectors = mem_realloc(t->vectors, (t->n_vectors + n) *
				 sizeof(*t->vectors));
	for (uint64_t i = 0; i < n; i++)
		t->vectors[t->n_vectors++] = word_at(sp, p + i * sp->word);
}

/* The last thread that a note was of, without vectors; NULL if none. */
static struct thread *thread_for_vectors(struct space *sp)
{
	struct thread *t;

	if (!sp->n_threads)
		return NULL;
	t = &sp->threads[sp->n_threads - 1];
	free(t->vectors);
	t->vectors = NULL;
	t->n_vectors = 0;
	return t;
}

/* FXSAVE has xmm0 to xmm15 there; of AArch64, v0 to v31 come first. */
static void note_fpregs(struct space *sp, const struct elf_note *note)
{
	bool arm = sp->machine == MACHINE_AARCH64;
	unsigned at = arm ? 0 : FXSAVE_XMM;
	unsigned size = arm ? ARM_VECTORS : FXSAVE_XMM_SIZE;
	struct core *core = sp->priv;
	struct thread *t;

	core->has_fpregs = true;
	if (sp->machine == MACHINE_I386 || note->desc_len < at + size)
		return;
	t = thread_for_vectors(sp);
	if (t)
		add_vectors(sp, t, note->desc + at, size);
}

/* FXSAVE and a header, then what processors have added since. */
static void note_xstate(struct space *sp, const struct elf_note *note)
{
	struct thread *t;

	if (sp->machine == MACHINE_AARCH64 || note->desc_len < XSAVE_MORE)
		return;
	t = thread_for_vectors(sp);
	if (!t)
		return;
	add_vectors(sp, t, note->desc + FXSAVE_XMM, FXSAVE_XMM_SIZE);
	add_vectors(sp, t, note->desc + XSAVE_MORE,
		    note->desc_len - XSAVE_MORE);
}

/* The descriptor that %gs selects; its number is the selector over 8. */
static void note_386_tls(struct space *sp, const struct elf_note *note)
{
	struct thread *t;
	uint32_t i;

	if (sp->machine != MACHINE_I386 || !sp->n_threads)
		return;
	t = &sp->threads[sp->n_threads - 1];
	for (i = 0; i < note->desc_len / USER_DESC_SIZE; i++) {
		const uint8_t *p = note->desc + i * USER_DESC_SIZE;

		if (load_u32(p) == (t->regs[I386_GS] & 0xffff) >> 3)
			t->tls = load_u32(p + 4);
	}
}

static void note_arm_tls(struct space *sp, const struct elf_note *note)
{
	if (sp->machine == MACHINE_AARCH64 && sp->n_threads &&
	    note->desc_len >= 8)
		sp->threads[sp->n_threads - 1].tls = load_u64(note->desc);
}

/* ---- NT_FILE ---- */

/* A name of the note and the range it is for. */
struct file_name {
	const char *name;	/* borrowed, zero-ended */
	size_t range;
	size_t same;		/* the first range of this name */
};

static int by_name(const void *a, const void *b)
{
	const struct file_name *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order)
		return order;
	return ORDER(x->range, y->range);
}

static int by_range(const void *a, const void *b)
{
	const struct file_name *x = a, *y = b;

	return ORDER(x->range, y->range);
}

uint32_t core_file_add(struct space *sp, const char *name)
{
	static const char suffix[] = " (deleted)";
	struct core *core = sp->priv;
	size_t len = strlen(name);
	struct mapped_file *file;

	file = &MEM_PUSH(sp->files, sp->n_files, core->cap_files);
	file->name = mem_strdup(name);
	file->module = SEG_NO_FILE;
	file->deleted = len >= sizeof(suffix) &&
			!strcmp(name + len - strlen(suffix), suffix);
	if (file->deleted)
		file->name[len - strlen(suffix)] = '\0';
	return (uint32_t)(sp->n_files - 1);
}

/* One entry in space.files for each name, numbered as they come. */
static void number_files(struct space *sp, struct file_name *names, size_t n)
{
	struct core *core = sp->priv;
	size_t i;

	SORT(names, n, by_name);
	for (i = 0; i < n; i++)
		names[i].same =
			i && !strcmp(names[i].name, names[i - 1].name) ?
			names[i - 1].same : names[i].range;
	SORT(names, n, by_range);
	for (i = 0; i < n; i++)
		core->ranges[i].file = names[i].same == i ?
			core_file_add(sp, names[i].name) :
			core->ranges[names[i].same].file;
}

/*
 * A count and a page size, then {start, end, offset} for each, then as many
 * names.  Linux counts offsets in pages and writes page size 4096; gdb counts
 * bytes and writes 1: their product is right for both.
 */
static void note_file(struct space *sp, const struct elf_note *note)
{
	struct core *core = sp->priv;
	unsigned w = sp->word;
	uint64_t i, count, unit;
	const char *name, *end = (const char *)note->desc + note->desc_len;
	struct file_name *names;

	if (note->desc_len < 2 * w || sp->has_file_note)
		return;
	count = word_at(sp, note->desc);
	unit = word_at(sp, note->desc + w);
	if (count > (note->desc_len - 2 * w) / (3 * w))
		return;
	sp->has_file_note = true;
	core->file_offsets_in_bytes = unit == 1;
	name = (const char *)note->desc + (2 + 3 * count) * w;
	names = mem_alloc(count * sizeof(*names));
	for (i = 0; i < count; i++) {
		const uint8_t *p = note->desc + (2 + 3 * i) * w;
		size_t len = strnlen(name, (size_t)(end - name));
		struct file_range *r;

		if (name + len == end)
			break;
		names[i].name = name;
		names[i].range = i;
		name += len + 1;
		r = &MEM_PUSH(core->ranges, core->n_ranges, core->cap_ranges);
		r->start = word_at(sp, p);
		r->end = word_at(sp, p + w);
		if (!mul_ok(word_at(sp, p + 2 * w), unit, &r->off))
			r->off = 0;
	}
	number_files(sp, names, i);
	free(names);
}

static void note_own(struct space *sp, const struct elf_note *note)
{
	struct core *core = sp->priv;

	core->own = note->desc;
	core->own_size = note->desc_len;
}

static void one_note(struct space *sp, const struct elf_note *note)
{
	struct core *core = sp->priv;

	if (elf_note_is(note, "CORE", NT_PRSTATUS))
		note_prstatus(sp, note);
	else if (elf_note_is(note, "CORE", NT_PRPSINFO))
		note_prpsinfo(sp, note);
	else if (elf_note_is(note, "CORE", NT_SIGINFO))
		note_siginfo(sp, note);
	else if (elf_note_is(note, "CORE", NT_AUXV))
		note_auxv(sp, note);
	else if (elf_note_is(note, "CORE", NT_FILE))
		note_file(sp, note);
	else if (elf_note_is(note, "CORE", NT_FPREGSET))
		note_fpregs(sp, note);
	else if (elf_note_is(note, "LINUX", NT_X86_XSTATE))
		note_xstate(sp, note);
	else if (elf_note_is(note, "LINUX", NT_386_TLS))
		note_386_tls(sp, note);
	else if (elf_note_is(note, "LINUX", NT_ARM_TLS))
		note_arm_tls(sp, note);
	else if (elf_note_is(note, "GDB", NT_GDB_TDESC))
		core->has_gdb_note = true;
	else if (elf_note_is(note, OWN_OWNER, OWN_TYPE))
		note_own(sp, note);
	else if (note->name_len == 10 && !memcmp(note->name, "VMCOREINFO", 10))
		core->is_vmcore = true;
}

/* A note that says nothing is a hole, which can be of terabytes. */
static bool says_nothing(const struct elf_note *note)
{
	return !note->name_len && !note->desc_len && !note->type;
}

void core_notes(struct space *sp, const uint8_t *notes, uint64_t size)
{
	struct elf_note note;
	uint64_t pos = 0;

	while (elf_note_next(notes, size, 4, &pos, &note) &&
	       !says_nothing(&note))
		one_note(sp, &note);
}

/*
 * Linux has written NT_SIGINFO and NT_FILE since 3.7, and floating point
 * registers for ever; user-mode qemu writes none of the three.
 */
static const char *guess_writer(const struct core *core,
				const struct space *sp)
{
	if (core->own)
		return "heapcore";
	if (core->has_gdb_note || core->file_offsets_in_bytes)
		return "gdb";
	if (core->has_siginfo)
		return "kernel";
	if (sp->n_threads && core->has_auxv && !core->has_fpregs &&
	    !sp->has_file_note)
		return "qemu";
	return "?";
}

void core_notes_done(struct space *sp)
{
	struct core *core = sp->priv;

	sp->writer = guess_writer(core, sp);
	/* gdb stops a process to look at it: that is not what ended it. */
	if (!strcmp(sp->writer, "gdb") &&
	    (sp->signal == SIGSTOP || sp->signal == SIGTRAP ||
	     sp->signal == SIGINT))
		sp->signal = 0;
	if (!sp->signal)
		sp->has_fault_addr = false;
}
