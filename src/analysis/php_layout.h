/* SPDX-License-Identifier: MIT */
/*
 * Where the engine of PHP keeps what: offsets in its structures by the number
 * of its API.  From the headers of Debian's packages of 7.4, 8.2, 8.4 and 8.5,
 * compiled; docs/allocators/zendmm.md says what was tried.
 */
#ifndef ANALYSIS_PHP_LAYOUT_H
#define ANALYSIS_PHP_LAYOUT_H

#include "base/types.h"

/* Types of values, in the low bits of the word behind a count. */
enum {
	PHP_STRING = 6, PHP_ARRAY, PHP_OBJECT, PHP_RESOURCE, PHP_REFERENCE,
	PHP_AST,
	PHP_TYPE_MASK = 15,
	/* Above it: where the collector has it; no string, no reference. */
	PHP_COLLECTOR_SHIFT = 10,
	PHP_COUNTED = 1 << 8,	/* in a zval: somebody counts it */
	PHP_IMMUTABLE = 1 << 6,	/* in a value: nobody does */
};

/* What is at the same place in all releases. */
enum {
	PHP_ZVAL = 16, PHP_ZVAL_TYPE = 8,
	PHP_STRING_LEN = 16, PHP_STRING_BYTES = 24,
	PHP_ARRAY_BYTES = 56, PHP_ARRAY_FLAGS = 8, PHP_ARRAY_MASK = 12,
	PHP_ARRAY_DATA = 16, PHP_ARRAY_USED = 24, PHP_ARRAY_COUNT = 28,
	PHP_ARRAY_SIZE = 32,
	PHP_ARRAY_PACKED = 1 << 2, PHP_ARRAY_EMPTY = 1 << 3,	/* flags */
	PHP_BUCKET = 32, PHP_BUCKET_HASH = 16, PHP_BUCKET_KEY = 24,
	PHP_OBJECT_CLASS = 16, PHP_OBJECT_HANDLERS = 24,
	PHP_OBJECT_DYNAMIC = 32, PHP_OBJECT_BYTES = 40,
	PHP_REFERENCE_VALUE = 8, PHP_REFERENCE_BYTES = 32,
	PHP_CLASS_NAME = 8, PHP_CLASS_FLAGS = 28,
	PHP_FUNCTION_NAME = 8, PHP_FUNCTION_SCOPE = 16,
	PHP_FUNCTION_PARAMS = 32,
	PHP_INTERNAL = 1, PHP_USER,	/* a class's or function's first byte */
	PHP_OP = 32, PHP_OP_LINE = 24,
	PHP_FRAME = 80, PHP_FRAME_CALL = 8, PHP_FRAME_FUNCTION = 24,
	PHP_FRAME_THIS = 32, PHP_FRAME_INFO = 40, PHP_FRAME_ARGS = 44,
	PHP_FRAME_PREV = 48, PHP_FRAME_SYMBOLS = 56, PHP_FRAME_NAMED = 72,
	PHP_STACK_TOP = 0, PHP_STACK_PREV = 16,
	PHP_STACK_FIRST = 32,	/* frame */
	PHP_PROPERTY_FLAGS = 4, PHP_PROPERTY_NAME = 8,
	PHP_STATIC = 1 << 4,	/* of a property's flags */
	PHP_EG_SYMBOLS = 304, PHP_EG_FILES = 360,
	PHP_CG_FUNCTIONS = 56,
	PHP_CLOSURE_FUNCTION = 56,
};

struct php_layout {
	uint32_t api;
	uint8_t indirect;	/* types of zvals: to a zval, */
	uint8_t pointer;	/* to anything */
	uint8_t packed;		/* bytes of an element of a packed array */
	bool map_twice;		/* an even map pointer is one to a pointer */
	/* executor_globals */
	uint16_t functions;	/* and classes, constants behind it */
	uint16_t stack;		/* its top; end and page behind it */
	uint16_t frame;
	uint16_t resources;
	uint16_t handlers;	/* for errors; for exceptions behind it */
	uint16_t objects;
	/* compiler_globals */
	uint16_t arena;		/* interned strings behind it */
	uint16_t map_base;
	/* zend_class_entry */
	uint16_t n_props;	/* then of statics */
	uint16_t props;		/* table, of statics, map pointer to those; */
				/* methods, properties, constants */
	/* zend_op_array */
	uint16_t function_size;
	uint16_t n_vars, temps;
	uint16_t opcodes, vars;
	uint16_t statics;	/* a map pointer before it */
	uint16_t live;		/* how many of them before it */
	uint16_t file;
	uint16_t n_inner, inner;	/* functions; 0: none */
	/* zend_property_info */
	uint16_t property_class;
	/* zend_class_constant */
	uint16_t constant_class;
	/* zend_generator, zend_fiber, zend_resource */
	uint16_t generator_frame, generator_value;
	uint16_t fiber_stack;
	uint16_t resource;
};

enum {
	PHP_STATIC_MAP = 16, PHP_METHODS = 24,
	PHP_PROPERTIES = 80, PHP_CONSTANTS = 136,	/* behind props */
};

/* NULL if none is known. */
const struct php_layout *php_layout(uint32_t api);
/* All of them, ended by one with api 0. */
extern const struct php_layout php_layouts[];

#endif
