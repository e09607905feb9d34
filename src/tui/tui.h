/* SPDX-License-Identifier: MIT */
/*
 * The browser: a stack of pages over the tables of a report.
 *
 * A *source* is what is looked at: it makes the tables that a page wants, and
 * computes what they need on the first visit.  Keys come from a terminal or
 * from a script, and do the same.
 */
#ifndef TUI_TUI_H
#define TUI_TUI_H

#include "base/err.h"
#include "report/report.h"
#include "tui/keys.h"
#include "tui/page.h"
#include "tui/screen.h"
#include "tui/view.h"

struct tui;

struct tui_source {
	const struct report_kind *kind;
	const struct view *views;
	size_t n_views;
	const vaddr *view_at;	/* for build, by view; NULL: 0 */
	size_t first_rows;	/* of tables of the first view; 0: all */
	bool redact;		/* no page has content of the process */
	void *context;
	/*
	 * The tables of r->options->sections; at: of SECTION_AT.  With
	 * r->options->glance nothing is computed that is not known already.
	 */
	bool (*build)(void *context, struct report *r, vaddr at,
		      struct err *err);
	/*
	 * Is a page of an address made at a glance first, since the rest takes
	 * long?  NULL: no.
	 */
	bool (*takes_long)(void *context);
	/* Another number when the first page can say more; or NULL. */
	unsigned (*knowledge)(void *context);
	/*
	 * Looks at the target anew, and what is built with the kind report_diff
	 * is the difference to the look before; or NULL.
	 */
	bool (*look)(void *context, struct err *err);
	/* For pictures of mappings; or NULL. */
	const struct heat_source *heat;
	/* Where a row of a page leads. */
	void (*goal)(void *context, const struct page *p,
		     const struct table *t, const struct cell *row,
		     struct goal *ret);
	/* What is said where a row leads nowhere; NULL: its columns are all. */
	const char *nowhere;
	/* A key of its own; true: it was one.  Or NULL, like what follows. */
	bool (*key)(void *context, struct tui *t, enum action action, int code);
	/* Draws above a page's tables, from a line on; how many lines. */
	int (*picture)(void *context, struct tui *t, int y);
	/* The keys that matter on a page; NULL: those of all pages. */
	const char *(*foot)(void *context, const struct page *p);
	/* What blocks can be listed from, with what a filter asks for. */
	const struct report_input *(*blocks)(void *context, const char *filter,
					     struct err *err);
};

enum { TUI_DEPTH = 64, TUI_VIEWS = 9, TUI_SPLIT = 110 };
/* Lines of the screen above and below a page. */
enum { TUI_TOP = 3, TUI_BELOW = 2 };

enum tui_mode {
	TUI_PAGE,
	TUI_PROMPT,
	TUI_HELP,
};

struct tui {
	const struct tui_source *source;	/* borrowed */
	struct screen screen;
	struct page *root[TUI_VIEWS];	/* owned; NULL: not visited */
	unsigned knew;			/* the first one */
	size_t view;
	struct page *stack[TUI_DEPTH];	/* owned; above the root */
	size_t depth;
	enum tui_mode mode;
	char prompt;			/* '/', 'f', ':' or 'e' */
	struct str typed, sought;
	struct str message;		/* until the next key */
	bool is_warning;
	uint64_t top;			/* of the help */
	size_t help_view;		/* its cursor */
	struct page *side;		/* owned; the pane beside the page */
	uint64_t side_line;		/* of the page, whose it is */
	bool in_side;			/* keys go there */
	struct heat *kept;		/* owned; the largest that was beside */
	bool exact, no_bars, utf8;
	bool residency;			/* pictures show it */
	bool mouse;			/* is listened to */
	bool click_opened;		/* the last one did what Enter does */
	int page_top;			/* line of the screen: the first */
	bool interactive;		/* not from a script */
	bool redraw;			/* all of it */
	uint64_t slowest_us;		/* of a script's keys */
	bool done;
};

void tui_init(struct tui *t, const struct tui_source *source, bool utf8,
	      int w, int h);
void tui_fini(struct tui *t);

/* One key; afterwards the screen is drawn. */
void tui_key(struct tui *t, int code);
void tui_resize(struct tui *t, int w, int h);
void tui_draw(struct tui *t);
struct page *tui_page(const struct tui *t);
/* The one with the cursor: the page, or what is beside it. */
struct page *tui_active(const struct tui *t);

/* In the message line, now: what is being computed. */
void tui_say(struct tui *t, bool warning, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

/*
 * Keys from a file, screens to o.  A line is keys, as in keys_parse(), but
 * ":screen NAME" prints what is to be seen, ":roles NAME" a letter for how
 * each cell looks, ":time NAME" how long the slowest key took since the last
 * one, ":size WxH" changes the size, and "#" begins a comment.
 */
bool tui_script(struct tui *t, const char *path, struct out *o,
		struct err *err) MUST_CHECK;

/* Keys from the terminal, which is open, until the end. */
void tui_loop(struct tui *t);

/*
 * Before what takes long: Ctrl-C ends it, and then this is false.  Until the
 * end of the key.
 */
bool tui_may_compute(struct tui *t);

/* actions.c: for tui_key() */
void tui_run_prompt(struct tui *t);
void tui_enter(struct tui *t);
void tui_show_row(struct tui *t);
/* What has changed since the look before. */
void tui_push_difference(struct tui *t);
/* Of the branch under the cursor; DO_ENTER: the other way. */
void tui_branch(struct tui *t, enum action action);
void tui_lay_out(struct tui *t, struct page *p);

/* mouse.c: on or off; its keys, in the page or the help */
void tui_switch_mouse(struct tui *t);
bool tui_mouse_key(struct tui *t, int code);
void tui_go_to_view(struct tui *t, size_t view);
int tui_page_height(const struct tui *t);

/* side.c: from TUI_SPLIT columns on, what is behind the row under the cursor */
int tui_page_width(const struct tui *t);
/* Made when it is asked for; NULL if there is nothing to show. */
struct page *tui_side(struct tui *t);
/* The page has changed. */
void tui_drop_side(struct tui *t);
/* A page with the picture of a mapping. */
struct page *tui_picture(struct tui *t, vaddr start, vaddr end);

struct page_look tui_look(const struct tui *t);
void tui_free_page(struct page *p);
struct page *tui_new_page(struct tui *t, const char *name, unsigned sections);
/* A page's tables anew, with the order and the cursor that it has. */
void tui_refresh_page(struct tui *t, struct page *p);
/* All that is shown is made anew, for what it is made of has changed. */
void tui_refresh(struct tui *t);
/* Built and laid out; else NULL, and the message says why. */
struct page *tui_make_page(struct tui *t, const char *name, unsigned sections,
			   vaddr at);
struct page *tui_make_blocks(struct tui *t, const char *filter);

#endif
