<?php
// Dies of its memory limit; says so in a function called at the shutdown.
require __DIR__ . '/say.php';
ini_set('memory_limit', '24M');
register_shutdown_function('say');
function hog() {
	for ($i = 0; ; $i++)
		$rows[] = ["row $i", $i, str_repeat("r", 100)];
}
hog();
