/* SPDX-License-Identifier: MIT */
/*
 * Types and variables that debug information describes.
 *
 * Vocabulary.  A *type* is a number; DWARF_NO_TYPE is none (void, unknown).
 * Typedefs and const, volatile and the like are seen through.  Structures,
 * classes and unions are told apart by their qualified name and size: all
 * units and modules that describe the same one share a number, and a
 * declaration is the definition that some unit has.  Names are as compilers
 * write them, but "> >" is always ">>".
 *
 * How it is read.  dwarf_types_add() passes once over the entries of a module
 * and notes where aggregates and variables with an address are: 20 million
 * entries a second.  Members are read when somebody asks for them.
 *
 * The file is as little to be trusted as the core.  Entries are only followed
 * forwards, references at most DWARF_MAX_CHAIN of them, and every list has an
 * end that is known before it is read.  What is out of bounds is left out and
 * counted.
 *
 * Source: DWARF Debugging Information Format 4 and 5; names of entries by
 * gcc 12 and clang 14.
 */
#ifndef COREWALK_DWARF_TYPES_H
#define COREWALK_DWARF_TYPES_H

#include <elfutils/libdw.h>

#include "base/map.h"
#include "base/str.h"
#include "base/types.h"

enum {
	DWARF_NO_TYPE = 0,
	DWARF_MAX_CHAIN = 32,	/* references in a row, scopes in a scope */
	DWARF_MAX_TYPES = 1 << 26,
	DWARF_MAX_MEMBERS = 1 << 16,	/* of one aggregate */
	DWARF_MAX_ARGS = 64,	/* of one template */
};

enum dtype_kind {
	DTYPE_NONE,
	DTYPE_SCALAR,		/* numbers, enumerations, pointers to members */
	DTYPE_CHAR,		/* one byte */
	DTYPE_POINTER,		/* references too */
	DTYPE_FUNCTION,
	DTYPE_STRUCT,		/* classes too */
	DTYPE_UNION,
	DTYPE_ARRAY,
};

enum dtype_flag {
	DTYPE_LOADED = 1 << 0,
	DTYPE_VIRTUAL = 1 << 1,	/* has a vtable */
	DTYPE_FLOAT = 1 << 2,
	DTYPE_SIGNED = 1 << 3,
	DTYPE_FLEXIBLE = 1 << 4,	/* ends in an array with no bound */
	DTYPE_REFERENCE = 1 << 5,
};

/* Of an array that says no bound n is 0. */
struct dtype {
	uint64_t size;		/* bytes; 0 not known */
	uint64_t n;		/* DTYPE_ARRAY: elements */
	uint32_t target;	/* of a pointer; of an array's elements */
	uint32_t name;		/* see dwarf_type_name; 0 none */
	uint32_t members, n_members;	/* when loaded: of t.members */
	uint32_t args, n_args;	/* when loaded: of t.args */
	uint32_t same_name;	/* another one of this name; 0 none */
	Dwarf_Die die;		/* where members are; no addr: nowhere */
	uint8_t kind;		/* enum dtype_kind */
	uint8_t flags;		/* enum dtype_flag */
};

struct dmember {
	const char *name;	/* borrowed from the Dwarf; "" if it has none */
	uint64_t off;
	uint32_t type;
	uint8_t bits;		/* of a bit field; else 0 */
	uint8_t bit;		/* where in off it begins */
	bool base;		/* the part that a base class is */
};

/* A variable with an address of its own. */
struct dvar {
	vaddr addr;		/* in the target; of a TLS one: its offset */
	void *die;
	uint32_t file;		/* of dwarf_types.files */
	uint32_t scope;		/* a name; 0 none */
	bool tls;
};

/* A part of a qualified name: a namespace, class, function or type. */
struct dwarf_name {
	const char *text;	/* borrowed from the Dwarf, or static */
	uint32_t scope;		/* what it is in; 0 nothing */
	uint32_t type;		/* first one of that name; 0 none yet */
	uint32_t file;
	void *die;		/* its first definition; NULL none */
	bool alias;		/* that is a typedef: a tag of C comes first */
};

