# SPDX-License-Identifier: MIT
# google/tcmalloc in workerd of npm, with blocks that are known: see workerd.
# tests/matrix has older ones.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
. "$SRC/tests/sh/preloaded"
. "$SRC/tests/sh/workerd"

without_debug_files "$@"
need_cores
cd "$TMP"
need python3 jq
[ "$(uname -m)" = x86_64 ] || skip_all "not x86_64"
# The layout of this one is known; later ones may have another.
have_workerd 1.20261117.1 || skip_all "no workerd of npm"

ok "build" build_spans
[ -e spans.so ] || finish
ok "thread caches: many" spans_inside tagged many thread
ok "thread caches: large" spans_inside tagged large thread
ok "slabs: many" spans_inside tagged many cpu
ok "slabs: empty" spans_inside tagged empty cpu
finish
