/* SPDX-License-Identifier: MIT */
#include "tui/term.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "tui/keys.h"
#include "tui/undo.h"

/* The names of curses' keys are ours to translate, and nobody else's. */
static const struct {
	int theirs, ours;
} translated[] = {
	{ KEY_UP, KEY_ARROW_UP }, { KEY_DOWN, KEY_ARROW_DOWN },
	{ KEY_LEFT, KEY_ARROW_LEFT }, { KEY_RIGHT, KEY_ARROW_RIGHT },
	{ KEY_PPAGE, KEY_PAGE_UP }, { KEY_NPAGE, KEY_PAGE_DOWN },
	{ KEY_HOME, KEY_FIRST }, { KEY_END, KEY_LAST },
	{ KEY_BACKSPACE, KEY_BACK }, { KEY_BTAB, KEY_BACK_TAB },
	{ KEY_ENTER, KEY_RETURN }, { KEY_F(1), KEY_HELP_PAGE },
	{ KEY_RESIZE, KEY_RESIZED },
};

/* The state of the terminal: what is to be put back. */
static struct state {
	struct termios modes;
	char goodbye[512];
	size_t goodbye_len;
	volatile sig_atomic_t is_open, mouse_on;
} own_state, *state = &own_state;

static volatile sig_atomic_t is_busy, interrupted;
/* What curses sends to have clicks sent is not in terminfo everywhere. */
static const char mouse_off[] = "\33[?1000l\33[?1006l";
static SCREEN *curses;
static bool has_color;

static const int deadly[] = {
	SIGHUP, SIGTERM, SIGQUIT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT,
	SIGPIPE, SIGALRM, SIGXCPU,
};

/* Only functions that a handler may call. */
static void restore(void)
{
	if (!state->is_open)
		return;
	state->is_open = 0;
	if (state->mouse_on)
		(void)!write(STDOUT_FILENO, mouse_off, sizeof(mouse_off) - 1);
	(void)!write(STDOUT_FILENO, state->goodbye, state->goodbye_len);
	tcsetattr(STDIN_FILENO, TCSANOW, &state->modes);
}

void term_share(void)
{
	struct state *all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (all != MAP_FAILED)
		state = all;
}

void term_restore(void)
{
	/* A shell that has the terminal has put it back. */
	if (tcgetpgrp(STDIN_FILENO) == getpgrp())
		restore();
}

static void on_deadly(int sig)
{
	restore();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void on_interrupt(int sig)
{
	undo_on_interrupt();
	interrupted = 1;
	if (is_busy)
		on_deadly(sig);
}

static void catch(int sig, void (*handler)(int))
{
	struct sigaction act = { .sa_handler = handler };

	sigemptyset(&act.sa_mask);
	sigaction(sig, &act, NULL);
}

/* What leaves the mode of full screens, as plain bytes. */
static int add_byte(int c)
{
	if (state->goodbye_len < sizeof(state->goodbye))
		state->goodbye[state->goodbye_len++] = (char)c;
	return c;
}

static void prepare_goodbye(void)
{
	const char *parts[] = {
		exit_attribute_mode, orig_pair, keypad_local, cursor_normal,
		exit_ca_mode,
	};

	state->goodbye_len = 0;
	for (size_t i = 0; i < countof(parts); i++)
		if (parts[i])
			tputs(parts[i], 1, add_byte);
	if (!exit_ca_mode)
		add_byte('\n');
}

bool term_check(struct err *err)
{
	const char *term = getenv("TERM");
	int known;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		err_set(err, ERR_USAGE, "tui needs a terminal on standard "
			"input and output");
		return err_hint(err, "Without one, use heapcore analyze.");
	}
	if (!term || !*term)
		term = "";
	if (strcmp(term, "dumb") && *term &&
	    setupterm(term, STDOUT_FILENO, &known) == OK &&
	    cursor_address && clear_screen) {
		del_curterm(cur_term);
		return true;
	}
	if (!*term)
		err_set(err, ERR_USAGE, "TERM is not set: no terminal type");
	else if (!strcmp(term, "dumb"))
		err_set(err, ERR_USAGE, "terminal type 'dumb' cannot show a "
			"full screen");
	else
		err_set(err, ERR_USAGE, "terminal type '%.60s' is not known "
			"on this machine, or cannot show a full screen",
			term);
	return err_hint(err, "Try TERM=xterm-256color heapcore tui ..., or "
			"use heapcore analyze.");
}

static void set_colors(bool color)
{
	static const short foreground[ROLES] = {
		[ROLE_GRAPH] = COLOR_GREEN, [ROLE_WARNING] = COLOR_RED,
		[ROLE_HEADING] = COLOR_CYAN,
	};

	has_color = color && has_colors() && start_color() == OK &&
		    use_default_colors() == OK;
	for (short i = 1; has_color && i < ROLES; i++)
		init_pair(i, foreground[i] ? foreground[i] : -1, -1);
}

