/* SPDX-License-Identifier: MIT */
/*
 * What a file is that somebody called a core.
 */
#include "corewalk/core.h"

#include <string.h>

/* Names of machines, from the gABI's registry. */
static const struct {
	uint16_t number;
	const char *name;
} machines[] = {
	{ 2, "SPARC" }, { 8, "MIPS" }, { 15, "PA-RISC" },
	{ 20, "PowerPC" }, { 21, "64-bit PowerPC" }, { 22, "S390" },
	{ 40, "32-bit ARM" }, { 42, "SuperH" }, { 43, "64-bit SPARC" },
	{ 50, "Itanium" }, { 243, "RISC-V" }, { 247, "BPF" },
	{ 258, "LoongArch" }, { 0x9026, "Alpha" },
};

static bool unknown_machine(const char *name, uint16_t number,
			    struct err *err)
{
	size_t i;

	for (i = 0; i < countof(machines); i++)
		if (machines[i].number == number)
			return err_set(err, ERR_UNSUPPORTED,
				       "%s: a core of %s; only x86-64, i386 "
				       "and aarch64 are known",
				       name, machines[i].name);
	return err_set(err, ERR_UNSUPPORTED, "%s: a core of machine number "
		       "%u; only x86-64, i386 and aarch64 are known",
		       name, number);
}

static bool set_machine(struct space *sp, struct err *err)
{
	struct core *core = sp->priv;
	const struct elf *elf = &core->elf;

	if (elf->machine == ELF_EM_X86_64 && elf->is64)
		sp->machine = MACHINE_X86_64;
	else if (elf->machine == ELF_EM_386 && !elf->is64)
		sp->machine = MACHINE_I386;
	else if (elf->machine == ELF_EM_AARCH64 && elf->is64)
		sp->machine = MACHINE_AARCH64;
	else if (elf->machine == ELF_EM_X86_64)
		return err_set(err, ERR_UNSUPPORTED, "%s: a core of the x32 "
			       "ABI, which is not supported", core->name);
	else if (elf->machine == ELF_EM_AARCH64 || elf->machine == ELF_EM_386)
		return err_set(err, ERR_FORMAT, "%s: damaged: the word size "
			       "does not fit the machine", core->name);
	else
		return unknown_machine(core->name, elf->machine, err);
	sp->word = elf->is64 ? 8 : 4;
	return true;
}

bool core_is_not(const char *name, const char *what, const char *hint,
		 struct err *err)
{
	err_set(err, ERR_FORMAT, "%s: not a core file: it is %s", name, what);
	if (hint)
		err_hint(err, "%s", hint);
	return false;
}

/* What people give instead of a core file, by its first bytes. */
static const struct {
	const char *magic;
	const char *what, *hint;
} other_formats[] = {
	{ "MDMP", "a minidump, which holds stacks but no heap", NULL },
	{ "ProblemType:", "an apport crash report",
	  "apport-unpack REPORT DIR takes the core file out: DIR/CoreDump." },
	{ "KDUMP   ", "a dump of a kernel", "See crash(8) or drgn." },
	{ "DISKDUMP", "a dump of a kernel", "See crash(8) or drgn." },
	{ "JAVA PROFILE", "a heap dump of a Java program", NULL },
	{ "\x89HCT\r\n\x1a\n", "a trace", "heapcore replay reads it." },
	{ "!<arch>\n", "an archive of object files", NULL },
	{ "#!", "a script", "Give the core file of the process." },
	{ "PK\3\4", "a zip archive", "Unpack it first." },
	{ "\2!L\30", "compressed with lz4 in its legacy form",
	  "Decompress it first." },
	{ "BZh", "compressed with bzip2", "Decompress it first." },
};

static bool not_elf(const char *name, const void *data, uint64_t size,
		    struct err *err)
{
	size_t i;

	for (i = 0; i < countof(other_formats); i++) {
		size_t n = strlen(other_formats[i].magic);

		if (size >= n && !memcmp(data, other_formats[i].magic, n))
			return core_is_not(name, other_formats[i].what,
					  other_formats[i].hint, err);
	}
	return err_set(err, ERR_FORMAT, "%s: not a core file", name);
}

bool core_identify(struct space *sp, const void *data, uint64_t size,
		   struct err *err)
{
	struct core *core = sp->priv;
	const uint8_t *p = data;

	if (!elf_magic(data, size))
		return not_elf(core->name, data, size, err);
	if (size > 5 && p[5] == 2)
		return err_set(err, ERR_UNSUPPORTED, "%s: big-endian, which "
			       "is not supported", core->name);
	if (!elf_open(&core->elf, data, size))
		return err_set(err, ERR_FORMAT, "%s: damaged or cut off in "
			       "its ELF header", core->name);
	if (core->elf.type == ELF_TYPE_EXEC || core->elf.type == ELF_TYPE_DYN)
		return core_is_not(core->name, "an ELF program",
				  "Give the core file; the program goes to "
				  "--exe.", err);
	if (core->elf.type == ELF_TYPE_REL)
		return core_is_not(core->name, "an ELF object file", NULL, err);
	if (core->elf.type != ELF_TYPE_CORE)
		return err_set(err, ERR_FORMAT, "%s: not a core file: ELF "
			       "type %u", core->name, core->elf.type);
	return set_machine(sp, err);
}

/*
 * The table of program headers can be longer than the head; what follows it
 * is bounded by what the headers say.  gdb and Linux write section headers
 * behind the contents: Linux one, gdb one for each segment.
 */
bool core_size(const void *head, uint64_t size, bool final,
	       uint64_t *ret_need, uint64_t *ret_limit, struct err *err)
{
	uint64_t i, n, end, limit = 0;
	struct elf_phdr ph;
	struct elf elf;

	*ret_need = size;
	if (!elf_open(&elf, head, size) || elf.type != ELF_TYPE_CORE)
		return err_set(err, ERR_FORMAT, "compressed, but not "
			       "a core file");
	if (!final && elf_phdrs_there(&elf) < elf.phnum &&
	    add_ok(elf.phoff, (uint64_t)elf.phnum * elf.phentsize, ret_need) &&
	    *ret_need > size)
		return true;
	*ret_need = size;
	n = elf_phdrs_there(&elf);
	for (i = 0; i < n && elf_phdr(&elf, (uint32_t)i, &ph); i++)
		if (add_ok(ph.offset, ph.filesz, &end))
			limit = max_u64(limit, end);
	if (elf.shoff >= limit && elf.shoff - limit < 64 * KIB)
		limit = elf.shoff + max_u64(1, max_u64(elf.shnum, elf.phnum)) *
				    elf.shentsize;
	*ret_limit = max_u64(limit, size);
	return true;
}
