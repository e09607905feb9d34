/* SPDX-License-Identifier: MIT */
/* What a block of ZendMM looks like; that of real ones: sh/zend, sh/php. */
#include "analysis/php_shape.h"

#include <string.h>

#include "analysis/php_layout.h"
#include "unit/check.h"

/* "four", as zend_string_init() makes it, but for the word of its type. */
static uint32_t shape_of_string(uint32_t type)
{
	const uint32_t count = 1;
	const uint64_t len = 4;
	uint8_t bytes[32] = { 0 };

	memcpy(bytes, &count, sizeof(count));
	memcpy(bytes + 4, &type, sizeof(type));
	memcpy(bytes + PHP_STRING_LEN, &len, sizeof(len));
	memcpy(bytes + PHP_STRING_BYTES, "four", 5);
	return php_shape(NULL, bytes, sizeof(bytes));
}

TEST(a_string)
{
	CHECK(shape_of_string(PHP_STRING) == PHP_STRING);
	/* All of its flags. */
	CHECK(shape_of_string(PHP_STRING | 0x3f0) == PHP_STRING);
}

/* Objects of extensions begin with a pointer of theirs: SplDoublyLinkedList. */
TEST(an_address_is_no_string)
{
	CHECK(!shape_of_string(0x7f16));
}

TEST(an_address_is_no_reference)
{
	uint32_t words[8] = { 0x0c000040, PHP_REFERENCE };

	CHECK(php_shape(NULL, (const uint8_t *)words, sizeof(words)) ==
	      PHP_REFERENCE);
	words[1] = 0x7f1a;
	CHECK(!php_shape(NULL, (const uint8_t *)words, sizeof(words)));
}
