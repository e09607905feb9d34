<?php
// A static array that is never emptied: why workers grow.
require __DIR__ . '/say.php';

final class Repository {
	private static array $cache = [];
	public static function load(int $id): void {
		self::$cache["product:$id"] = [
			'id' => $id,
			'sku' => sprintf('SKU-%08d-%s', $id,
					 str_repeat('Z', 24)),
			'html' => str_repeat('<p>lorem</p>', 20) . $id,
			'tags' => ["t$id", 'sale', 'new'],
		];
	}
}

$n = (int)($argv[1] ?? 20000);
for ($i = 0; $i < $n; $i++)
	Repository::load($i);
$blob = str_repeat('B', 3 << 20);
say();
