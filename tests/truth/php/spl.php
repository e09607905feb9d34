<?php
// Lost cycles, and SPL objects in memory that led to them: what is not set of
// these has stale words.  Prints how many objects are lost.
class Pair { public $other; public $text; }
class Wide { public $a, $b, $c, $d, $e; }
class Wider { public $a, $b, $c, $d, $e, $f, $g; }
gc_disable();

function spl($i)
{
	$list = new SplDoublyLinkedList;
	$list->push(new ArrayObject([$i]));
	$heap = new SplMinHeap;
	for ($k = 0; $k < 6; $k++)
		$heap->insert([$k, new ArrayIterator([$k])]);
	for ($k = 0; $k < 3; $k++)
		$heap->extract();
	$set = new SplObjectStorage;
	for ($k = 0; $k < 5; $k++) {
		$o = new ArrayObject([$k]);
		$set[$o] = $k;
	}
	return [$list, $heap, $set, new SplFixedArray(7)];
}

// What is given back here has been filled with words that lead to both.
function stale($a, $b)
{
	$all = [];
	for ($k = 0; $k < 12; $k++) {
		$all[] = $x = new Wide;
		$x->a = $x->b = $x->c = $x->d = $x->e = $a;
		$all[] = $y = new Wider;
		$y->a = $y->b = $y->c = $y->d = $y->e = $y->f = $y->g = $b;
		$all[] = [$a, $b, $a, $b, $a, $b, $a, $b];
	}
}

$live = [];
for ($i = 0; $i < 300; $i++) {
	$a = new Pair;
	$b = new Pair;
	$a->other = $b;
	$b->other = $a;
	stale($a, $b);
	unset($a, $b);
	$live[] = spl($i);
}
echo 'LOST ', 2 * 300, "\n";
posix_kill(posix_getpid(), 6);
