/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target over files, as a plain test without libFuzzer: each
 * argument is a file, or a folder of files, in the order of their names.
 * Prints TAP; what the target finds wrong it shows by ending the program.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int n_done;

static void replay_bytes(const uint8_t *data, size_t size, const char *name)
{
	LLVMFuzzerTestOneInput(data, size);
	printf("ok %d - %s\n", ++n_done, name);
	fflush(stdout);
}

static void replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct stat st;

	if (!f || fstat(fileno(f), &st)) {
		perror(path);
		exit(2);
	}
	/* Of exactly the input's size, so that sanitizers see its end. */
	uint8_t *data = malloc(st.st_size ? st.st_size : 1);

	if (!data || fread(data, 1, st.st_size, f) != (size_t)st.st_size) {
		fprintf(stderr, "%s: cannot be read\n", path);
		exit(2);
	}
	replay_bytes(data, st.st_size, path);
	free(data);
	fclose(f);
}

static int no_dot_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void replay_folder(const char *path)
{
	struct dirent **entries;
	int n = scandir(path, &entries, no_dot_file, alphasort);

	for (int i = 0; i < n; i++) {
		char file[4096];

		snprintf(file, sizeof(file), "%s/%s", path,
			 entries[i]->d_name);
		replay_file(file);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

int main(int argc, char **argv)
{
	replay_bytes((const uint8_t *)"", 0, "no bytes");
	for (int i = 1; i < argc; i++) {
		struct stat st;

		if (!stat(argv[i], &st) && S_ISDIR(st.st_mode))
			replay_folder(argv[i]);
		else
			replay_file(argv[i]);
	}
	printf("1..%d\n", n_done);
	return 0;
}
