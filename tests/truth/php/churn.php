<?php
// Sizes of all three kinds in no order, most freed: runs of several pages
// leave entries behind in the maps, chunks become empty and are cached.
require __DIR__ . '/say.php';
ini_set('memory_limit', '1G');
mt_srand(7);
$kept = [];
for ($i = 0; $i < 60000; $i++) {
	$n = mt_rand(1, 100);
	$size = $n < 90 ? mt_rand(1, 3000) :
		($n < 99 ? mt_rand(4000, 60000) : mt_rand(1 << 20, 3 << 20));
	$kept[mt_rand(0, 2000)] = str_repeat("c", $size);
}
foreach ($kept as $key => $text)
	if ($key % 5)
		unset($kept[$key]);
$grown = [];
for ($i = 0; $i < 400000; $i++)
	$grown[] = $i;
unset($text);
if (isset($argv[1]))
	gc_mem_caches();
say();
