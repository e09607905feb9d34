<?php
// The child dies at once; then the parent gives back runs without a block.
for ($i = 0; $i < 60000; $i++)
	$all[] = str_repeat("x", 40 + $i % 900);
$status = 0;
for ($i = 0; $i < 60000; $i++)
	if ($i % 20000 > 40)
		$all[$i] = null;
if (!pcntl_fork())
	posix_kill(posix_getpid(), SIGABRT);
pcntl_wait($status);
$n = gc_mem_caches();
echo "collected $n\n";
