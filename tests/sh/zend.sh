# SPDX-License-Identifier: MIT
# ZendMM in cores of PHP: bytes in use and chunks are what the engine itself
# says by memory_get_usage(), to the byte.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

need_cores
cd "$TMP"
command -v php >/dev/null || skip_all "no php"
command -v jq >/dev/null || skip_all "no jq"
php -r 'exit(function_exists("posix_kill") ? 0 : 1);' ||
	skip_all "php has no posix extension"
programs=$SRC/tests/truth/php

# of_php FILE [ARG...]: makes core and runs the report on it.
of_php() {
	program=$1
	shift
	make_core core "$(command -v php)" -n $modules "$programs/$program" \
		"$@" || return 1
	status=0
	"$HEAPCORE" analyze -q --json core >report.json || status=$?
	[ "$status" = 0 ] || { cat report.json; return 1; }
}

# exact FILE [ARG...]: used and real bytes as the program printed them last.
exact() {
	of_php "$@" || return 1
	truth=$(grep -a -E '^[0-9]{12} [0-9]{12}$' dump.log | tail -n 1 |
		sed -E 's/(^| )0+/\1/g')
	found=$(jq -r '.allocators[] | select(.name == "zend") |
		"\(.used_bytes) \(.mapped_bytes)"' report.json)
	echo "PHP says $truth, found $found"
	[ "$truth" ] && [ "$truth" = "$found" ] && sums_hold
}

# The rows of WHERE are the private memory; glibc's blocks are not counted in.
sums_hold() {
	jq -e '([.where[].bytes] | add) == .target.private_bytes' report.json
}

# Extensions that Debian has as files of their own.
modules=
for name in posix pcntl; do
	php -n -m | grep -qx "$name" || modules="$modules -d extension=$name"
done

ok "objects, strings, arrays" exact objects.php
ok "churn" exact churn.php
ok "churn, caches given back" exact churn.php collect
ok "one of everything, 2000 deep" exact kinds.php
ok "memory limit" exact limit.php
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
		if $u < $w then $w - $u else $u - $w end | . < $w / 20' \
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

if of_php objects.php >/dev/null 2>&1; then
	mv core objects.core
	mv report.json objects.json
	ok "the ring is cut" damaged ring zend-ring
	ok "an entry of the map is lost" damaged map zend-map
	ok "the heap's own figure is wrong" damaged size zend-size
	ok "a free slot is overwritten" damaged slot zend-free-list
	ok "a free list loops" damaged loop zend-free-list
	ok "a free list leads between slots" damaged inside zend-free-list
	ok "the main chunk does not name its heap" damaged header \
		zend-main-chunk
	ok "the header of the main chunk is lost" no_header
	ok "a sampler marks pages" marked
fi
finish
