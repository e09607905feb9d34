/* SPDX-License-Identifier: MIT */
#include "base/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/types.h"

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

/* Of a packet that is the struct seccomp_data of a system call. */
#define LOAD(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
#define REFUSE RETURN(SECCOMP_RET_ERRNO | EPERM)
#define REFUSE_CALL(name) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), REFUSE

/* Numbers from here on are another machine's (x32). */
enum { FOREIGN_CALLS = 0x40000000 };

void confine(void)
{
#if defined(MACHINE) && !defined(__SANITIZE_ADDRESS__)
	static struct sock_filter code[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0), REFUSE,
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN_CALLS, 0, 1),
		REFUSE,
		REFUSE_CALL(execve), REFUSE_CALL(execveat),
		REFUSE_CALL(socket), REFUSE_CALL(socketpair),
#ifdef __NR_io_uring_setup
		REFUSE_CALL(io_uring_setup),
#endif
		RETURN(SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { countof(code), code };

	/* Without the first the second is for root alone. */
	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		(void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
#endif
}
