# SPDX-License-Identifier: MIT
# Needs GNU make.  The lists below are the table of contents of src/, in the
# order in which bytes of a core become a report.

srcdir := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
VERSION = 0.1.0

BASE = err mem map str num rand temp file demangle progress confine
COREWALK = elf space pages own module symbol inflate debug_unpack debug lines \
	cfi_read cfi_run cfi_expr cfi unwind \
	dwarf_names dwarf_index dwarf_types dwarf_classes dwarf_locals module_file \
	unpack core_fault core_kind core_note core_file core_runs target_core \
	live_proc live_check live_stop live_pages live_note live_copy live_room live_buffer \
	live_file live_chain live_fork target_live target_mem \
	snapshot_file snapshot heap alloc words \
	glibc_find glibc_ahead glibc_walk glibc_mmap glibc_lists glibc_fast glibc_bins glibc_orphan \
	alloc_glibc jemalloc_find jemalloc_cache jemalloc_walk jemalloc_sampled alloc_jemalloc \
	tcmalloc_find tcmalloc_table tcmalloc_walk tcmalloc_sampled alloc_tcmalloc \
	gtcmalloc_find gtcmalloc_layout gtcmalloc_table gtcmalloc_front \
	gtcmalloc_record gtcmalloc_walk alloc_gtcmalloc \
	zend_find zend_walk alloc_zend alloc_pymalloc ocaml4 ocaml5 jvm runtime
ANALYSIS = stored stack backtrace usage residency heat where looked spans fragment release abortmsg fill damage standout advise \
	profile_rate index roots scan weak edges kin graph rings mark reach refs dominate retain_share retain_join retain \
	pattern dup strings search dup_blocks period tails holder \
	types text vtable shape content hints fields claim spread typed \
	census_scan census_name php_shape php_layout php_graph php_find php_frames php_roots php_names php_strings php_arrays php_view php_say \
	perl php python pyarenas census
SAMPLER = geom profile
REPLAY = objects trace_log trace_columns trace_events trace_read trace_write trace_pack \
	trace_import trace_heaptrack trace_memtrace maps live stock lifetimes timeline pauses pauses_read size_class models filters replay_events replay sizes rates
RECORDER = recorder_sys recorder_file recorder_module recorder_cfi \
	recorder_stack recorder_sample recorder_map recorder_exec recorder_start recorder
REPORT = out table text json csv filter blocks block_rows build_target build_threads build_stacks build_heap \
	build_arenas build_spans build_leaks build_retain build_refs build_patterns build_repeats build_search build_php build_types sample build_sample complete build_find build_members build_words build_at estimate report \
	saved saved_tables compare compare_arenas compare_hide compare_build compare_say \
	frames sites calls profiled build_profile build_replay build_overview build_functions build_growth build_pauses build_models build_rates replay_totals replay_text replay_run replay_export pprof
TUI = screen keys heat undo term view page side draw mouse actions script tui trace trace_plot saved_view
COMMANDS = heapcore cmd cmd_subject cmd_report cmd_export cmd_analyze cmd_diff cmd_replay cmd_snapshot cmd_watch \
	cmd_trace_open cmd_trace cmd_record cmd_record_images cmd_tui

MODULES = $(BASE:%=base/%) $(COREWALK:%=corewalk/%) \
	$(ANALYSIS:%=analysis/%) $(SAMPLER:%=sampler/%) \
	$(REPLAY:%=replay/%) $(REPORT:%=report/%) $(TUI:%=tui/%)
