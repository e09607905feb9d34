/* SPDX-License-Identifier: MIT */
#include "report/frames.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/demangle.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "corewalk/elf.h"
#include "corewalk/module.h"

enum {
	SYM_SIZE = 24, SYM_FUNC = 2, SYM_IFUNC = 10,
	SECTION_SIZE = 64, MAX_SECTIONS = 65536,
	FIRST_BUCKETS = 1 << 10,
};

struct object_symbol {
	uint64_t start, size;
	const char *name;	/* in the mapped file */
	size_t len;
};

/* The file of a module. */
struct frame_object {
	bool tried;
	void *data;		/* mapped; NULL: not there, or another one */
	size_t size;
	struct object_symbol *symbols;	/* owned; by start */
	size_t n, cap;
};

/* ---- symbol tables ---- */

static bool in_file(const struct elf *elf, uint64_t off, uint64_t n)
{
	return off <= elf->size && n <= elf->size - off;
}

static void add_symbol(struct frame_object *o, const uint8_t *sym,
		       const char *names, uint64_t names_size)
{
	unsigned type = sym[4] & 15;
	uint64_t name = load_u32(sym);
	struct object_symbol s = {
		.start = load_u64(sym + 8), .size = load_u64(sym + 16),
	};

	/* One that is not defined here may have the address of its PLT. */
	if ((type != SYM_FUNC && type != SYM_IFUNC) || !s.start ||
	    !load_u16(sym + 6) ||
	    name >= names_size)
		return;
	s.name = names + name;
	s.len = strnlen(s.name, names_size - name);
	if (s.len && s.len < names_size - name)
		MEM_PUSH(o->symbols, o->n, o->cap) = s;
}

static void read_table(struct frame_object *o, const struct elf *elf,
		       const uint8_t *header)
{
	uint64_t off = load_u64(header + 24), size = load_u64(header + 32);
	uint32_t link = load_u32(header + 40);
	const uint8_t *strings;
	uint64_t names, names_size;

	if (link >= elf->shnum || !in_file(elf, off, size))
		return;
	strings = elf->data + elf->shoff + (uint64_t)link * SECTION_SIZE;
	names = load_u64(strings + 24);
	names_size = load_u64(strings + 32);
	if (!in_file(elf, names, names_size))
		return;
	for (uint64_t i = 0; i < size / SYM_SIZE; i++)
		add_symbol(o, elf->data + off + i * SYM_SIZE,
			   (const char *)elf->data + names, names_size);
}

/* One name for each place: the shortest, then the first by letters. */
static int compare_symbols(const void *a, const void *b)
{
	const struct object_symbol *x = a, *y = b;
	size_t n = min_u64(x->len, y->len);
	int order;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	order = memcmp(x->name, y->name, n);
	if (order)
		return order;
	return (x->size < y->size) - (x->size > y->size);
}

static void read_symbols(struct frame_object *o, const struct elf *elf)
{
	uint64_t size = (uint64_t)elf->shnum * SECTION_SIZE;

	if (!elf->is64 || elf->shentsize != SECTION_SIZE ||
	    elf->shnum > MAX_SECTIONS || !in_file(elf, elf->shoff, size))
		return;
	for (uint32_t i = 0; i < elf->shnum; i++) {
		const uint8_t *header = elf->data + elf->shoff +
					(uint64_t)i * SECTION_SIZE;
		uint32_t type = load_u32(header + 4);

		if (type == SHT_SYMTAB || type == SHT_DYNSYM)
			read_table(o, elf, header);
	}
	SORT(o->symbols, o->n, compare_symbols);
}

static bool same_build(const struct elf *elf, const struct trace_text *want)
{
	struct elf_phdr p;
	uint8_t id[20];

	for (uint32_t i = 0; i < elf->phnum; i++) {
		if (!elf_phdr(elf, i, &p) || p.type != PT_NOTE ||
		    !in_file(elf, p.offset, p.filesz))
			continue;
		unsigned n = elf_build_id(elf->data + p.offset, p.filesz,
					  p.align, id);

		if (n)
			return n == want->len && !memcmp(id, want->text, n);
	}
	return !want->len;
}

