/* SPDX-License-Identifier: MIT */
/*
 * The address space of one target: its mappings, what bytes of them can be
 * had, its threads and the files that were mapped.
 *
 * Vocabulary.  A segment is one mapping as the target's kernel saw it.  The
 * first `avail` bytes of a segment can be read; what lies behind them is a
 * *hole*: mapped, but its bytes are not in the file.  An address in no segment
 * is *unmapped*.  Byte, hole and unmapped are three answers, never two.
 * A page of a core that was never touched reads as zeros although the file
 * does not store it; space_stored() tells stored bytes from such ones.
 *
 * Segments are sorted by address and do not overlap.  A lookup costs one
 * comparison when it hits the same segment as the last one, else a binary
 * search over start addresses.  Segments that lie side by side in memory and
 * in the file can be read across; see space_view().
 *
 * Filled by a target (target.h), read by everybody else.
 */
#ifndef COREWALK_SPACE_H
#define COREWALK_SPACE_H

#include "base/err.h"
#include "base/types.h"

enum machine {
	MACHINE_X86_64,
	MACHINE_I386,
	MACHINE_AARCH64,
};

/* Why there is no byte at an address. */
enum space_why {
	SPACE_OK,		/* there is one */
	SPACE_UNMAPPED,		/* no mapping covers the address */
	SPACE_UNDUMPED,		/* the writer of the core left it out */
	SPACE_TRUNCATED,	/* the file ends before it */
	SPACE_NO_FILE,		/* it is in a file that was not found */
	SPACE_MISMATCH,		/* the file found has another build id */
	SPACE_READ_ERROR,
	SPACE_SWAPPED,		/* in swap, where it was left on demand */
};

enum seg_flag {
	SEG_R = 1 << 0,
	SEG_W = 1 << 1,
	SEG_X = 1 << 2,
	/*
	 * Shared with other processes, as far as a core tells: /dev/zero,
	 * memory files, SysV segments, a deleted file that is no program or
	 * library, a writable mapping of a data file without a written page.
	 */
	SEG_SHARED = 1 << 3,
	/* [vdso], [vvar], [vsyscall]: the kernel's, not the process's. */
	SEG_KERNEL = 1 << 4,
	/* The host bytes come from the file on disk, not from the core. */
	SEG_FROM_FILE = 1 << 5,
};

enum { SEG_NO_FILE = UINT32_MAX };

struct seg {
	vaddr start, end;
	uint64_t avail;		/* bytes that can be read, from start on */
	uint64_t stored;	/* bytes the core has, from start on */
	const uint8_t *host;	/* borrowed until space_close; or NULL */
	uint32_t flags;		/* enum seg_flag */
	uint32_t file;		/* index in space.files, or SEG_NO_FILE */
	uint64_t file_off;	/* offset of start in that file */
	uint64_t core_off;	/* offset of start in the core file */
	enum space_why why;	/* of the bytes behind avail */
};

/* A file of which something was mapped; all its mappings share one entry. */
struct mapped_file {
	char *name;		/* owned; as the target's kernel named it */
	bool deleted;		/* the name ended in " (deleted)", now cut */
	uint32_t module;	/* index in space.modules, or SEG_NO_FILE */
};

/* A program or library: an ELF file that was mapped from its offset 0. */
struct module {
	uint32_t file;		/* index in space.files */
	vaddr start, end;	/* of all its mappings, and its bss */
	uint8_t build_id[20];
	uint8_t build_id_len;	/* 0: none, or its page is not in the core */
	bool is_exe;
	char *path;		/* owned; the file on disk in use, or NULL */
	enum space_why why;	/* when path is NULL: SPACE_NO_FILE, ... */
};

enum {
	THREAD_MAX_REGS = 34,
	THREAD_MAX_VECTORS = 4096,	/* words; AVX-512 has 264 */
	THREAD_MAX_WORDS = THREAD_MAX_REGS + THREAD_MAX_VECTORS,
};

