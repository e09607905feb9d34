# SPDX-License-Identifier: MIT
# ZendMM in cores of PHP: bytes in use and chunks are what the engine itself
# says by memory_get_usage(), to the byte.
. "$SRC/tests/sh/tap"
without_debug_files "$@"
. "$SRC/tests/sh/core"

. "$SRC/tests/sh/with_php"

# The block that the limit denied may have been counted: then that is said.
denied() {
	figures "$@" && sums_hold || return 1
	[ "${truth#* }" = "${found#* }" ] || return 1
	over=$((${truth% *} - ${found% *}))
	[ $over = 0 ] && return
	jq -e --arg over $over '[.findings[] |
		select(.code == "zend-size" and .minor) | .text |
		contains("one block of \($over) bytes")] == [true]' report.json
}

ok "objects, strings, arrays" exact objects.php
ok "churn" exact churn.php
ok "churn, caches given back" exact churn.php collect
ok "one of everything, 2000 deep" exact kinds.php
ok "memory limit" denied limit.php
ok "forked child" exact forked.php

# collected: what gc_mem_caches() returned in a process whose child is the core.
collected() {
	of_php collected.php || return 1
	said=$(sed -n 's/^collected //p' dump.log)
	found=$(jq '.releases[] | select(.allocator == "zend") | .bytes' \
		report.json)
	echo "PHP collects $said, found $found"
	[ "$said" ] && [ "$said" -gt 1000000 ] && [ "$said" = "$found" ]
}
if [ "$core_writer" = kernel ]; then
	ok "gc_mem_caches() releases what was said" collected
else
	skip "gc_mem_caches() releases what was said" "cores of forks only"
fi

# no_zend: the engine hands everything to malloc.
no_zend() {
	USE_ZEND_ALLOC=0 of_php objects.php || return 1
	jq -e '[.allocators[].name] == ["glibc"]' report.json
}
ok "USE_ZEND_ALLOC=0: no heap is found" no_zend

# counts FILE NAME=BLOCKS...: blocks of these types, as the program makes them.
counts() {
	of_php "$1" || return 1
	shift
	"$HEAPCORE" analyze -q --only=types --json core >types.json
	for want in "$@"; do
		got=$(jq -r --arg name "php ${want%=*}" '[.types[] |
			select(.name == $name) | .blocks] | add' types.json)
		echo "${want%=*}: $got"
		[ "$got" = "${want#*=}" ] || return 1
	done
}
ok "classes of one of everything" counts kinds.php \
	"object Generator=300" "object Closure=300" "object Node=900" \
	"object SplDoublyLinkedList=300" "object SplMinHeap=300" \
	"object SplObjectStorage=300" "object ArrayObject=300" \
	"object SplFixedArray=300" "object DateTime=300" \
	"object RuntimeException=300" "object Exception=300"
ok "objects that were not freed" counts objects.php "object Item=13333"

# patched KIND: objects.core with it, and its report; status is that of it.
patched() {
	cp objects.core core
	"$programs/damage" core $(jq -r '.allocators[] |
		select(.name == "zend") | .evidence |
		capture("chunk (?<c>0x[0-9a-f]+).*heap\\+(?<f>[0-9]+).*" +
			"chunk\\+(?<k>[0-9]+)") | "\(.c) \(.k) \(.f)"' \
		objects.json) "$1" || return 1
	status=0
	"$HEAPCORE" analyze -q --json core >report.json || status=$?
	echo "status $status"
}

# damaged KIND CODE: one word is overwritten; the rest of the heap is as before
# within a few blocks, and a finding says where.
damaged() {
	patched "$1" || return 1
	[ "$status" = 3 ] || return 1
	jq -e --arg code "$2" '[.findings[].code] | index($code)' report.json
	jq -e --slurpfile whole objects.json '
		def used: .allocators[] | select(.name == "zend") | .used_bytes;
		used as $u | ($whole[0] | used) as $w |
		if $u < $w then $w - $u else $u - $w end | . < $w / 8' \
		report.json
}

# The whole header of the main chunk is gone: all other chunks are there.
no_header() {
	patched page || return 1
	[ "$status" = 3 ] || return 1
	jq -e '[.findings[].code] | index("zend-main-chunk")' report.json &&
	jq -e --slurpfile whole objects.json '
		def zend: .allocators[] | select(.name == "zend");
		($whole[0] | zend.mapped_bytes) - zend.mapped_bytes |
		. == 5 * 1048576 + 4096' report.json && sums_hold
}

marked() {
	patched mark || return 1
	[ "$status" = 0 ] || return 1
	jq -e '[.findings[] | select(.code == "zend-sampler") | .minor] ==
		[true]' report.json &&
	jq -e --slurpfile whole objects.json '
		def zend: .allocators[] | select(.name == "zend") |
			.used_bytes;
		zend == ($whole[0] | zend)' report.json
}

# list KIND: a free slot of a list; from 8.4 on its last word says the same, and
# nothing is lost.
list() {
	jq -e '.allocators[] | select(.name == "zend") | .evidence |
		test("shadows")' objects.json >/dev/null || {
		damaged "$1" zend-free-list
		return
	}
	patched "$1" || return 1
	jq -e '[.findings[].code] == ["zend-free-slot"]' report.json &&
	jq -e --slurpfile whole objects.json '
		def zend: .allocators[] | select(.name == "zend") |
			.used_bytes;
		zend == ($whole[0] | zend)' report.json
}

if of_php objects.php >/dev/null 2>&1; then
	mv core objects.core
	mv report.json objects.json
	ok "the ring is cut" damaged ring zend-ring
	ok "an entry of the map is lost" damaged map zend-map
	ok "the heap's own figure is wrong" damaged size zend-size
	ok "a free slot is overwritten" list slot
	ok "a free list loops" list loop
	ok "a free list leads between slots" list inside
	ok "the main chunk does not name its heap" damaged header \
		zend-main-chunk
	ok "the header of the main chunk is lost" no_header
	ok "a sampler marks pages" marked
fi
# anywhere SEED: killed while it allocates.  At most the run that was being cut
# is not told right, and nothing is damaged.
anywhere() {
	rm -rf ready moment && mkdir moment
	(
		cd moment
		ulimit -c unlimited
		exec $PHP $modules "$programs/busy.php" "$1" "$TMP/ready" \
			>/dev/null 2>&1
	) &
	pid=$!
	until_ok [ -e ready ] || return 1
	core_of core $pid ABRT || return 1
	wait $pid 2>/dev/null || :
	"$HEAPCORE" analyze -q --json core >report.json || [ $? = 3 ] ||
		return 1
	jq -c '.findings[]' report.json
	jq -e '(.allocators[] | select(.name == "zend") | .used_bytes) -
		.php[0].memory_usage_bytes | fabs | . <= 7 * 4096' report.json &&
	jq -e '[.findings[] | select(.code | startswith("zend")) | .code] -
		["zend-size"] == []' report.json && sums_hold
}
for seed in 1 2 3; do
	ok "killed while it allocates: $seed" anywhere $seed
done
finish
