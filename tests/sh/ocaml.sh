# SPDX-License-Identifier: MIT
# OCaml's heaps: their bytes are what Gc.stat says.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

need jq
cd "$TMP"
# What makes and runs programs; tests/sh/matrix_ocaml has others.
: "${OCAML:=ocaml}" "${OCAMLC:=ocamlc}" "${OCAMLOPT:=ocamlopt}"
: "${OCAMLRUN=}"

# as_said CORE: values, and these with what is free for others; in the rest of
# the major heap are only pages' borders, heads, and free pools of OCaml 5.
as_said() {
	read -r _ _ heap _ live _ minor <said || return 1
	"$HEAPCORE" analyze -q --json --no-files "$1" >report.json || return 1
	jq -c '[.allocators[], .arenas[] | [.name, .mapped_bytes, .runtime_bytes,
		.runtime_used_bytes, .runtime_free_bytes]]' report.json
	cat said
	jq -e --argjson heap "$heap" --argjson live "$live" \
		--argjson minor "$minor" '
		.complete and ([.where[].bytes] | add) == .target.private_bytes
		and ([.arenas[] | {(.name): .mapped_bytes}] | add |
			.["ocaml major"] >= $heap and
			(.["ocaml minor"] | . >= $minor and
				. <= $minor + 20000)) and
		(.allocators[] | select(.name == "ocaml") |
			.runtime_used_bytes == $live and
			.runtime_used_bytes + .runtime_free_bytes == $heap) and
		(.where[] | select(.what == "runtime") | .bytes) ==
			(.allocators[] | select(.name == "ocaml") |
				.runtime_bytes)' report.json
}
fixture() {
	cp "$SRC/tests/cores/$1/said" said && as_said "$SRC/tests/cores/$1/core.xz"
}
ok "a core of OCaml 4.13" fixture ocaml4
ok "a core of OCaml 5.3" fixture ocaml5

# The static word that leads to the chunk, before whose start its size is.
word_at() {
	"$HEAPCORE" analyze -q --json --no-files --at="$1" \
		"$SRC/tests/cores/ocaml4/core.xz" >at.json
	jq -r ".words[0].$2" at.json
}
into_major() {
	read -r _ _ heap _ <"$SRC/tests/cores/ocaml4/said"
	leads=$(word_at 0x55f57a82c0a0 leads_to)
	chunk=$(word_at 0x55f57a82c0a0 word)
	size=$(word_at "$(printf 0x%x $((chunk - 32)))" meaning)
	[ "$leads" = "in the ocaml major heap" ] && [ "$size" = "$heap" ]
}
ok "a word that leads into it" into_major

exact() {
	make_core core env "$@" || return 1
	grep '^said' dump.log >said && as_said core
}
four_ways() {
	kind=$1
	shift
	ok "$kind: all kept" exact "$@" 100000 1
	ok "$kind: a third kept" exact "$@" 200000 3
	ok "$kind: its blocks in the break" exact \
		MALLOC_MMAP_THRESHOLD_=1000000000 "$@" 60000 3
	ok "$kind: a pool of its own" exact OCAMLRUNPARAM=c,s=8k "$@" 40000 2
}

program=$SRC/tests/truth/ocaml_kept.ml
case $(cat /proc/sys/kernel/core_pattern) in
*[\|/]*) skip "programs" "cores go to another program here" ;;
*)
	cp "$program" kept.ml
	if $OCAMLOPT -o native kept.ml >build.log 2>&1; then
		four_ways "native" "$TMP/native"
		strip native && ok "stripped" exact "$TMP/native" 50000 2
	else
		sed 's/^/# /' build.log
		skip "native" "no ocamlopt, or it does not link"
	fi
	if $OCAMLC -o bytecode kept.ml >build.log 2>&1; then
		# shellcheck disable=SC2086
		four_ways "bytecode" $OCAMLRUN "$TMP/bytecode"
	elif command -v "$OCAML" >/dev/null; then
		four_ways "the toplevel" "$(command -v "$OCAML")" "$TMP/kept.ml"
	else
		skip "bytecode" "no ocamlc, and no ocaml"
	fi
	;;
esac
finish