struct thread {
	uint32_t tid;
	uint32_t n_regs;
	uint64_t regs[THREAD_MAX_REGS];	/* in the order of the core's note */
	/*
	 * owned; words of the target, from vector registers: of xmm0 and so on
	 * two each (i386: four), then what the core has of their upper halves.
	 */
	uint64_t *vectors;
	uint32_t n_vectors;
	vaddr sp, pc;
	vaddr tls;		/* the thread pointer; 0 if not known */
	char name[16];		/* as the kernel has it; empty: not known */
};

/* All words that a thread has in registers, vectors behind the others. */
static inline uint32_t thread_words(const struct thread *t)
{
	return t->n_regs + t->n_vectors;
}

static inline uint64_t thread_word(const struct thread *t, uint32_t i)
{
	return i < t->n_regs ? t->regs[i] : t->vectors[i - t->n_regs];
}

/* A run of bytes that the core file stores; file offsets. */
struct extent_run {
	uint64_t start, end;
};

enum holes {
	HOLES_UNKNOWN,		/* a file system without holes */
	HOLES_LOST,		/* no hole in any segment: copied or gcore */
	HOLES_KEPT,		/* holes say which pages were never touched */
};

struct space {
	/* What it is. */
	const char *kind;	/* static: "core", "process", "image" */
	char *path;		/* owned; as given on the command line */
	char *program;		/* owned; base name of the program, or "?" */
	char *command;		/* owned; command line, or NULL */
	const char *writer;	/* static: "kernel", "gdb", "qemu", "?" */
	enum machine machine;
	unsigned word;		/* bytes in a pointer, 4 or 8 */
	uint64_t page;		/* AT_PAGESZ, 4096 if unknown */
	uint32_t pid;
	int signal;		/* that ended it; 0 none or not known */
	vaddr fault_addr;	/* of that signal; valid if has_fault_addr */
	bool has_fault_addr;
	vaddr at_entry, at_phdr, at_base, at_sysinfo;	/* auxv; 0 unknown */
	uint64_t at_phnum;

	/* What is missing. */
	uint64_t core_size;	/* bytes of the (decompressed) file */
	uint64_t core_wanted;	/* bytes its headers speak of */
	size_t missing_segs;	/* mappings with bytes cut off by truncation */
	size_t undumped_segs;	/* left out by the core's writer on purpose */
	bool damaged;		/* what was decompressed was not written so */
	bool has_file_note;	/* NT_FILE was there */
	enum holes holes;

	/* Of a process, also in heapcore's own snapshot of it. */
	double stopped_s;	/* how long it stood still; 0 it did not */
	bool torn;		/* read while it ran */

	/*
	 * Names that a program can make while it runs are not told: variables,
	 * functions and classes of an interpreter have their address for one,
	 * mappings of plain files none: --redact.
	 */
	bool nameless;

	struct seg *segs;	/* owned, sorted by start */
	size_t n_segs;
	struct thread *threads;	/* owned; the first one took the signal */
	size_t n_threads;
	struct mapped_file *files;	/* owned */
	size_t n_files;
	struct module *modules;	/* owned, sorted by start */
	size_t n_modules;
	struct extent_run *runs;	/* owned; NULL: all is stored */
	size_t n_runs;
	struct page_run *pages;	/* owned; NULL: not known; see pages.h */
	size_t n_pages;
	char **warnings;	/* owned; sentences, without the path */
	size_t n_warnings, cap_warnings;

	/* Private to space.c and the target. */
	size_t last;		/* segment of the last lookup */
	size_t last_run;	/* of pages, likewise */
	uint64_t *starts;	/* owned: keys of the binary search */
	uint64_t *run_ends;	/* where the mappings end that join each */
	uint64_t *next_stored;	/* the first stored byte from each on */
	const struct target_ops *ops;
	void *priv;
	uint64_t reads;		/* reads so far */
	uint64_t fail_at;	/* tests: only this read fails; 0 none */
};

/*
 * Make the lookup arrays after segs was filled, sorted and made free of
 * overlaps.  Targets call it last, and again if segs, what is stored of them
 * or runs changed.
 */
void space_index(struct space *sp);

/* Frees everything, the target's part by its own close. NULL is fine. */
void space_close(struct space *sp);

/*
 * Give back the memory that bytes of a file take here; they are read again if
 * they are looked at.  Any thread may call it, at any time.
 */
void space_forget(struct space *sp);

