<?php
// Every kind of variable holds a text of its own size; what calls what, and
// what is garbage, is printed as heapcore should find it.  Works on 7.4 to 8.6.
gc_disable();

class Store {
	public static $items = [];
	const LIST = ['in', 'a', 'constant'];
	private $own;
	protected $list = [];
	public function __construct($size) { $this->own = text($size); }
	public function put($text) { $this->list[] = ['text' => $text]; }
	public static function remember($size) {
		static $memo = [];
		$memo["of $size"] = text($size);
	}
	public function run($depth) {
		$local = text(500000);
		if ($depth)
			return $this->run($depth - 1);
		return array_map(function ($x) use ($local) {
			return last($x, $local);
		}, [1]);
	}
}
class Child extends Store {}
class Pair { public $other; public $text; }

// Not shared with anything.
function text($size) { return str_repeat(chr(65 + $size % 26), $size); }
function numbers($n) { while ($n--) yield text(3000) => $n; }

function last($x, $text) {
	foreach (debug_backtrace() as $f)
		echo 'CALL ', isset($f['class']) ? $f['class'] . '::' : '',
			$f['function'], ' ', $f['file'] ?? '-', ' ',
			$f['line'] ?? '-', "\n";
	foreach (gc_status() as $key => $value)
		if (in_array($key, ['runs', 'collected', 'threshold', 'roots']))
			echo "GC $key $value\n";
	echo 'LINE ', __LINE__ + 5, "\n";
	for ($i = 0; $i < 3; $i++)
		printf("USED %012d %012d\n", memory_get_usage(),
		       memory_get_usage(true));
	fflush(STDOUT);
	posix_kill(posix_getpid(), 6);
}

// What a variable holds is what memory_get_usage() grew by.
function held($kind, $name) {
	static $before = 0;
	if ($kind)
		printf("HELD %s %d %s\n", $kind, memory_get_usage() - $before,
		       $name);
	$before = memory_get_usage();
}
held('', '');
held('warm_up', 'nothing');

for ($i = 0; $i < 3000; $i++)
	Store::$items["item $i"] = ['id' => $i, 'text' => text(100)];
held('static_property', 'static Store::$items');
$kept = new Pair;
$kept->text = text(400000);
held('global', 'global $kept');
for ($i = 0; $i < 40; $i++) {
	$stores[] = $s = new Child(1000);
	$s->put(text(70));
}
unset($s);
held('global', 'global $stores');
for ($i = 0; $i < 40; $i++) {
	$running[] = $g = numbers(3);
	$g->current();
}
unset($g);
held('global', 'global $running');
for ($i = 0; $i < 250; $i++)
	$equal[] = text(300);
held('global', 'global $equal');
$numbers = range(1, 20000);
held('global', 'global $numbers');
define('LARGE', str_repeat('constant', 50000));
held('constant', 'constant LARGE');
Store::remember(600000);
held('static_variable', 'static $memo of Store::remember()');
$by_reference = text(700000);
held('global', 'global $by_reference');
for ($i = 0; $i < 200; $i++) {
	$pair = new Pair;
	$pair->other = new Pair;
	$pair->other->other = $pair;
	$pair->text = text(200);
}
unset($pair);
held('garbage', 'garbage');
for ($i = 0; $i < 40; $i++)
	$closures[] = function () use ($i) { return $i; };
(new Store(800000))->run(5);