/* A file that is no plain one is not waited for. */
static bool map_object(struct frame_object *o, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
		o->size = (size_t)st.st_size;
		o->data = mmap(NULL, o->size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (o->data == MAP_FAILED)
			o->data = NULL;
	}
	close(fd);
	return o->data;
}

static bool load_from(struct frame_object *o, const struct trace_module *m,
		      const char *root)
{
	AUTO_FREE char *path = mem_printf("%s%s", root, m->path.text);
	struct elf elf;

	if (!map_object(o, path))
		return false;
	if (elf_open(&elf, o->data, o->size) &&
	    same_build(&elf, &m->build_id)) {
		read_symbols(o, &elf);
		return true;
	}
	munmap(o->data, o->size);
	o->data = NULL;
	return false;
}

/* Below each sysroot, then here. */
static void load_object(const struct frames *f, struct frame_object *o,
			const struct trace_module *m)
{
	bool done = m->path.text[0] != '/';

	o->tried = true;
	for (size_t i = 0; i < f->options->n_sysroots && !done; i++)
		done = load_from(o, m, f->options->sysroots[i]);
	if (!done)
		load_from(o, m, "");
}

static const struct object_symbol *find_symbol(const struct frame_object *o,
					       uint64_t at)
{
	size_t low = BISECT(middle, 0, o->n, o->symbols[middle].start <= at);

	if (!low)
		return NULL;
	while (low > 1 && o->symbols[low - 2].start ==
			  o->symbols[low - 1].start)
		low--;
	const struct object_symbol *s = &o->symbols[low - 1];

	return !s->size || at - s->start < s->size ? s : NULL;
}

/* ---- functions ---- */

