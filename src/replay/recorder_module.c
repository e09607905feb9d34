/* SPDX-License-Identifier: MIT */
/*
 * The objects of the program: where they are, their build ids for whoever
 * resolves names later, and their unwind tables for us.
 *
 * Objects are noticed when a return address lies in one that is not known:
 * dlopen is not wrapped, because it looks at its caller.  dlclose is: an
 * address may mean something else afterwards, so a new set of all objects
 * begins, and stacks get new numbers.
 *
 * Lock order: the dynamic linker's (in its callback), then ours.
 */
#include "replay/recorder.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	MODULES_MAX = 2048,
	SEGMENTS_MAX = 16,
	BUILD_ID_MAX = 64,
};

static struct rec_module modules[MODULES_MAX];
static unsigned n_modules;
static unsigned long long seen_adds, seen_subs;

/* An object as the linker shows it. */
struct object {
	const struct dl_phdr_info *info;
	struct rec_module module;
	const uint8_t *build_id;
	size_t build_id_size;
	unsigned n_loads;
};

static void read_notes(struct object *o, const ElfW(Phdr) *ph)
{
	const uint8_t *p = (const uint8_t *)(o->info->dlpi_addr +
					     ph->p_vaddr);
	const uint8_t *end = p + ph->p_memsz;

	while ((size_t)(end - p) >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) n;
		size_t name, desc;

		memcpy(&n, p, sizeof(n));
		p += sizeof(n);
		name = ((size_t)n.n_namesz + 3) & ~(size_t)3;
		desc = ((size_t)n.n_descsz + 3) & ~(size_t)3;
		if (name > (size_t)(end - p) || desc > (size_t)(end - p) - name)
			return;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 &&
		    !memcmp(p, "GNU", 4) && n.n_descsz <= BUILD_ID_MAX) {
			o->build_id = p + name;
			o->build_id_size = n.n_descsz;
			return;
		}
		p += name + desc;
	}
}

/* A segment of ours that holds all n bytes at addr, and can be read. */
static const ElfW(Phdr) *segment_of(const struct object *o, ElfW(Addr) vaddr,
				    size_t n)
{
	for (unsigned i = 0; i < o->info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &o->info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_R) &&
		    vaddr >= ph->p_vaddr && n <= ph->p_memsz &&
		    vaddr - ph->p_vaddr <= ph->p_memsz - n)
			return ph;
	}
	return NULL;
}

static void read_phdr(struct object *o, const ElfW(Phdr) *ph)
{
	uintptr_t low = o->info->dlpi_addr + ph->p_vaddr;
	const ElfW(Phdr) *load;

	switch (ph->p_type) {
	case PT_LOAD:
		if (!o->n_loads++ || low < o->module.low)
			o->module.low = low;
		if (low + ph->p_memsz > o->module.high)
			o->module.high = low + ph->p_memsz;
		break;
	case PT_GNU_EH_FRAME:
		load = segment_of(o, ph->p_vaddr, ph->p_memsz);
		if (!load)
			break;
		o->module.hdr = low;
		o->module.hdr_low = o->info->dlpi_addr + load->p_vaddr;
		o->module.hdr_high = o->module.hdr_low + load->p_memsz;
		break;
	case PT_NOTE:
		if (!o->build_id && segment_of(o, ph->p_vaddr, ph->p_memsz))
			read_notes(o, ph);
		break;
	}
}

static bool known(const struct rec_module *m)
{
	for (unsigned i = 0; i < n_modules; i++)
		if (modules[i].low == m->low && modules[i].high == m->high)
			return true;
	return false;
}

static void log_module(const struct object *o)
{
	uint8_t payload[REC_TEXT + 64 + BUILD_ID_MAX + SEGMENTS_MAX * 30];
	char exe[REC_TEXT];
	const char *path = o->info->dlpi_name ? o->info->dlpi_name : "";
	size_t n = strnlen(path, REC_TEXT);
	unsigned loads = o->n_loads < SEGMENTS_MAX ? o->n_loads : SEGMENTS_MAX;
	uint8_t *p = payload;

	if (!n && !n_modules) {
		long got = syscall(SYS_readlinkat, -100, "/proc/self/exe",
				   exe, sizeof(exe));

		path = exe;
		n = got > 0 ? (size_t)got : 0;
	}
	p = rec_put(p, rec_tick());
	p = rec_put(p, rec.modules);
	p = rec_put(p, o->info->dlpi_addr);
	p = rec_put_text(p, (const char *)o->build_id, o->build_id_size);
	p = rec_put_text(p, path, n);
	p = rec_put(p, loads);
	for (unsigned i = 0; i < o->info->dlpi_phnum && loads; i++) {
		const ElfW(Phdr) *ph = &o->info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD)
			continue;
		p = rec_put(p, ph->p_vaddr);
		p = rec_put(p, ph->p_memsz);
		p = rec_put(p, ph->p_offset);
		loads--;
	}
	rec_log(TRACE_LOG_MODULE, payload, (size_t)(p - payload));
}

static int on_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct object o = { .info = info };
	bool *first = data;

	if (*first && size >= offsetof(struct dl_phdr_info, dlpi_subs) +
			      sizeof(info->dlpi_subs)) {
		if (info->dlpi_adds == seen_adds &&
		    info->dlpi_subs == seen_subs)
			return 1;
		seen_adds = info->dlpi_adds;
		seen_subs = info->dlpi_subs;
	}
	*first = false;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		read_phdr(&o, &info->dlpi_phdr[i]);
	rec_lock();
	if (o.n_loads && n_modules < MODULES_MAX && !known(&o.module)) {
		log_module(&o);
		modules[n_modules] = o.module;
		__atomic_store_n(&n_modules, n_modules + 1, __ATOMIC_RELEASE);
	}
	rec_unlock();
	return 0;
}

void rec_modules_read(void)
{
	bool first = true;

	dl_iterate_phdr(on_object, &first);
}

static int count_subs(struct dl_phdr_info *info, size_t size, void *data)
{
	unsigned long long *subs = data;

	*subs = size >= offsetof(struct dl_phdr_info, dlpi_subs) +
			sizeof(info->dlpi_subs) ? info->dlpi_subs : 0;
	return 1;
}

void rec_modules_changed(void)
{
	unsigned long long subs = 0;

	dl_iterate_phdr(count_subs, &subs);
	if (subs && subs == seen_subs)
		return;
	rec_lock();
	n_modules = 0;
	seen_adds = seen_subs = 0;
	__atomic_store_n(&rec.modules, rec.modules + 1, __ATOMIC_RELEASE);
	rec_unlock();
	rec_modules_read();
}

/* In a child: the same objects, to be told again in its own file. */
void rec_modules_reset(void)
{
	n_modules = 0;
	seen_adds = seen_subs = 0;
}

static bool find(uintptr_t pc, struct rec_module *ret)
{
	bool found = false;

	rec_lock();
	for (unsigned i = 0; i < n_modules && !found; i++) {
		found = pc >= modules[i].low && pc < modules[i].high;
		if (found)
			*ret = modules[i];
	}
	rec_unlock();
	return found;
}

bool rec_module_at(uintptr_t pc, struct rec_module *ret)
{
	if (find(pc, ret))
		return true;
	rec_modules_read();
	return find(pc, ret);
}
