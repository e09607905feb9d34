<?php
// A request: objects, arrays and cycles of it; with a file named by the
// environment it says what is in use there and sleeps.
class Row { public $text; public $next; }
class Page {
	private static $rows = [];
	public static function build($n) {
		for ($i = 0; $i < 200 + $n % 50; $i++) {
			$row = new Row;
			$row->text = str_repeat('t', 10 + $i);
			$row->next = $row;
			self::$rows["row $i"] = $row;
		}
		return count(self::$rows);
	}
	public static function wait($name) {
		$f = fopen($name, 'w');
		for ($i = 0; $i < 3; $i++)
			fprintf($f, "%012d %012d\n", memory_get_usage(),
				memory_get_usage(true));
		fflush($f);
		sleep(1000);
	}
}
echo Page::build((int)$_GET['n']), ' rows';
if (is_dir(__DIR__ . '/wait'))
	Page::wait(__DIR__ . '/wait/usage');
