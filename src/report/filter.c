/* SPDX-License-Identifier: MIT */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "report/filter.h"

#include <ctype.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

enum filter_op {
	OP_EQ,
	OP_NE,
	OP_LT,
	OP_GT,
	OP_LE,
	OP_GE,
	OP_MATCH,
	OP_NONE,	/* a bare flag */
};

/* Longer ones first: "<=" must not be read as "<". */
static const struct {
	const char *text;
	enum filter_op op;
} operators[] = {
	{ "!=", OP_NE }, { "<=", OP_LE }, { ">=", OP_GE }, { "=", OP_EQ },
	{ "<", OP_LT }, { ">", OP_GT }, { "~", OP_MATCH },
};

struct filter_term {
	size_t column;
	enum column_type type;
	enum filter_op op;
	bool negate;
	uint64_t u;
	int64_t i;
	double share;
	char *text;		/* owned; or NULL */
	size_t len;
	pcre2_code *code;	/* owned; or NULL */
	pcre2_match_data *match;	/* owned; or NULL */
	pcre2_match_context *limits;	/* owned; or NULL */
};

/*
 * A pattern such as (a*)*b needs exponential time.  One match may take this
 * many steps; a name that needs more does not match.
 */
enum { MATCH_LIMIT = 100000 };

struct parser {
	const char *what;
	const char *at;
	const struct column *columns;
	size_t n_columns;
	struct err *err;
};

static bool unknown_key(const struct parser *p, const char *key)
{
	struct str names;

	str_init(&names);
	column_names(p->columns, p->n_columns, &names);
	err_set(p->err, ERR_USAGE, "%s: unknown key '%.40s'", p->what, key);
	err_hint(p->err, "Known are %s.", names.text);
	str_fini(&names);
	return false;
}

static bool parse_key(struct parser *p, struct filter_term *term)
{
	const char *start = p->at;
	AUTO_FREE char *key = NULL;
	int column;

	while (isalnum((unsigned char)*p->at) || *p->at == '_')
		p->at++;
	if (p->at == start)
		return err_set(p->err, ERR_USAGE, "%s: no key at '%.40s'",
			       p->what, start);
	key = mem_printf("%.*s", (int)(p->at - start), start);
	column = column_find(p->columns, p->n_columns, key);
	if (column < 0)
		return unknown_key(p, key);
	term->column = (size_t)column;
	term->type = p->columns[column].type;
	return true;
}

static enum filter_op parse_operator(struct parser *p)
{
	for (size_t i = 0; i < countof(operators); i++) {
		size_t n = strlen(operators[i].text);

		if (!strncmp(p->at, operators[i].text, n)) {
			p->at += n;
			return operators[i].op;
		}
	}
	return OP_NONE;
}

/* Up to a blank, or between quotes; the caller frees it. */
static bool parse_value(struct parser *p, char **ret)
{
	char quote = *p->at;
	const char *start;
	const char *end;

	if (quote == '"' || quote == '\'') {
		start = p->at + 1;
		end = strchr(start, quote);
		if (!end)
			return err_set(p->err, ERR_USAGE,
				       "%s: no closing %c in '%.40s'", p->what,
				       quote, p->at);
		p->at = end + 1;
	} else {
		start = p->at;
		end = start + strcspn(start, " \t\n");
		p->at = end;
	}
	*ret = mem_printf("%.*s", (int)(end - start), start);
	return true;
}

static bool compile_pattern(const struct parser *p, struct filter_term *term,
			    const char *pattern)
{
	PCRE2_UCHAR message[160];
	PCRE2_SIZE offset;
	int code;

	term->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
				   PCRE2_NEVER_BACKSLASH_C, &code, &offset,
				   NULL);
	if (!term->code) {
		pcre2_get_error_message(code, message, sizeof(message));
		return err_set(p->err, ERR_USAGE, "%s: '%.60s': %s at %zu",
			       p->what, pattern, (char *)message, offset);
	}
	/* Without JIT it is slower, not wrong. */
	(void)pcre2_jit_compile(term->code, PCRE2_JIT_COMPLETE);
	term->match = pcre2_match_data_create(1, NULL);
	term->limits = pcre2_match_context_create(NULL);
	if (!term->match || !term->limits)
		return err_set(p->err, ERR_SYSTEM, "%s: out of memory",
			       p->what);
	pcre2_set_match_limit(term->limits, MATCH_LIMIT);
	return true;
}