struct dwarf_file {
	Dwarf *dw;		/* borrowed */
	vaddr bias;
	uint32_t module;
};

struct dwarf_types {
	struct dtype *types;	/* owned; 0 is none */
	size_t n_types, cap_types;
	struct dmember *members;	/* owned */
	size_t n_members, cap_members;
	uint32_t *args;		/* owned; types of template arguments */
	size_t n_args, cap_args;
	struct dvar *vars;	/* owned; in the order of the files */
	size_t n_vars, cap_vars;
	struct dwarf_file *files;	/* owned */
	size_t n_files, cap_files;
	struct dwarf_name *names;	/* owned; 0 is none */
	size_t n_names, cap_names;
	uint32_t *slots;	/* owned: hash table of names */
	size_t n_slots;
	struct map entries;	/* aggregates' entries to names */
	struct map known;		/* entries to types */
	struct map classes;	/* hashes of mangled names to names */
	bool classes_known;
	struct map derived;	/* pointers and arrays, by target */
	uint64_t n_entries;	/* visited */
	uint64_t budget;	/* entries still to be visited */
	uint64_t n_skipped;	/* left out: a bound, a broken entry */
	uint64_t n_split;	/* units whose entries are in .dwo files */
	unsigned word;		/* bytes of a pointer: of the last module */
	unsigned depth;		/* of the type that is being made */
};

void dwarf_types_init(struct dwarf_types *t);
void dwarf_types_fini(struct dwarf_types *t);

/*
 * Note what dw describes; false if nothing.  dw must outlive t.  bias is added
 * to addresses.  The bytes of its units bound the work.
 */
bool dwarf_types_add(struct dwarf_types *t, Dwarf *dw, vaddr bias,
		     uint32_t module);

/* Of an entry of a type. */
uint32_t dwarf_type_of_entry(struct dwarf_types *t, const Dwarf_Die *die);
/* What the DW_AT_type of an entry leads to. */
uint32_t dwarf_type_of(struct dwarf_types *t, Dwarf_Die *die);
uint32_t dwarf_var_type(struct dwarf_types *t, const struct dvar *v);

/* The members are read now, if they were not before. */
const struct dtype *dwarf_type(struct dwarf_types *t, uint32_t type);

/* That of a type without its members. */
static inline const struct dtype *dwarf_type_head(const struct dwarf_types *t,
						  uint32_t type)
{
	return &t->types[type < t->n_types ? type : 0];
}

/* Bytes that one takes; 0 not known. */
static inline uint64_t dwarf_type_size(const struct dwarf_types *t,
				       uint32_t type)
{
	return dwarf_type_head(t, type)->size;
}

/*
 * The member of that name, also of a base or of a part without a name; its
 * offset is then that in type.  False if there is none.
 */
bool dwarf_find_member(struct dwarf_types *t, uint32_t type, const char *name,
		       size_t len, struct dmember *ret);

/* To the next sibling; false behind the last, and if it lies before. */
static inline bool dwarf_forward(Dwarf_Die *die)
{
	Dwarf_Die next;

	if (dwarf_siblingof(die, &next) ||
	    (char *)next.addr <= (char *)die->addr)
		return false;
	*die = next;
	return true;
}

uint32_t dwarf_pointer_to(struct dwarf_types *t, uint32_t target);

/* Adds "std::map<int, Foo>", "Foo *", "Foo [12]". */
void dwarf_type_name(struct dwarf_types *t, uint32_t type, struct str *s);

/*
 * The class with that name in the form of its type information ("3Foo",
 * "N2ns3FooE"); 0 if none.
 */
uint32_t dwarf_find_class(struct dwarf_types *t, const char *mangled);

/*
 * The aggregate, typedef or enumeration of that qualified name; 0 if none.
 * Blanks between ">" do not count.
 */
uint32_t dwarf_find_type(struct dwarf_types *t, const char *name, size_t len);

#endif