static bool is_allocator(const char *name)
{
	static const char *const names[] = {
		"malloc", "calloc", "realloc", "reallocarray", "memalign",
		"aligned_alloc", "posix_memalign", "valloc", "pvalloc",
		"strdup", "strndup", "__strdup", "__strndup", "xmalloc",
		"xcalloc", "xrealloc", "xstrdup", "g_malloc", "g_malloc0",
		"g_realloc", "CRYPTO_malloc", "CRYPTO_zalloc",
		"PyMem_Malloc", "PyMem_RawMalloc", "PyObject_Malloc",
		"safemalloc", "Perl_safesysmalloc", "Perl_safesyscalloc",
		"Perl_safesysrealloc",
	};
	/* What stands between a container and operator new. */
	static const char *const prefixes[] = {
		"std::allocator<", "std::allocator_traits<",
		"std::__new_allocator<", "__gnu_cxx::new_allocator<",
		"tcmalloc::",
	};

	for (size_t i = 0; i < countof(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	if (!strncmp(name, "_Znw", 4) || !strncmp(name, "_Zna", 4) ||
	    !strncmp(name, "operator new", 12))
		return true;
	for (size_t i = 0; i < countof(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static uint64_t hash_text(const char *text, uint64_t h)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h;
}

static uint64_t hash_function(const struct frame_function *f)
{
	return hash_text(f->object, hash_text(f->name, 14695981039346656037u))
	       * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static size_t name_slot(const struct frames *f,
			const struct frame_function *want)
{
	size_t mask = f->n_by_name - 1;
	size_t i = hash_function(want) & mask;

	for (; f->by_name[i]; i = (i + 1) & mask) {
		const struct frame_function *is =
			&f->functions[f->by_name[i] - 1];

		if (!strcmp(is->name, want->name) &&
		    !strcmp(is->object, want->object))
			break;
	}
	return i;
}

static void grow_names(struct frames *f)
{
	free(f->by_name);
	f->n_by_name *= 2;
	f->by_name = mem_zalloc(f->n_by_name * sizeof(*f->by_name));
	for (size_t i = 0; i < f->n_functions; i++)
		f->by_name[name_slot(f, &f->functions[i])] = (uint32_t)i + 1;
}

static void free_function(struct frame_function *f)
{
	free((char *)f->name);
	free((char *)f->object);
	free((char *)f->file);
}

/* Takes the strings over. */
static uint32_t intern(struct frames *f, uint32_t module,
		       struct frame_function *function)
{
	size_t slot;

	if (f->n_functions >= f->n_by_name / 2)
		grow_names(f);
	slot = name_slot(f, function);
	if (f->by_name[slot]) {
		free_function(function);
		return f->by_name[slot] - 1;
	}
	function->allocator = is_allocator(function->name) ||
		(f->allocators && module && f->allocators[module - 1]);
	MEM_PUSH(f->functions, f->n_functions, f->cap_functions) = *function;
	f->by_name[slot] = (uint32_t)f->n_functions;
	return f->by_name[slot] - 1;
}

static char *escaped(const char *text, size_t n)
{
	struct str s;

	str_init(&s);
	str_add_escaped(&s, text, n);
	return str_take(&s);
}

static const char *base_name(const struct trace_text *path)
{
	const char *slash = memrchr(path->text, '/', path->len);

	return slash ? slash + 1 : path->text;
}

static bool covers(const struct trace_module *m, vaddr addr)
{
	for (size_t i = 0; i < m->n_segments; i++)
		if (addr - m->bias - m->segments[i].vaddr <
		    m->segments[i].memsz)
			return true;
	return false;
}

/* As it was at the end, else the last object that was ever there. */
static uint32_t module_of(const struct frames *f, vaddr addr)
{
	const struct trace_info *info = trace_info(f->trace);
	const struct trace_module *m =
		trace_module_at(f->trace, addr, UINT64_MAX);

	if (m)
		return (uint32_t)(m - info->modules) + 1;
	for (size_t i = info->n_modules; i; i--)
		if (covers(&info->modules[i - 1], addr))
			return (uint32_t)i;
	return 0;
}

/* Names that came with the trace, which are of the address as it is. */
static const struct trace_name *given_name(const struct frames *f, vaddr addr)
{
	const struct trace_info *info = trace_info(f->trace);
	size_t low = BISECT(middle, 0, info->n_names,
			    f->given[middle]->addr < addr);

	if (low < info->n_names && f->given[low]->addr == addr)
		return f->given[low];
	return NULL;
}

static void name_given(const struct trace_name *n, struct named_frame *frame,
		       struct frame_function *ret)
{
	const char *base = base_name(&n->file);

	frame->line = n->line;
	ret->name = escaped(n->function.text, n->function.len);
	ret->object = escaped(base, strlen(base));
	ret->file = escaped(n->file.text, n->file.len);
	ret->named = true;
}

static uint32_t add_frame(struct frames *f, struct named_frame *frame,
			  struct frame_function *function)
{
	frame->function = intern(f, frame->module, function);
	MEM_PUSH(f->frames, f->n_frames, f->cap_frames) = *frame;
	return (uint32_t)f->n_frames - 1;
}

/* As a programmer wrote it, if it is a name of C++ or Rust. */
static char *readable(const char *name, size_t n)
{
	AUTO_FREE char *copy = mem_alloc(n + 1);
	struct str s;
	char *ret;

	memcpy(copy, name, n);
	copy[n] = '\0';
	str_init(&s);
	ret = demangle(copy, &s) ? escaped(s.text, s.len)
				 : escaped(name, n);
	str_fini(&s);
	return ret;
}

/* By the symbol table, else the place in the object. */
static void name_by_symbol(struct frames *f, const struct trace_module *m,
			   uint64_t at, struct frame_function *ret)
{
	struct frame_object *o =
		&f->objects[m - trace_info(f->trace)->modules];
	const struct object_symbol *s;
	const char *base = base_name(&m->path);

	if (!o->tried)
		load_object(f, o, m);
	s = find_symbol(o, at);
	if (s) {
		ret->name = readable(s->name, s->len);
		ret->named = true;
		return;
	}
	AUTO_FREE char *object = escaped(base, strlen(base));

	ret->name = mem_printf("%s+0x%" PRIx64, object, at + 1);
}

/* What is known of one of the functions; the last has a symbol. */
static uint32_t add_place(struct frames *f, struct named_frame *frame,
			  const struct line_place *place)
{
	const struct trace_module *m =
		&trace_info(f->trace)->modules[frame->module - 1];
	struct frame_function function = { .name = NULL };
	const char *base = base_name(&m->path);

	if (place->linkage) {
		function.name = readable(place->linkage,
					 strlen(place->linkage));
		function.named = true;
	} else if (place->function) {
		function.name = escaped(place->function,
					strlen(place->function));
		function.named = true;
	} else {
		name_by_symbol(f, m, frame->addr - m->bias - 1, &function);
	}
	if (place->file)
		base = file_base_name(place->file);
	function.object = escaped(base, strlen(base));
	function.file = place->file
		? escaped(place->file, strlen(place->file))
		: mem_strdup("");
	frame->line = place->line;
	return add_frame(f, frame, &function);
}

/* All functions that an address of an object is in, innermost first. */
static uint32_t add_places(struct frames *f, vaddr addr, uint32_t module)
{
	const struct trace_module *m =
		&trace_info(f->trace)->modules[module - 1];
	struct line_place places[LINES_MAX] = { { .function = NULL } };
	/* A return address is behind its call, perhaps in the next function. */
	uint64_t at = addr - m->bias - 1;
	uint32_t ret = (uint32_t)f->n_frames;
	size_t n = 0;

	if (m->path.text[0] == '/')
		n = lines_at(f->lines, debug_of_file(f->debug, m->path.text,
			(const uint8_t *)m->build_id.text,
			(unsigned)m->build_id.len), at, places);
	for (size_t i = 0; i < max_u64(n, 1); i++) {
		struct named_frame frame = {
			.addr = addr, .module = module, .first = !i,
			.inlined = i + 1 < n,
		};

		add_place(f, &frame, &places[i]);
	}
	return ret;
}

static uint32_t new_frame(struct frames *f, vaddr addr)
{
	struct named_frame frame = { .addr = addr, .first = true };
	struct frame_function function = { .name = NULL };
	const struct trace_name *given = given_name(f, addr);

	frame.module = module_of(f, addr);
	if (given) {
		name_given(given, &frame, &function);
	} else if (frame.module) {
		return add_places(f, addr, frame.module);
	} else {
		function.name = mem_printf("0x%" PRIx64, addr);
		function.object = mem_strdup("");
		function.file = mem_strdup("");
	}
	return add_frame(f, &frame, &function);
}

uint32_t frames_find(struct frames *f, vaddr addr)
{
	/* No key is 0. */
	uint32_t *at = addr + 1 ? map_at(&f->by_addr, addr + 1) : &f->of_last;

	if (!*at)
		*at = new_frame(f, addr) + 1;
	return *at - 1;
}

static int compare_names(const void *a, const void *b)
{
	const struct trace_name *x = *(const struct trace_name *const *)a;
	const struct trace_name *y = *(const struct trace_name *const *)b;

	return ORDER(x->addr, y->addr) ?: ORDER(x, y);
}

static void sort_given(struct frames *f)
{
	const struct trace_info *info = trace_info(f->trace);

	f->given = mem_alloc((info->n_names + 1) * sizeof(*f->given));
	for (size_t i = 0; i < info->n_names; i++)
		f->given[i] = &info->names[i];
	SORT(f->given, info->n_names, compare_names);
}

void frames_init(struct frames *f, struct trace *trace,
		 const struct target_options *options)
{
	*f = (struct frames){
		.trace = trace,
		.options = options,
		.debug = debug_new(NULL, options),
		.lines = lines_new(),
		.n_by_name = FIRST_BUCKETS,
	};
	f->by_name = mem_zalloc(f->n_by_name * sizeof(*f->by_name));
	f->objects = mem_zalloc((trace_info(trace)->n_modules + 1) *
				sizeof(*f->objects));
	sort_given(f);
}

void frames_fini(struct frames *f)
{
	for (size_t i = 0; i < f->n_functions; i++)
		free_function(&f->functions[i]);
	for (size_t i = 0; i < trace_info(f->trace)->n_modules; i++) {
		if (f->objects[i].data)
			munmap(f->objects[i].data, f->objects[i].size);
		free(f->objects[i].symbols);
	}
	lines_free(f->lines);
	debug_free(f->debug);
	free(f->objects);
	free(f->given);
	free(f->frames);
	free(f->functions);
	map_fini(&f->by_addr);
	free(f->by_name);
	*f = (struct frames){ .trace = NULL };
}