PAGES = $(wildcard $(srcdir)/man/*.[1-9])
HINTS = $(wildcard $(srcdir)/docs/hints/*.hints)
DOCS = $(filter-out %/README.md,$(wildcard $(srcdir)/docs/*.md))
ALLOCATORS = $(wildcard $(srcdir)/docs/allocators/*.md)

# Without config.mk, these do all set-up themselves and install what is
# missing; everything else wants ./configure to be run by hand.
SELF_SERVICE = demo check check-matrix check-package
ifneq ($(wildcard config.mk)$(filter $(SELF_SERVICE),$(MAKECMDGOALS)),)
include config.mk
else ifeq ($(filter help dist clean distclean,$(MAKECMDGOALS)),)
$(error not configured: run ./configure first, or make demo, or make check)
endif

# Somebody who wants all of it at once wants it soon.
ifneq ($(filter $(SELF_SERVICE),$(MAKECMDGOALS)),)
ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif
endif

WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wvla -Wwrite-strings
FLAGS = -std=gnu11 -ffp-contract=off -D_GNU_SOURCE= $(WARN) $(WERROR) \
	-DVERSION='"$(VERSION)"' \
	-DLIBEXECDIR='"$(libexecdir)"' -I$(srcdir)/src $(LIB_CFLAGS) $(HARDEN_CFLAGS) $(SANITIZE) \
	$(CPPFLAGS) $(CFLAGS)
LINK = $(CC) $(HARDEN_CFLAGS) $(SANITIZE) $(CFLAGS) $(HARDEN_LDFLAGS) \
	$(STATIC) $(LDFLAGS)
ALL_LIBS = $(LIB_LIBS) $(LIBS) -lm

programs = $(patsubst $(srcdir)/%.c,%,$(wildcard $(srcdir)/$(1)))
UNIT = $(call programs,tests/unit/test_*.c)
FUZZERS = $(call programs,tests/fuzz/fuzz_*.c)
REPLAYS = $(FUZZERS:tests/fuzz/fuzz_%=tests/fuzz/replay_%)
DAMAGE = tests/fuzz/mutate tests/fuzz/one_size
BENCH = $(patsubst %,obj/%,$(call programs,bench/*.c))

# $(call run,WORD) shows a word and the target instead of the command.
V = 0
run = $(if $(filter 0,$(V)),@echo '  $(1)' $@;)

all: heapcore libheapcore-record.so

heapcore: $(COMMANDS:%=obj/src/%.o) libheapcore.a
	$(call run,LD) $(LINK) -o $@ $^ $(ALL_LIBS)

# A module that is no longer in the lists has to go.
libheapcore.a: $(MODULES:%=obj/src/%.o) $(srcdir)/Makefile
	$(call run,AR) rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

# Preloaded into programs: always optimised, no sanitizers, only libc.
RECORD_FLAGS = $(WARN) $(WERROR) -std=gnu11 -D_GNU_SOURCE= \
	-DVERSION='"$(VERSION)"' -I$(srcdir)/src $(CPPFLAGS) $(CFLAGS) -O2 \
	-fPIC -fvisibility=hidden -ftls-model=initial-exec \
	-fno-tree-slp-vectorize -fno-builtin-malloc \
	-fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free
libheapcore-record.so: $(RECORDER:%=obj/src/replay/%.o) $(srcdir)/Makefile
	$(call run,LD) $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,now \
		-Wl,-z,relro -o $@ $(filter %.o,$^)

$(RECORDER:%=obj/src/replay/%.o): FLAGS = $(RECORD_FLAGS)

# Packages come first: with them apt-get may replace the compiler.
DEPS = $(patsubst %,deps-%,$(filter $(SELF_SERVICE),$(MAKECMDGOALS)))
obj/%.o: $(srcdir)/%.c config.mk | $(DEPS)
	@mkdir -p $(@D)
	$(call run,CC) $(CC) $(FLAGS) -MMD -MP -c -o $@ $<

# Most of these run for milliseconds: their compiler and their linker are what
# takes long.  Whoever debugs them has configured with --enable-debug.
BRIEF = $(filter -O2,$(CFLAGS))
obj/tests/%.o: FLAGS += -I$(srcdir)/tests $(if $(BRIEF),-O1 -g0)
LINK_TEST = $(LINK) $(if $(BRIEF),-Xlinker -S)
# What a walk compares are words, a million an input: to tell libFuzzer of each
# would cost more than the walk.
ifneq ($(FUZZ),)
$(COREWALK:%=obj/src/corewalk/%.o) $(FUZZERS:%=obj/%.o) \
$(patsubst %,obj/src/analysis/%.o,$(filter-out hints,$(ANALYSIS))): \
	FLAGS += -fno-sanitize-coverage=trace-cmp
endif

$(UNIT): %: obj/%.o libheapcore.a
	@mkdir -p $(@D)
	$(call run,LD) $(LINK_TEST) -o $@ $^ $(ALL_LIBS)

$(BENCH): %: %.o libheapcore.a
	@mkdir -p $(@D)
	$(call run,LD) $(LINK) -o $@ $^ $(ALL_LIBS)

# The seeds of a fuzz target as a plain test, with any compiler.
$(REPLAYS): tests/fuzz/replay_%: obj/tests/fuzz/fuzz_%.o \
		obj/tests/fuzz/replay.o libheapcore.a
	@mkdir -p $(@D)
	$(call run,LD) $(LINK_TEST) -o $@ $^ $(ALL_LIBS)

$(DAMAGE): %: obj/%.o libheapcore.a
	@mkdir -p $(@D)
	$(call run,LD) $(LINK_TEST) -o $@ $^ $(ALL_LIBS)

$(FUZZERS): %: obj/%.o libheapcore.a
	@mkdir -p $(@D)
	$(call run,LD) $(LINK) -fsanitize=fuzzer -o $@ $^ $(ALL_LIBS)

# Called by make itself before anything else.
config.mk: $(srcdir)/configure
	$(srcdir)/configure $(if $(wildcard $@),$(CONFIGURE_ARGS),--install-deps)

$(DEPS): deps-%:
	@$(srcdir)/tests/deps $(if $(INSTALL_DEPS),--install) $*
.PHONY: $(DEPS)

demo: deps-demo all
	@$(srcdir)/tests/demo

check: deps-check all $(UNIT) $(REPLAYS) $(DAMAGE)
	@CC='$(CC)' $(srcdir)/tests/run

check-matrix: deps-check-matrix all
	@if [ -x $(srcdir)/tests/matrix ]; then \
		HEAPCORE=$(CURDIR)/heapcore BUILD=$(CURDIR) CC='$(CC)' \
		$(srcdir)/tests/matrix; \
	else \
		echo '# there is no tests/matrix'; \
		echo '0 passed, 0 failed, 0 skipped'; \
	fi

check-package: deps-check-package all
	@BUILD=$(CURDIR) $(srcdir)/tests/package

bench: all $(BENCH)
	$(srcdir)/bench/run

# FUZZ_TARGETS='core trace' for some; FUZZ_RUNS=1000000 for so many inputs each.
FUZZ_SECONDS = 60
FUZZ_RUNS =
FUZZ_TARGETS = $(FUZZERS:tests/fuzz/fuzz_%=%)
fuzz: $(if $(FUZZ),$(FUZZ_TARGETS:%=tests/fuzz/fuzz_%))
	@$(if $(FUZZ),,echo 'first: configure --enable-fuzz' >&2; exit 1)
	$(srcdir)/tests/fuzz/run $(if $(FUZZ_RUNS),-n $(FUZZ_RUNS),-t \
		$(FUZZ_SECONDS)) $(FUZZ_TARGETS:%=tests/fuzz/fuzz_%)

# Damaged cores; with configure --enable-sanitizers they tell most.
MUTATIONS = 100000
mutate: all tests/fuzz/mutate
	@MUTATIONS=$(MUTATIONS) TEST_TIMEOUT=36000 CC='$(CC)' \
		$(srcdir)/tests/run sh/mutate

cover: check
	@$(if $(COVERAGE),,echo 'first: configure --enable-coverage' >&2; exit 1)
	@gcov -n $(MODULES:%=obj/src/%.gcda) 2>/dev/null | \
	awk -F"[':%]" '/^File/ { f = $$2 } /^Lines/ && f ~ /src\// \
		{ printf "%6.1f%%  %s\n", $$2, f; f = "" }' | sort -u -k2

INSTALL = install
D = $(DESTDIR)
install: all
	$(INSTALL) -d $(D)$(bindir) $(D)$(libexecdir)/heapcore \
		$(D)$(mandir)/man1 $(D)$(mandir)/man5 \
		$(D)$(docdir)/hints $(D)$(docdir)/allocators \
		$(D)$(datadir)/bash-completion/completions \
		$(D)$(datadir)/zsh/site-functions \
		$(D)$(datadir)/fish/vendor_completions.d
	$(INSTALL) heapcore $(D)$(bindir)
	$(INSTALL) -m 644 libheapcore-record.so $(D)$(libexecdir)/heapcore
	$(if $(filter %.1,$(PAGES)),$(INSTALL) -m 644 $(filter %.1,$(PAGES)) \
		$(D)$(mandir)/man1)
	$(if $(filter %.5,$(PAGES)),$(INSTALL) -m 644 $(filter %.5,$(PAGES)) \
		$(D)$(mandir)/man5)
	cd $(srcdir) && $(INSTALL) -m 644 README.md NEWS.md LICENSE $(D)$(docdir)
	$(INSTALL) -m 644 $(DOCS) $(D)$(docdir)
	$(INSTALL) -m 644 $(ALLOCATORS) $(D)$(docdir)/allocators
	$(INSTALL) -m 644 $(HINTS) $(D)$(docdir)/hints
	cd $(srcdir)/docs/completion && \
	$(INSTALL) -m 644 heapcore.bash \
		$(D)$(datadir)/bash-completion/completions/heapcore && \
	$(INSTALL) -m 644 _heapcore $(D)$(datadir)/zsh/site-functions && \
	$(INSTALL) -m 644 heapcore.fish $(D)$(datadir)/fish/vendor_completions.d

uninstall:
	rm -f $(D)$(bindir)/heapcore \
		$(D)$(libexecdir)/heapcore/libheapcore-record.so \
		$(addprefix $(D)$(mandir)/man1/,$(notdir $(filter %.1,$(PAGES)))) \
		$(addprefix $(D)$(mandir)/man5/,$(notdir $(filter %.5,$(PAGES)))) \
		$(addprefix $(D)$(docdir)/,README.md NEWS.md LICENSE) \
		$(addprefix $(D)$(docdir)/,$(notdir $(DOCS))) \
		$(addprefix $(D)$(docdir)/allocators/,$(notdir $(ALLOCATORS))) \
		$(addprefix $(D)$(docdir)/hints/,$(notdir $(HINTS))) \
		$(D)$(datadir)/bash-completion/completions/heapcore \
		$(D)$(datadir)/zsh/site-functions/_heapcore \
		$(D)$(datadir)/fish/vendor_completions.d/heapcore.fish

clean:
	rm -rf obj heapcore libheapcore.a libheapcore-record.so fuzz-corpus \
		$(UNIT) $(REPLAYS) $(FUZZERS) $(DAMAGE)

distclean: clean
	rm -rf config.mk matrix-packages npm-packages

NAME = heapcore-$(VERSION)
dist:
	git -C $(srcdir) archive --prefix=$(NAME)/ HEAD | xz >$(NAME).tar.xz

help:
	@echo 'all           the program (after ./configure)'
	@echo 'demo          build, make a core of a real program, report on it'
	@echo 'check         all tests: tests/run, which takes names too'
	@echo 'check-matrix  the walkers on other releases of the C library'
	@echo 'check-package make dist, a Debian package, an RPM; install, remove'
	@echo 'bench         measure, as in docs/benchmarks.md'
	@echo 'fuzz          FUZZ_SECONDS=60 each, or FUZZ_RUNS=1000000 inputs'
	@echo '              (--enable-fuzz); FUZZ_TARGETS=trace ...'
	@echo 'mutate        MUTATIONS=100000 of each of three cores'
	@echo 'cover         lines that the tests run (--enable-coverage)'
	@echo 'install, uninstall, dist, clean, distclean'
	@echo 'demo and check configure and install what is missing by themselves;'
	@echo 'V=1 shows the commands'

.PHONY: all demo check check-matrix check-package bench fuzz mutate cover install uninstall \
	clean distclean dist help
.DELETE_ON_ERROR:
.SECONDARY:

-include $(shell find obj -name '*.d' 2>/dev/null)
