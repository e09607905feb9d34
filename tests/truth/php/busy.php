<?php
// busy.php SEED FILE: allocates and frees for ever; FILE is there after a while.
ini_set('memory_limit', '1G');
mt_srand((int)$argv[1]);
$kept = [];
for ($i = 0; ; $i++) {
	$n = mt_rand(0, 3000);
	switch (mt_rand(0, 4)) {
	case 0:
		$kept[$n] = str_repeat('x', mt_rand(1, 4000));
		break;
	case 1:
		$kept[$n] = range(1, mt_rand(1, 300));
		break;
	case 2:
		unset($kept[$n]);
		break;
	case 3:
		$object = new stdClass;
		$object->pair = [$n, $kept[$n] ?? null];
		$kept[$n] = $n % 2 ? $object : [1];
		break;
	case 4:
		$kept["s$n"] = sprintf('%d %s', $n, md5((string)$n));
		unset($kept['s' . ($n + 1)]);
		break;
	}
	if ($i == 20000)
		touch($argv[2]);
}
