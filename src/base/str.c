/* SPDX-License-Identifier: MIT */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static void str_reserve(struct str *s, size_t more)
{
	size_t need = s->len + more + 1;

	if (need <= s->cap)
		return;
	s->cap = need < 64 ? 64 : need * 2;
	s->text = mem_realloc(s->text, s->cap);
}

void str_init(struct str *s)
{
	*s = (struct str){ 0 };
	str_reserve(s, 0);
	s->text[0] = '\0';
}

void str_fini(struct str *s)
{
	free(s->text);
	*s = (struct str){ 0 };
}

void str_clear(struct str *s)
{
	s->len = 0;
	s->text[0] = '\0';
}

void str_add(struct str *s, const void *bytes, size_t n)
{
	str_reserve(s, n);
	memcpy(s->text + s->len, bytes, n);
	s->len += n;
	s->text[s->len] = '\0';
}

void str_adds(struct str *s, const char *text)
{
	str_add(s, text, strlen(text));
}

void str_addc(struct str *s, char c)
{
	str_add(s, &c, 1);
}

void str_printf(struct str *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	str_reserve(s, (size_t)n);
	va_start(ap, fmt);
	vsnprintf(s->text + s->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	s->len += (size_t)n;
}

static void add_harmless(struct str *s, const unsigned char *p, size_t n,
			 unsigned char never)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] >= 0x20 && p[i] < 0x7f && p[i] != never)
			str_addc(s, (char)p[i]);
		else
			str_printf(s, "\\x%02x", p[i]);
}

void str_add_escaped(struct str *s, const void *bytes, size_t n)
{
	add_harmless(s, bytes, n, '\\');
}

void str_add_name(struct str *s, const void *bytes, size_t n)
{
	add_harmless(s, bytes, n, 0);
}

char *str_take(struct str *s)
{
	char *text = s->text;

	*s = (struct str){ 0 };
	return text;
}
