/* SPDX-License-Identifier: MIT */
/*
 * The values of one PHP heap and who refers to whom.
 *
 * Vocabulary.  A *node* is a value: a string, an array with its elements, an
 * object, a function; its *own* blocks are those that nobody else has.  A
 * *root* is a variable: a global, a static property, a local variable of a
 * call.  Roots are made one after the other; what php_follow() is called with
 * belongs to the last one.  php_drain() then goes on from value to value, in
 * the order in which they were found, so that a node's *parent* is on a
 * shortest way to it.
 *
 * A value need not be a block: functions lie inside the compiler's arena, and
 * what opcache shares is in no heap at all.
 *
 * The target lies.  A value is one only if its own type is what is expected,
 * and everything that is read is paid from steps.  When they are used up, or
 * there are too many values, the rest is not looked at, and cut says so.
 *
 * Within analysis/ only.
 */
#ifndef ANALYSIS_PHP_GRAPH_H
#define ANALYSIS_PHP_GRAPH_H

#include "analysis/index.h"
#include "analysis/php_layout.h"
#include "base/map.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

enum php_kind {
	PHP_KIND_NONE,		/* nobody refers to it */
	PHP_KIND_STRING,
	PHP_KIND_ARRAY,		/* with its elements */
	PHP_KIND_OBJECT,
	PHP_KIND_REFERENCE,
	PHP_KIND_RESOURCE,
	PHP_KIND_AST,		/* a constant expression */
	PHP_KIND_FUNCTION,	/* compiled: methods and closures too */
	PHP_KIND_CODE,		/* opcodes, names, constants */
	PHP_KIND_ARENA,		/* the compiler's: classes, functions */
	PHP_KIND_STACK,		/* of calls */
	PHP_KIND_ENGINE,	/* the engine's own */
	PHP_KIND_OPAQUE,	/* something of an extension */
};
enum { PHP_KINDS = 13 };

enum php_root_kind {
	PHP_ROOT_GLOBAL,	/* name: of the variable */
	PHP_ROOT_STATIC,	/* owner: its class; name: of the property */
	PHP_ROOT_STATIC_VAR,	/* owner: its function */
	PHP_ROOT_LOCAL,		/* the same; frame */
	PHP_ROOT_ARGUMENT,	/* without a name */
	PHP_ROOT_THIS,
	PHP_ROOT_TEMPORARY,
	PHP_ROOT_CONSTANT,	/* name: its own */
	PHP_ROOT_CLASS_CONSTANT,
	PHP_ROOT_HANDLER,	/* of errors and exceptions */
	PHP_ROOT_RESOURCE,
	/* Of second rank: what of the above is also theirs is not theirs. */
	PHP_ROOT_CODE,		/* classes and functions */
	PHP_ROOT_ENGINE,
	PHP_ROOT_NATIVE,	/* owner: address of the word */
	PHP_ROOT_GARBAGE,	/* only the list of all objects has it */
};
#define PHP_FIRST_RANK PHP_ROOT_CODE

struct php_root {
	enum php_root_kind kind;
	bool left;		/* a call that was given up */
	vaddr owner, name;
	uint32_t first;		/* in root_dst */
};

#define PHP_ROOT_BIT (UINT32_C(1) << 31)

struct php_node {
	vaddr addr;
	uint64_t bytes;		/* of its own blocks */
	uint32_t parent;	/* a node, or PHP_ROOT_BIT | root; 0: none */
	uint32_t blocks;
	enum php_kind kind;
};

enum php_class_kind {
	PHP_PLAIN, PHP_CLOSURE, PHP_GENERATOR, PHP_FIBER
};

/* What is known of a class that objects have. */
struct php_class {
	vaddr entry;
	uint32_t n_props;
	enum php_class_kind kind;
	bool internal;
	bool good;
};