/* A sentence about the input for the user; shown once on stderr. */
void space_warn(struct space *sp, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The segment that covers addr, NULL if none does. */
const struct seg *space_seg(struct space *sp, vaddr addr);

/* The number of the first one that ends behind addr; n_segs if none does. */
size_t space_first_seg(const struct space *sp, vaddr addr);
/* The first of runs that ends behind an offset in the file; n_runs if none. */
size_t space_first_run(const struct space *sp, uint64_t off);

/* Why a byte at addr cannot be read; SPACE_OK if it can. */
enum space_why space_why(struct space *sp, vaddr addr);
/* The same in words: "not in the core file", "not mapped", ... */
const char *space_why_text(enum space_why why);

/*
 * n bytes at addr, in one piece; NULL if one of them cannot be read, or if
 * they cross into memory that is not adjacent in the file.  The pointer is
 * valid until space_close.  It may be unaligned: read words by memcpy.
 */
const void *space_view(struct space *sp, vaddr addr, uint64_t n);

/*
 * What can be read in one piece from addr on: to the end of its segment, and
 * up to a megabyte of those that join it.  *ret_n is 0 with NULL.
 */
const void *space_view_max(struct space *sp, vaddr addr, uint64_t *ret_n);

/* Copies up to n bytes, crossing segments; returns how many could be read. */
uint64_t space_read(struct space *sp, vaddr addr, void *buf, uint64_t n);

/* Typed getters: false at a hole or unmapped address, *ret then untouched. */
bool space_u8(struct space *sp, vaddr addr, uint8_t *ret);
bool space_u16(struct space *sp, vaddr addr, uint16_t *ret);
bool space_u32(struct space *sp, vaddr addr, uint32_t *ret);
bool space_u64(struct space *sp, vaddr addr, uint64_t *ret);
/* A word of the target: 4 or 8 bytes. */
bool space_word(struct space *sp, vaddr addr, uint64_t *ret);

/*
 * The string at addr up to its zero, at most max bytes; false if it does not
 * end there.  ret holds max + 1 bytes.
 */
bool space_string(struct space *sp, vaddr addr, char *ret, size_t max);

/* All that can be read. */
uint64_t space_bytes(const struct space *sp);
/*
 * How many of [start, end) are really stored in the file: not a hole of a
 * segment, not a hole of a sparse file.
 */
uint64_t space_stored(struct space *sp, vaddr start, vaddr end);

/*
 * The first address at or behind addr whose byte is stored, for a search of
 * what was written to: it passes over what a process reserved and did not
 * touch, which can be terabytes.  UINT64_MAX if there is none.  Costs two
 * binary searches, however many mappings it passes over.
 */
vaddr space_next_stored(struct space *sp, vaddr addr);

/*
 * Private memory of the process: mapped readable or writable, not shared, not
 * the kernel's, and not a mere reservation.  File mappings count if they are
 * writable or if the core stores some of them, the first page of a file apart.
 */
bool space_seg_private(const struct space *sp, const struct seg *seg);

/* Anonymous: no file, not the kernel's, not shared. */
bool space_seg_anon(const struct seg *seg);

/*
 * The end of the run of adjacent segments that starts with the one covering
 * addr, all readable, writable, private and anonymous.  Kernels split and
 * merge mappings for many reasons: their borders mean nothing to a heap.
 * Returns addr if its own segment is not of that kind.
 */
vaddr space_run_end(struct space *sp, vaddr addr);

/* Is all of it mapped, in one or several segments?  Costs a lookup. */
bool space_mapped(struct space *sp, vaddr start, uint64_t bytes);
/* Can all of it be read? */
bool space_readable(struct space *sp, vaddr start, uint64_t bytes);
/*
 * Can less than a 64th of [start, end) be read?  Bitmaps for every block in
 * there would take more memory than the file has bytes.
 */
bool space_sparse(const struct space *sp, vaddr start, vaddr end);

/* The module whose mappings cover addr, NULL if none. */
const struct module *space_module(const struct space *sp, vaddr addr);

/* The thread whose stack pointer lies in [start, end), NULL if none. */
const struct thread *space_thread_on(const struct space *sp, vaddr start,
				     vaddr end);

#endif
