/* SPDX-License-Identifier: MIT */
#include "report/out.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

/* Files of a folder whose name begins so. */
static int count_in(const char *folder, const char *prefix)
{
	DIR *dir = opendir(folder);
	int n = 0;

	for (struct dirent *d; (d = readdir(dir));)
		n += !strncmp(d->d_name, prefix, strlen(prefix));
	closedir(dir);
	return n;
}

static int count_files(const char *prefix)
{
	return count_in(".", prefix);
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

/* A signal that ends us leaves nothing either. */
TEST(being_killed_leaves_nothing)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

	unlink("out.killed");
	for (size_t i = 0; i < countof(signals); i++) {
		struct out o;
		int status = 0;
		pid_t pid = fork();

		if (!pid) {
			if (!out_open(&o, "out.killed", false, &err))
				_exit(1);
			out_adds(&o, "half");
			raise(signals[i]);
			_exit(2);
		}
		waitpid(pid, &status, 0);
		CHECK(WIFSIGNALED(status));
		CHECK_U64((uint64_t)WTERMSIG(status), (uint64_t)signals[i]);
		CHECK_U64((uint64_t)count_files("out.killed"), 0);
	}
}

/* From now on every file system is one that makes no files without a name. */
static bool refuse_unnamed(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
			 O_TMPFILE & ~O_DIRECTORY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { countof(code), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) &&
	       open(".", O_TMPFILE | O_RDWR, 0600) < 0;
}

TEST(being_killed_with_a_name_beside)
{
	int status = 0;
	pid_t pid;

	unlink("out.beside");
	pid = fork();
	if (!pid) {
		struct out o;

		if (!refuse_unnamed())
			_exit(77);
		if (!replace("out.beside", "text", false) ||
		    count_files("out.beside") != 1)
			_exit(1);
		unlink("out.beside");
		if (!out_open(&o, "out.beside", false, &err) ||
		    count_files("out.beside") != 1)
			_exit(2);
		raise(SIGTERM);
		_exit(3);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status))
		printf("# status %d\n", WEXITSTATUS(status));
	else if (WTERMSIG(status) != SIGTERM)
		printf("# signal %d\n", WTERMSIG(status));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("system calls cannot be refused");
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	CHECK_U64((uint64_t)count_files("out.beside"), 0);
}

TEST(a_limit_on_file_sizes)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		struct rlimit limit = { 2, 2 };

		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(replace("out.limit", "text", false) ||
		      strcmp(err.msg, "out.limit: File too large"));
	}
	waitpid(pid, &status, 0);
	CHECK_U64((uint64_t)status, 0);
	CHECK_U64((uint64_t)count_files("out.limit"), 0);
}

TEST(links_are_followed)
{
	struct stat st;

	unlink("out.link");
	put_file("out.linked", "");
	CHECK(!symlink("out.linked", "out.link"));
	CHECK(replace("out.link", "new", false));
	CHECK(!lstat("out.link", &st) && S_ISLNK(st.st_mode));
	CHECK_STR(get_file("out.linked"), "new");
	put_file("out.linked", "mine");
	CHECK(!replace("out.link", "new", false));
	CHECK_STR(get_file("out.linked"), "mine");
	unlink("out.linked");
	CHECK(!replace("out.link", "new", true));
	CHECK_STR(err.msg, "out.link: a link to something that is not there");
	CHECK(!lstat("out.link", &st) && S_ISLNK(st.st_mode));
	unlink("out.link");
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
