<?php
// Objects, strings of many sizes, arrays of both kinds, a third freed again.
require __DIR__ . '/say.php';
class Item { public $text; public $number; public $tags = []; }
$kept = [];
for ($i = 0; $i < 20000; $i++) {
	$item = new Item;
	$item->text = str_repeat("x", $i % 700);
	$item->number = $i;
	$item->tags[] = "tag$i";
	$kept[] = $item;
}
for ($i = 0; $i < 20000; $i += 3)
	unset($kept[$i]);
$index = [];
for ($i = 0; $i < 5000; $i++)
	$index["key$i"] = $i;
$large = str_repeat("l", 100000);
$huge = str_repeat("h", 5 << 20);
say();
