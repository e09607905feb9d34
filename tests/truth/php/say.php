<?php
// Prints memory_get_usage(false) and (true), then dies by SIGABRT.  What
// printing itself keeps is there after the first two times.
function say() {
	for ($i = 0; $i < 3; $i++)
		fprintf(STDOUT, "%012d %012d\n", memory_get_usage(),
			memory_get_usage(true));
	fflush(STDOUT);
	posix_kill(posix_getpid(), 6);
}