struct php_graph {
	struct space *sp;	/* borrowed, as the next three */
	struct heap *heap;
	const struct index *ix;
	const struct php_layout *at;
	vaddr map_base;		/* of map pointers; 0: not known */
	uint64_t *mine;		/* owned: bits by number: blocks of the heap */
	uint32_t *owner;	/* owned: node by number of a block */
	struct php_node *nodes;	/* owned; from 1 on */
	size_t n, cap;
	uint32_t *slots;	/* owned: nodes by hash of address */
	size_t n_slots;
	uint32_t *off;		/* owned: where a node's edges begin; n + 1 */
	size_t n_off, cap_off;
	uint32_t *dst;		/* owned */
	size_t n_dst, cap_dst;
	struct php_root *roots;	/* owned */
	size_t n_roots, cap_roots;
	uint32_t *root_dst;	/* owned */
	size_t n_root_dst, cap_root_dst;
	struct map by_entry;	/* of classes; its numbers are one more */
	struct php_class *classes;	/* owned */
	size_t n_classes, cap_classes;
	uint32_t from;		/* node whose edges are made; 0: a root */
	uint32_t done;		/* nodes below have their edges */
	bool code;		/* follow what nobody counts, too */
	uint64_t max_nodes;	/* as many as memory has room for */
	uint64_t steps;		/* left */
	bool cut;
};

/* arena: of the heap; steps for all that is read. */
void php_graph_init(struct php_graph *g, struct space *sp, struct heap *h,
		    const struct index *ix, uint32_t arena,
		    const struct php_layout *at);
void php_graph_fini(struct php_graph *g);

/* Pays for n steps; false if there are none left. */
bool php_pay(struct php_graph *g, uint64_t n);

void php_root(struct php_graph *g, enum php_root_kind kind, vaddr owner,
	      vaddr name);
/* A node that no value refers to: what is in it, roots have. */
uint32_t php_reserve(struct php_graph *g, vaddr addr, enum php_kind kind);
/* The last root, or the node that is looked at, refers to this. */
uint32_t php_follow(struct php_graph *g, vaddr addr, enum php_kind kind);
/* The same for a zval: value and the word of its type. */
void php_follow_zval(struct php_graph *g, uint64_t value, uint32_t type);
void php_follow_zvals(struct php_graph *g, vaddr addr, uint64_t n);
/* Whatever a word points to, by its shape; false if that is no block. */
bool php_follow_word(struct php_graph *g, vaddr word);
void php_drain(struct php_graph *g);

/* The node that has this address; 0 if there is none. */
uint32_t php_node_at(const struct php_graph *g, vaddr addr);
/* Number of the block in use of this heap that holds addr; 0: none. */
uint32_t php_block(const struct php_graph *g, vaddr addr);
vaddr php_block_start(const struct php_graph *g, vaddr addr);
uint64_t php_block_bytes(const struct php_graph *g, vaddr addr);
/* The block that begins at addr is node's; no if somebody has it. */
bool php_claim(struct php_graph *g, uint32_t node, vaddr addr);

/* Where a map pointer leads to; 0: nowhere. */
vaddr php_map(struct php_graph *g, uint64_t pointer);

/* The class of an object's entry; NULL if it is none. */
const struct php_class *php_class_at(struct php_graph *g, vaddr entry);

/* The elements of an array. */
struct php_table {
	struct php_graph *g;
	vaddr data;		/* the block they are in */
	vaddr at;		/* of the first */
	uint32_t used, count, size, i;
	uint32_t each;		/* bytes */
	uint32_t n_buffer, first_buffer;
	uint8_t buffer[4096];
};

struct php_element {
	vaddr key;		/* a string; 0: hash is the index */
	uint64_t hash;
	uint64_t value;		/* of a zval that is not empty */
	uint32_t type;
};

/* False if there are none, or it is no array. */
bool php_table_open(struct php_table *t, struct php_graph *g, vaddr array);
bool php_table_next(struct php_table *t, struct php_element *ret);

#endif
