/* SPDX-License-Identifier: MIT */
#include "corewalk/cfi.h"

enum {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORM = 0x0f,

	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_APPLICATION = 0x70,

	PE_OMIT = 0xff,
};

const uint8_t *cfi_skip(struct cfi_cursor *c, uint64_t n)
{
	const uint8_t *at = c->at;

	if (c->failed || n > (uint64_t)(c->end - at)) {
		c->failed = true;
		return NULL;
	}
	c->at = at + n;
	return at;
}

uint64_t cfi_fixed(struct cfi_cursor *c, unsigned bytes)
{
	const uint8_t *p = cfi_skip(c, bytes);
	uint64_t value = 0;

	for (unsigned i = 0; p && i < bytes; i++)
		value |= (uint64_t)p[i] << 8 * i;
	return value;
}

uint64_t cfi_uleb(struct cfi_cursor *c)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		const uint8_t *p = cfi_skip(c, 1);

		if (!p)
			return 0;
		if (shift < 64)
			value |= (uint64_t)(*p & 0x7f) << shift;
		if (!(*p & 0x80))
			return value;
	}
}

int64_t cfi_sleb(struct cfi_cursor *c)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		const uint8_t *p = cfi_skip(c, 1);

		if (!p)
			return 0;
		if (shift < 64)
			value |= (uint64_t)(*p & 0x7f) << shift;
		if (*p & 0x80)
			continue;
		if (*p & 0x40 && shift + 7 < 64)
			value |= UINT64_MAX << (shift + 7);
		return (int64_t)value;
	}
}

static uint64_t form(struct cfi_cursor *c, unsigned encoding)
{
	switch (encoding & PE_FORM) {
	case PE_ABSPTR:
		return cfi_fixed(c, c->word);
	case PE_ULEB128:
		return cfi_uleb(c);
	case PE_UDATA2:
		return cfi_fixed(c, 2);
	case PE_UDATA4:
		return cfi_fixed(c, 4);
	case PE_UDATA8:
	case PE_SDATA8:
		return cfi_fixed(c, 8);
	case PE_SLEB128:
		return (uint64_t)cfi_sleb(c);
	case PE_SDATA2:
		return (uint64_t)(int16_t)cfi_fixed(c, 2);
	case PE_SDATA4:
		return (uint64_t)(int32_t)cfi_fixed(c, 4);
	}
	c->failed = true;
	return 0;
}

uint64_t cfi_pointer(struct cfi_cursor *c, unsigned encoding, vaddr here,
		     vaddr data)
{
	uint64_t value;

	if (encoding == PE_OMIT)
		return 0;
	value = form(c, encoding);
	switch (encoding & PE_APPLICATION) {
	case 0:
		break;
	case PE_PCREL:
		value += here;
		break;
	case PE_DATAREL:
		value += data;
		break;
	default:
		c->failed = true;
	}
	return c->word == 8 ? value : value & UINT32_MAX;
}
