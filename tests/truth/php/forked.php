<?php
// A child has its parent's heap, pages copied on write.
require __DIR__ . '/say.php';
for ($i = 0; $i < 30000; $i++)
	$all[] = "text number $i";
$pid = pcntl_fork();
if ($pid) {
	pcntl_waitpid($pid, $status);
	exit;
}
for ($i = 0; $i < 30000; $i += 2)
	unset($all[$i]);
say();