static bool check_word(const struct parser *p, const struct column *column,
		       const char *value)
{
	struct str list;

	if (!column->words)
		return true;
	str_init(&list);
	for (const char *const *w = column->words; *w; w++) {
		if (!strcmp(*w, value)) {
			str_fini(&list);
			return true;
		}
		str_printf(&list, "%s%s", list.len ? ", " : "", *w);
	}
	err_set(p->err, ERR_USAGE, "%s: %s is never '%.40s'", p->what,
		column->key, value);
	err_hint(p->err, "It is one of %s.", list.text);
	str_fini(&list);
	return false;
}

static bool parse_share(const char *value, double *ret)
{
	char *end;
	double share = strtod(value, &end);

	if (end == value || !(share >= 0))
		return false;
	if (*end == '%') {
		share /= 100;
		end++;
	}
	*ret = share;
	return !*end;
}

static bool parse_signed(const char *value, int64_t *ret)
{
	bool minus = *value == '-';
	uint64_t u;

	if (!num_parse_size(value + minus, &u) || u > INT64_MAX)
		return false;
	*ret = minus ? -(int64_t)u : (int64_t)u;
	return true;
}

static bool parse_flag(const char *value, uint64_t *ret)
{
	*ret = !strcmp(value, "true") || !strcmp(value, "yes");
	return *ret || !strcmp(value, "false") || !strcmp(value, "no");
}

static bool parse_number(struct filter_term *term, const char *value)
{
	switch (term->type) {
	case COLUMN_ADDR:
		return num_parse_addr(value, &term->u);
	case COLUMN_SHARE:
	case COLUMN_SECONDS:
		return parse_share(value, &term->share);
	case COLUMN_SIGNED:
	case COLUMN_CHANGE:
	case COLUMN_CHANGE_COUNT:
		return parse_signed(value, &term->i);
	case COLUMN_FLAG:
		return term->op <= OP_NE && parse_flag(value, &term->u);
	case COLUMN_COUNT:
	case COLUMN_BYTES:
		return num_parse_size(value, &term->u) ||
		       num_parse_u64(value, &term->u);
	case COLUMN_TEXT:
		break;
	}
	return false;
}

static bool set_value(const struct parser *p, struct filter_term *term,
		      const char *value)
{
	const struct column *column = &p->columns[term->column];

	if (term->type != COLUMN_TEXT && term->op == OP_MATCH)
		return err_set(p->err, ERR_USAGE,
			       "%s: '%s' is a number: ~ is for words", p->what,
			       column->key);
	if (term->type != COLUMN_TEXT)
		return parse_number(term, value) ||
		       err_set(p->err, ERR_USAGE, "%s: '%.40s' is no value "
			       "for %s", p->what, value, column->key);
	if (term->op == OP_MATCH)
		return compile_pattern(p, term, value);
	if (term->op > OP_NE)
		return err_set(p->err, ERR_USAGE, "%s: '%s' is a word: it "
			       "knows = != and ~", p->what, column->key);
	term->text = mem_strdup(value);
	term->len = strlen(value);
	return check_word(p, column, value);
}

static bool parse_term(struct parser *p, struct filter_term *term)
{
	AUTO_FREE char *value = NULL;

	while (*p->at == '!') {
		term->negate = !term->negate;
		p->at++;
	}
	if (!parse_key(p, term))
		return false;
	term->op = parse_operator(p);
	if (term->op == OP_NONE) {
		if (term->type != COLUMN_FLAG)
			return err_set(p->err, ERR_USAGE, "%s: '%s' needs an "
				       "operator and a value", p->what,
				       p->columns[term->column].key);
	} else if (!parse_value(p, &value) || !set_value(p, term, value)) {
		return false;
	}
	if (*p->at && !isspace((unsigned char)*p->at))
		return err_set(p->err, ERR_USAGE, "%s: cannot read '%.40s'",
			       p->what, p->at);
	return true;
}

bool filter_compile(struct filter *f, const char *what, const char *expr,
		    const struct column *columns, size_t n_columns,
		    struct err *err)
{
	struct parser p = { what, expr, columns, n_columns, err };

	*f = (struct filter){ 0 };
	for (;;) {
		struct filter_term *term;

		while (isspace((unsigned char)*p.at))
			p.at++;
		if (!*p.at)
			break;
		term = &MEM_PUSH(f->terms, f->n_terms, f->cap_terms);
		*term = (struct filter_term){ 0 };
		if (!parse_term(&p, term)) {
			filter_fini(f);
			return false;
		}
	}
	return f->n_terms ||
	       err_set(err, ERR_USAGE, "%s: empty expression", what);
}

void filter_fini(struct filter *f)
{
	for (size_t i = 0; i < f->n_terms; i++) {
		free(f->terms[i].text);
		pcre2_code_free(f->terms[i].code);
		pcre2_match_data_free(f->terms[i].match);
		pcre2_match_context_free(f->terms[i].limits);
	}
	free(f->terms);
	*f = (struct filter){ 0 };
}

