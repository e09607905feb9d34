<?php
// One of everything: suspended generators, closures, references, cycles,
// weak references, SPL structures, exceptions, a deep stack.
require __DIR__ . '/say.php';
gc_disable();
function numbers($n) { for ($i = 0; $i < $n; $i++) yield $i => [$i]; }
class Node { public $next; public $self; }
$all = [];
for ($i = 0; $i < 300; $i++) {
	$g = numbers(10);
	$g->next();
	$all[] = $g;
	$n = new Node;
	$n->self = $n;
	$all[] = function () use ($n, $i) { return $i; };
	$list = new SplDoublyLinkedList;
	$list->push($i);
	$heap = new SplMinHeap;
	$heap->insert($i);
	$set = new SplObjectStorage;
	$set[$n] = $i;
	$all[] = [$list, $heap, $set, new ArrayObject([$i]),
		  new SplFixedArray(7), new DateTime('@' . $i)];
	$lost = new Node;
	$lost->next = new Node;
	$lost->next->next = $lost;
	try {
		throw new RuntimeException("no $i", 1, new Exception("cause"));
	} catch (Exception $e) {
		$all[] = $e;
	}
	$ref = &$all[$i];
}
function deep($n) { $n ? deep($n - 1) : say(); }
deep(2000);
