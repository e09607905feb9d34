/* SPDX-License-Identifier: MIT */
#include "report/out.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static struct err err;

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
}

static const char *get_file(const char *path)
{
	static char text[1000];
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		return NULL;
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

/* Files here whose name begins so. */
static int count_files(const char *prefix)
{
	DIR *dir = opendir(".");
	int n = 0;

	for (struct dirent *d; (d = readdir(dir));)
		n += !strncmp(d->d_name, prefix, strlen(prefix));
	closedir(dir);
	return n;
}

static bool replace(const char *path, const char *text, bool force)
{
	struct out o;

	err = (struct err){ .kind = ERR_NONE };
	if (!out_open(&o, path, force, &err))
		return false;
	out_adds(&o, text);
	return out_close(&o, &err);
}

TEST(a_new_file_is_private_and_whole)
{
	struct stat st;
	struct out o;

	unlink("out.new");
	umask(0);
	if (!CHECK(out_open(&o, "out.new", false, &err)))
		return;
	out_adds(&o, "report");
	/* Not there until it is complete. */
	CHECK(!get_file("out.new"));
	CHECK(out_close(&o, &err));
	CHECK_STR(get_file("out.new"), "report");
	CHECK(!stat("out.new", &st));
	CHECK_U64(st.st_mode & 0777, 0600);
	CHECK_U64((uint64_t)count_files("out.new"), 1);
}

TEST(giving_up_leaves_nothing)
{
	struct out o;

	unlink("out.gone");
	if (!CHECK(out_open(&o, "out.gone", false, &err)))
		return;
	out_adds(&o, "half");
	out_abandon(&o);
	CHECK_U64((uint64_t)count_files("out.gone"), 0);
}

TEST(only_reports_are_replaced)
{
	static const char *const own[] = {
		"{\n  \"schema\": \"heapcore-report/1\",\n",
		"{\"address\":\"0x1\",\"size\":1}\n",
		"core: x, 1 thread\n1.0K of private memory, all decoded\n",
		"",
	};
	static const char *const foreign[] = {
		"#include <stdio.h>\n",
		"{\n  \"schema\": \"other/1\",\n",
		"x\ny\n1.0K of private memory, all decoded\n",
		"\177ELF",
	};

	for (size_t i = 0; i < countof(own); i++) {
		put_file("out.own", own[i]);
		CHECK(replace("out.own", "new", false));
		CHECK_STR(get_file("out.own"), "new");
	}
	for (size_t i = 0; i < countof(foreign); i++) {
		put_file("out.foreign", foreign[i]);
		CHECK(!replace("out.foreign", "new", false));
		CHECK_STR(err.msg, "out.foreign: exists and is not a report "
			  "of heapcore");
		CHECK_STR(get_file("out.foreign"), foreign[i]);
	}
	CHECK(replace("out.foreign", "new", true));
	CHECK_STR(get_file("out.foreign"), "new");
}

TEST(csv_replaces_the_same_csv)
{
	put_file("out.csv", "name,bytes\na,1\n");
	CHECK(replace("out.csv", "name,bytes\nb,2\n", false));
	CHECK_STR(get_file("out.csv"), "name,bytes\nb,2\n");
	CHECK(!replace("out.csv", "name,blocks\nb,2\n", false));
	CHECK_STR(err.msg,
		  "out.csv: exists and is not a report of heapcore");
	CHECK_STR(get_file("out.csv"), "name,bytes\nb,2\n");
	CHECK_U64((uint64_t)count_files("out.csv"), 1);
}

TEST(a_full_disk_is_reported)
{
	struct out o;

	if (access("/dev/full", W_OK))
		SKIP("no /dev/full");
	CHECK(!replace("/dev/full", "text", false));
	CHECK_STR(err.msg, "/dev/full: No space left on device");
	/* More than the buffer holds: the error is kept till the end. */
	out_open_fd(&o, open("/dev/full", O_WRONLY));
	for (int i = 0; i < 3 * OUT_BUFFER; i++)
		out_addc(&o, 'x');
	CHECK_U64((uint64_t)o.error, ENOSPC);
	CHECK(!out_close(&o, &err));
	CHECK_STR(err.msg, "standard output: No space left on device");
}

TEST(a_place_that_cannot_be_written)
{
	CHECK(!replace("no/such/folder", "text", false));
	CHECK_STR(err.msg, "no/such/folder: No such file or directory");
	CHECK(!replace(".", "text", true));
	CHECK_STR(err.msg, ".: Is a directory");
}

TEST(long_and_short_writes_keep_their_order)
{
	static char big[OUT_BUFFER + 1000];
	struct out o;
	FILE *f = tmpfile();
	char *room;
	char head[8];
	long size;

	memset(big, 'b', sizeof(big));
	out_open_fd(&o, dup(fileno(f)));
	out_adds(&o, "one ");
	out_add(&o, big, sizeof(big));
	out_printf(&o, "%s%0300d", "two", 7);
	room = out_room(&o, OUT_BUFFER);
	memset(room, 'r', OUT_BUFFER);
	out_done(&o, OUT_BUFFER);
	out_pad(&o, '.', 3);
	CHECK(out_close(&o, &err));
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	CHECK_U64((uint64_t)size, 4 + sizeof(big) + 303 + OUT_BUFFER + 3);
	rewind(f);
	CHECK_U64(fread(head, 1, 5, f), 5);
	CHECK_MEM(head, "one b", 5);
	fseek(f, -4, SEEK_END);
	CHECK_U64(fread(head, 1, 4, f), 4);
	CHECK_MEM(head, "r...", 4);
	fclose(f);
}