bool filter_uses(const struct filter *f, size_t column)
{
	for (size_t i = 0; i < f->n_terms; i++)
		if (f->terms[i].column == column)
			return true;
	return false;
}

/* -1, 0, 1 as the cell is below, at or above the term's value. */
static int compare(const struct filter_term *t, const struct cell *c)
{
	switch (t->type) {
	case COLUMN_SHARE:
	case COLUMN_SECONDS:
		return (c->share > t->share) - (c->share < t->share);
	case COLUMN_SIGNED:
	case COLUMN_CHANGE:
	case COLUMN_CHANGE_COUNT:
		return (c->i > t->i) - (c->i < t->i);
	default:
		return (c->u > t->u) - (c->u < t->u);
	}
}

static bool match_text(const struct filter_term *t, const char *text,
		       size_t len)
{
	if (!t->code)
		return (len == t->len && !memcmp(text, t->text, len)) ==
		       (t->op == OP_EQ);
	return pcre2_match(t->code, (PCRE2_SPTR)text, len, 0, 0, t->match,
			   t->limits) >= 0;
}

static bool match_known(const struct filter_term *t, const struct cell *c,
			const char *pool)
{
	if (t->type == COLUMN_TEXT)
		return match_text(t, pool + c->text.off, c->text.len);
	switch (t->op) {
	case OP_EQ:
		return compare(t, c) == 0;
	case OP_NE:
		return compare(t, c) != 0;
	case OP_LT:
		return compare(t, c) < 0;
	case OP_GT:
		return compare(t, c) > 0;
	case OP_LE:
		return compare(t, c) <= 0;
	case OP_GE:
		return compare(t, c) >= 0;
	default:
		return c->u;
	}
}

bool filter_match(const struct filter *f, const struct cell *cells,
		  const char *pool)
{
	for (size_t i = 0; i < f->n_terms; i++) {
		const struct filter_term *t = &f->terms[i];
		const struct cell *c = &cells[t->column];
		bool holds = c->known ? match_known(t, c, pool)
				      : t->op == OP_NE;

		if (holds == t->negate)
			return false;
	}
	return true;
}

const char *filter_library(void)
{
	static char version[64];
	char *blank;

	if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) > (int)sizeof(version))
		return "?";
	pcre2_config(PCRE2_CONFIG_VERSION, version);
	/* "10.42 2022-12-11": the date says nothing more. */
	blank = strchr(version, ' ');
	if (blank)
		*blank = '\0';
	return version;
}

/* The rows that stay, in their order; cells holds one row, shares derived. */
static void keep_rows(struct table *t, const struct filter *f,
		      struct cell *cells)
{
	struct cell *kept = mem_alloc(t->n_cells * sizeof(*kept));
	size_t n = 0;

	for (size_t i = 0; i < t->n_rows; i++) {
		for (size_t k = 0; k < t->n_columns; k++)
			cells[k] = table_cell(t, i, k);
		if (!filter_match(f, cells, t->pool.text))
			continue;
		memcpy(kept + n * t->n_columns, table_row_at(t, i),
		       t->n_columns * sizeof(*kept));
		/* Filters come before sorting: this never overtakes i. */
		if (t->inner)
			t->inner_rows[n] = t->inner_rows[i];
		n++;
	}
	t->n_inner = t->inner ? n : 0;
	free(t->cells);
	t->cells = kept;
	t->cap_cells = t->n_cells;
	t->n_cells = n * t->n_columns;
	t->n_rows = n;
}

/* Shares stay those of the whole, which is no sum of the rows. */
static void total_again(struct table *t)
{
	size_t n = t->n_columns;
	struct cell *before = mem_alloc(n * sizeof(*before));

	memcpy(before, t->total, n * sizeof(*before));
	table_add_total(t);
	for (size_t i = 0; i < n; i++) {
		const struct column *c = &t->columns[i];

		if (c->type == COLUMN_SHARE && c->whole &&
		    c->flags & COLUMN_OF_TOTAL &&
		    !(t->columns[c->whole - 1].flags & COLUMN_SUM))
			t->total[c->whole - 1] = before[c->whole - 1];
	}
	free(before);
}

void table_filter(struct table *t, const struct filter *f)
{
	struct cell *cells = mem_alloc(t->n_columns * sizeof(*cells));

	keep_rows(t, f, cells);
	free(cells);
	free(t->order);
	t->order = NULL;
	if (t->total)
		total_again(t);
}
