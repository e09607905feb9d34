/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the core target share while a core is being opened:
 * target_core.c (container and segments), core_kind.c (what the file is),
 * core_note.c (notes), core_file.c (mapped files), core_runs.c (holes of the
 * file), module.c and module_file.c (programs and libraries).  Nobody else
 * includes this.
 */
#ifndef COREWALK_CORE_H
#define COREWALK_CORE_H

#include "corewalk/elf.h"
#include "corewalk/space.h"
#include "corewalk/target.h"

/* A mapping of a file, from NT_FILE or made up from program headers. */
struct file_range {
	vaddr start, end;
	uint64_t off;		/* of start in the file, in bytes */
	uint32_t file;		/* index in space.files */
};

/* One of our own mappings, given back by close. */
struct core_map {
	void *data;
	size_t size;
};

struct core {
	struct elf elf;
	const char *name;	/* borrowed: the path, for messages */
	const struct target_options *options;
	size_t cap_segs, cap_threads, cap_files;
	struct file_range *ranges;	/* owned, sorted, no overlap */
	size_t n_ranges, cap_ranges;
	struct core_map *maps;	/* owned; the core itself comes first */
	size_t n_maps, cap_maps;

	/* What the notes told, besides what is in struct space. */
	char fname[17];
	vaddr at_execfn;
	bool has_siginfo, has_fpregs, has_auxv, has_gdb_note;
	bool file_offsets_in_bytes;	/* NT_FILE as gdb writes it */
	bool is_vmcore;

	/* heapcore's own note: borrowed, of the core; see own.h. */
	const uint8_t *own;
	uint64_t own_size;

	/* Of a process: it knows its shared mappings, and links to files. */
	bool knows_shared;
	const char *map_files;	/* borrowed; a folder, or NULL */
};

/*
 * core_kind.c: is it a core of a known machine?  Fills core->elf, machine and
 * word, or says what the file is instead.
 */
bool core_identify(struct space *sp, const void *data, uint64_t size,
		   struct err *err);
bool core_is_not(const char *name, const char *what, const char *hint,
		 struct err *err);

/* How long a core is, from its first bytes; an unpack_size. */
bool core_size(const void *head, uint64_t size, bool final,
	       uint64_t *ret_need, uint64_t *ret_limit, struct err *err);

/* core_note.c: read one PT_NOTE; then once, when all were read. */
void core_notes(struct space *sp, const uint8_t *notes, uint64_t size);
void core_notes_done(struct space *sp);

/* A new entry in space.files; returns its index. */
uint32_t core_file_add(struct space *sp, const char *name);

/*
 * core_file.c: find out which segment maps which file, add the mappings that
 * the writer left out of its table, and make the index.
 */
void core_files(struct space *sp);

/*
 * The ELF header at base in the target's memory, if enough of it is there;
 * *ret_bias is what has to be added to its p_vaddr.
 */
bool core_image(struct space *sp, vaddr base, struct elf *ret,
		vaddr *ret_bias);

/* The first program header of a type. */
bool core_image_phdr(const struct elf *elf, uint32_t type,
		     struct elf_phdr *ret);

/* The value of DT_DEBUG, which only programs have. */
bool core_image_debug(struct space *sp, const struct elf *elf, vaddr bias,
		      vaddr *ret);

/*
 * core_runs.c: which bytes of the file are stored, and what holes mean; fd is
 * the core, or -1 if its holes were lost.
 */
void core_runs(struct space *sp, int fd);

/* core_fault.c: say name, and end, if reading these bytes faults. */
void core_watch(const void *data, size_t size, const char *name);
void core_unwatch(const void *data);

/* module.c: programs and libraries, of core->ranges. */
void core_modules(struct space *sp);

/* module_file.c: bytes that the core lacks from files on disk. */
void core_module_files(struct space *sp);

#endif
