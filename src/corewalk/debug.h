/* SPDX-License-Identifier: MIT */
/*
 * Debug information of the target's modules, by elfutils.
 *
 * Three files can belong to a module.  Its *own* file has the code and tables
 * for unwinding.  A *debug file* has what was stripped from it; it is looked
 * for by build id (.build-id/xx/yyy.debug below --debug-dir, each sysroot's
 * /usr/lib/debug, and /usr/lib/debug) and by the name in .gnu_debuglink
 * (beside the file, in .debug beside it, and below those folders); last, in a
 * --debug-dir itself, by that name or the program's with .debug behind it.  An
 * *alternate* file, which dwz(1) makes, has what several debug files share.
 * Files come from this machine only; nothing is ever fetched.
 *
 * A file is used if its build id is the one that was asked for; one without
 * build id if it has the checksum of .gnu_debuglink.  One that lies is not
 * used, and is told in debug_findings().
 *
 * A module's files are opened when it is asked for first and stay open until
 * debug_free().  libdw reads them lazily after that, and is not to be called
 * by two threads at once.  Sections that would need more than DEBUG_MAX_BYTES
 * when decompressed are not used.
 *
 * An alternate file is handed to libdw here.  Split units (.dwo) are another
 * matter: dwarf_get_units() opens the file that a skeleton names, whatever it
 * is; dwarf_nextcu() does not.
 */
#ifndef COREWALK_DEBUG_H
#define COREWALK_DEBUG_H

#include <elfutils/libdw.h>

#include "corewalk/target.h"

#define DEBUG_MAX_BYTES (4 * GIB)

/* What is known of one module.  All is borrowed until debug_free(). */
struct debug_module {
	const struct module *module;	/* NULL: of debug_of_file() */
	vaddr bias;		/* target address = address in file + bias */
	Elf *elf;		/* its own file; NULL: not found, no ELF */
	Elf *debug_elf;		/* of dwarf: elf, a debug file, or NULL */
	const char *debug_path;	/* of debug_elf, or NULL */
	Dwarf *dwarf;		/* has .debug_info; NULL: there is none */
	const char *why;	/* static: without dwarf, a clause why */
};

struct debug;

/*
 * Nothing is opened yet.  sp must outlive the result; NULL, if only
 * debug_of_file() is called.  Of the options, the folders and no_files count;
 * they are borrowed.
 */
struct debug *debug_new(struct space *sp,
			const struct target_options *options);
void debug_free(struct debug *d);

/* Of a module of the space; never NULL. */
const struct debug_module *debug_of(struct debug *d, const struct module *m);

/*
 * The path of the debug file of a module, NULL if it has none or needs none:
 * for who wants its symbols, and no DWARF, which takes longer to open.
 */
const char *debug_file(struct debug *d, const struct module *m);

/* Of the module that covers addr; NULL if none does. */
const struct debug_module *debug_at(struct debug *d, vaddr addr);

/*
 * Of a file that no space tells of, by the path that it had when it was
 * mapped and its build id: below each sysroot, then here.  Its bias is 0.  A
 * file without build id is taken as it is.  Names and lines are in it, and
 * not where variables are.  Never NULL; the same again for the same question.
 */
const struct debug_module *debug_of_file(struct debug *d, const char *path,
					 const uint8_t *id, unsigned id_len);

/*
 * The bytes of a section of a file, and its address there.  False if there is
 * none of the name, or if it is compressed and libdw has not unpacked it.
 */
bool debug_section(Elf *elf, const char *name, const uint8_t **ret,
		   uint64_t *ret_size, uint64_t *ret_addr);

/*
 * Files that lie or cannot be used, one sentence each, so far; they are among
 * the warnings of the space too.  Borrowed
 * until the next module is opened.  A finding is about the files of this
 * machine, and no error: names and lines are missing, no more.
 */
size_t debug_findings(const struct debug *d, char *const **ret);

#endif