bool term_open(bool color, struct err *err)
{
	if (tcgetattr(STDIN_FILENO, &state->modes))
		return err_system(err, "terminal");
	/* LINES and COLUMNS of a shell are of another moment. */
	use_tioctl(TRUE);
	curses = newterm(NULL, stdout, stdin);
	if (!curses) {
		(void)!term_check(err);
		return err->kind != ERR_NONE ? false :
		       err_set(err, ERR_USAGE, "the terminal cannot be set "
			       "up");
	}
	prepare_goodbye();
	state->is_open = 1;
	atexit(restore);
	for (size_t i = 0; i < countof(deadly); i++)
		catch(deadly[i], on_deadly);
	catch(SIGINT, on_interrupt);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	set_escdelay(25);
	set_colors(color);
	return true;
}

void term_close(void)
{
	if (!curses)
		return;
	endwin();
	restore();
	delscreen(curses);
	curses = NULL;
	for (size_t i = 0; i < countof(deadly); i++)
		signal(deadly[i], SIG_DFL);
	signal(SIGINT, SIG_DFL);
}

void term_size(int *ret_w, int *ret_h)
{
	getmaxyx(stdscr, *ret_h, *ret_w);
}

static attr_t attributes(enum role role)
{
	static const attr_t plain[ROLES] = {
		[ROLE_BAR] = A_REVERSE, [ROLE_HEADING] = A_BOLD,
		[ROLE_CURSOR] = A_REVERSE, [ROLE_WARNING] = A_BOLD,
	};

	return plain[role];
}

void term_show(const struct screen *s, bool utf8, bool all)
{
	if (all)
		clearok(stdscr, TRUE);
	erase();
	for (int y = 0; y < s->h; y++)
		for (int x = 0; x < s->w; x++) {
			const struct screen_cell *c = &s->cells[y * s->w + x];
			wchar_t text[2] = { screen_char(c, utf8), 0 };
			cchar_t cell;

			if (c->ch == ' ' && c->role == ROLE_TEXT)
				continue;
			setcchar(&cell, text, attributes(c->role),
				 has_color ? (short)c->role : 0, NULL);
			mvadd_wch(y, x, &cell);
		}
	move(s->cursor_y, s->cursor_x);
	refresh();
}

void term_busy(bool busy)
{
	is_busy = busy;
}

bool term_mouse(bool on)
{
	const mmask_t wanted = BUTTON1_PRESSED | BUTTON4_PRESSED |
			       BUTTON5_PRESSED;

	/* Each press at once: what is a double click is found here. */
	mouseinterval(0);
	if (on)
		state->mouse_on = 1;
	if (mousemask(on ? wanted : 0, NULL) && on)
		return true;
	state->mouse_on = 0;
	return !on;
}

/* A press of the button, at once after another one at the same place? */
static int click(int y, int x)
{
	enum { SOON_MS = 400 };
	static int last_y, last_x;
	static int64_t last_ms = -SOON_MS;
	struct timespec now;
	int64_t ms;
	bool again;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	again = y == last_y && x == last_x && ms - last_ms < SOON_MS;
	last_y = y;
	last_x = x;
	/* A third press is a first one. */
	last_ms = again ? ms - SOON_MS : ms;
	return (again ? KEY_CLICK_AGAIN : KEY_CLICK) + y * KEY_CLICK_LINE + x;
}

static int translate_mouse(void)
{
	MEVENT e;

	if (getmouse(&e) != OK)
		return KEY_NOTHING;
	if (e.bstate & BUTTON4_PRESSED)
		return KEY_WHEEL_UP;
	if (e.bstate & BUTTON5_PRESSED)
		return KEY_WHEEL_DOWN;
	if (!(e.bstate & BUTTON1_PRESSED) || e.y < 0 || e.x < 0 ||
	    e.y >= SCREEN_MAX || e.x >= SCREEN_MAX)
		return KEY_NOTHING;
	return click(e.y, e.x);
}

static int translate(int theirs)
{
	if (theirs == KEY_MOUSE)
		return translate_mouse();
	for (size_t i = 0; i < countof(translated); i++)
		if (translated[i].theirs == theirs)
			return translated[i].ours;
	return KEY_NOTHING;
}

/* Nobody is at the other end any more. */
static bool is_gone(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&p, 1, 0) > 0 &&
	       p.revents & (POLLHUP | POLLERR | POLLNVAL);
}

/* Of several changes close together the library can miss the last one. */
static bool was_resized(void)
{
	struct winsize size;

	return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row &&
	       size.ws_col && is_term_resized(size.ws_row, size.ws_col) &&
	       resizeterm(size.ws_row, size.ws_col) == OK;
}

int term_key(void)
{
	for (;;) {
		wint_t c = 0;
		int kind;

		if (interrupted) {
			interrupted = 0;
			return KEY_CTRL_C;
		}
		timeout(250);
		errno = 0;
		kind = get_wch(&c);
		if (kind == KEY_CODE_YES)
			return translate((int)c);
		if (kind == OK)
			return c == '\r' ? KEY_RETURN :
			       c == 0x7f || c == 8 ? KEY_BACK : (int)c;
		if (is_gone())
			return KEY_CTRL_C;
		if (was_resized())
			return KEY_RESIZED;
	}
}
