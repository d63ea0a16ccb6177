/* SPDX-License-Identifier: MIT */
/* Drops capabilities with plain system calls (only two numbers are needed) and filters system calls with
 * libseccomp. The recorder's filter lists the calls it uses while recording. Other calls fail and are
 * reported instead of killing the recorder: a future C library may use more, and a recording is worth more
 * than a complete list. Calls that are dangerous and useless for recording are fatal. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <linux/securebits.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/system.h"

enum { NOBODY = 65534 };

/* For a helper, including mapping of files: libelf maps them privately. */
#define HELPER_MEMORY (4ull << 30)

/* Sanitizers make additional system calls and map terabytes of memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define BIT(capability) (1ull << (capability))

static int set_capabilities(uint64_t keep)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct has[2], data[2] = {{0}};
	if (syscall(SYS_capget, &header, has))
		return -errno;
	for (int i = 0; i < 2; i++) {
		uint32_t kept = has[i].permitted & (uint32_t)(keep >> (32 * i));
		data[i] = (struct __user_cap_data_struct){.effective = kept, .permitted = kept};
	}
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

/* Neither exec nor a change of user may restore a capability. Without CAP_SETPCAP the securebits cannot be
 * set, but no_new_privs still applies to everything. */
static void lock_capabilities(uint64_t keep)
{
	prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
				     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
				     SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		if (!(keep & BIT(capability)))
			prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}

static int rule(scmp_filter_ctx filter, uint32_t action, const int *calls, size_t count)
{
	int err = 0;
	for (size_t i = 0; i < count && !err; i++)
		err = seccomp_rule_add(filter, action, calls[i], 0);
	return err;
}

static int allow(scmp_filter_ctx filter, const int *calls, size_t count)
{
	return rule(filter, SCMP_ACT_ALLOW, calls, count);
}

/* Calls that reach other processes or the kernel, and that no process of the recorder needs. */
static int refuse_dangerous(scmp_filter_ctx filter, uint32_t action)
{
	static const int calls[] = {SCMP_SYS(ptrace),
				    SCMP_SYS(process_vm_readv),
				    SCMP_SYS(process_vm_writev),
				    SCMP_SYS(init_module),
				    SCMP_SYS(finit_module),
				    SCMP_SYS(kexec_load),
				    SCMP_SYS(kexec_file_load),
				    SCMP_SYS(mount),
				    SCMP_SYS(setns),
				    SCMP_SYS(pidfd_getfd)};
	return rule(filter, action, calls, sizeof calls / sizeof *calls);
}

/* For those that start no program. */
static int refuse_deadly(scmp_filter_ctx filter)
{
	static const int calls[] = {SCMP_SYS(execve), SCMP_SYS(execveat)};
	const int err = rule(filter, SCMP_ACT_KILL_PROCESS, calls, sizeof calls / sizeof *calls);
	return err ? err : refuse_dangerous(filter, SCMP_ACT_KILL_PROCESS);
}

/* Memory, but not executable memory. */
static int allow_memory(scmp_filter_ctx filter)
{
	static const int calls[] = {SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(brk), SCMP_SYS(madvise)};
	int err = allow(filter, calls, sizeof calls / sizeof *calls);
	err = err ? err
		  : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	return err ? err
		   : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				      SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
}

/* Calls of any process: read the time, exit, wait for a lock of the C library. */
static int allow_living(scmp_filter_ctx filter)
{
	static const int calls[] = {
	    SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres),  SCMP_SYS(exit_group),	 SCMP_SYS(exit),
	    SCMP_SYS(futex),	     SCMP_SYS(rt_sigreturn),  SCMP_SYS(restart_syscall), SCMP_SYS(getpid),
	    SCMP_SYS(gettid),	     SCMP_SYS(rt_sigprocmask)};
	int err = allow(filter, calls, sizeof calls / sizeof *calls);
	/* abort() */
	return err ? err
		   : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				      SCMP_A2(SCMP_CMP_EQ, SIGABRT));
}

/* Activates a filter and frees it. */
static int load(scmp_filter_ctx filter, int err)
{
	err = err || SANITIZED ? err : seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

/* The start of a helper: everything except the filter. `files`: it keeps the file system. */
static int become_nobody(pid_t parent, uint64_t keep, bool files)
{
	const struct rlimit none = {0, 0}, memory = {HELPER_MEMORY, HELPER_MEMORY};
	/* An empty directory that no other process can write to, and that disappears with this process. */
	if (!files && chroot("/proc/self/fdinfo") == 0 && chdir("/"))
		return -errno;
	lock_capabilities(keep);
	/* The saved user stays the parent's, which may signal only processes of its user. Otherwise it would
	 * need CAP_KILL, which covers all processes. Without capabilities the only way back is setuid(),
	 * which the filter blocks. */
	if (geteuid() == 0 && setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	    setresuid(NOBODY, NOBODY, 0)) {
	}
	int err = set_capabilities(keep);
	if (err)
		return err;
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_FSIZE, &none);
	setrlimit(RLIMIT_NPROC, &none);
	if (!SANITIZED)
		setrlimit(RLIMIT_DATA, &memory);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/* After the change of user, which resets it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		return -ESRCH;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

int privileges_become_user(pid_t recorder, uid_t uid, gid_t gid)
{
	lock_capabilities(0);
	if (geteuid() == 0 && uid != 0 &&
	    (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid)))
		return -errno;
	int err = set_capabilities(0);
	if (err)
		return err;
	prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	if (getppid() != recorder)
		return -ESRCH;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	/* What it starts inherits this, down to the triggers' commands, which may be any program. */
	static const int refused[] = {SCMP_SYS(bpf),	       SCMP_SYS(perf_event_open),  SCMP_SYS(kcmp),
				      SCMP_SYS(umount2),       SCMP_SYS(pivot_root),	   SCMP_SYS(chroot),
				      SCMP_SYS(delete_module), SCMP_SYS(open_by_handle_at)};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	if (!filter)
		return -ENOMEM;
	err = rule(filter, SCMP_ACT_ERRNO(EPERM), refused, sizeof refused / sizeof *refused);
	return load(filter, err ? err : refuse_dangerous(filter, SCMP_ACT_ERRNO(EPERM)));
}

/* A helper becomes nobody and may use these system calls, those in `more`, and the calls of any process. */
static int confine(pid_t parent, uint64_t keep, bool files, const int *calls, size_t count,
		   int (*more)(scmp_filter_ctx filter))
{
	int err = become_nobody(parent, keep, files);
	if (err)
		return err;
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!filter)
		return -ENOMEM;
	err = allow(filter, calls, count);
	err = err ? err : more(filter);
	err = err ? err : allow_living(filter);
	return load(filter, err);
}

int privileges_confine_unwinding(pid_t parent)
{
	static const int calls[] = {SCMP_SYS(recvmsg),
				    SCMP_SYS(sendmsg),
				    SCMP_SYS(close),
				    SCMP_SYS(read),
				    SCMP_SYS(pread64),
				    SCMP_SYS(lseek),
				    SCMP_SYS(fcntl),
				    SCMP_SYS(fstat),
				    SCMP_SYS(newfstatat) /* glibc's fstat; there is no file system */,
				    SCMP_SYS(poll),
				    SCMP_SYS(ppoll)};
	return confine(parent, 0, false, calls, sizeof calls / sizeof *calls, allow_memory);
}

/* Opens files for reading only. */
static int allow_reading(scmp_filter_ctx filter)
{
	const uint64_t writing = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;
	const int err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
					 SCMP_A2(SCMP_CMP_MASKED_EQ, writing, O_RDONLY));
	return err ? err
		   : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(open), 1,
				      SCMP_A1(SCMP_CMP_MASKED_EQ, writing, O_RDONLY));
}

static int allow_target_files(scmp_filter_ctx filter)
{
	const int err = allow_memory(filter);
	return err ? err : allow_reading(filter);
}

int privileges_confine_files(pid_t parent)
{
	static const int calls[] = {SCMP_SYS(recvmsg),	  SCMP_SYS(sendmsg), SCMP_SYS(close),
				    SCMP_SYS(read),	  SCMP_SYS(pread64), SCMP_SYS(lseek),
				    SCMP_SYS(fcntl),	  SCMP_SYS(fstat),   SCMP_SYS(newfstatat),
				    SCMP_SYS(readlink),	  SCMP_SYS(poll),    SCMP_SYS(ppoll),
				    SCMP_SYS(readlinkat), SCMP_SYS(statx),   SCMP_SYS(getdents64)};
	const uint64_t keep = BIT(CAP_SYS_PTRACE) | BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_DAC_READ_SEARCH);
	return confine(parent, keep, true, calls, sizeof calls / sizeof *calls, allow_target_files);
}

int privileges_confine_requests(pid_t parent)
{
	static const int calls[] = {SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(poll), SCMP_SYS(ppoll)};
	return confine(parent, 0, false, calls, sizeof calls / sizeof *calls, allow_memory);
}

/* Switching statistics on is the only bpf() operation it may use. */
static int allow_statistics(scmp_filter_ctx filter)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(bpf), 1,
				SCMP_A0(SCMP_CMP_EQ, BPF_ENABLE_STATS));
}

int privileges_confine_statistics(pid_t parent)
{
	static const int calls[] = {SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(close)};
	return confine(parent, BIT(CAP_SYS_ADMIN), false, calls, sizeof calls / sizeof *calls,
		       allow_statistics);
}

static int allow_attaching(scmp_filter_ctx filter)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(bpf), 1,
				SCMP_A0(SCMP_CMP_EQ, BPF_RAW_TRACEPOINT_OPEN));
}

int privileges_confine_switch(pid_t parent)
{
	static const int calls[] = {SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(close)};
	return confine(parent, BIT(CAP_BPF) | BIT(CAP_PERFMON), false, calls, sizeof calls / sizeof *calls,
		       allow_attaching);
}

static int allow_event_programs(scmp_filter_ctx filter)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
				SCMP_A1(SCMP_CMP_EQ, PERF_EVENT_IOC_SET_BPF));
}

int privileges_confine_events(pid_t parent)
{
	static const int calls[] = {SCMP_SYS(read), SCMP_SYS(sendmsg), SCMP_SYS(close),
				    SCMP_SYS(perf_event_open)};
	return confine(parent, BIT(CAP_PERFMON), false, calls, sizeof calls / sizeof *calls,
		       allow_event_programs);
}

/* Reports the call and makes it fail. This must not take a lock: the call may have come from anywhere. */
static void on_refused(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	char text[160];
	unsigned call = (unsigned)info->si_syscall, digits = 1;
	static const char before[] = "forktail record: system call ",
			  after[] = " was refused: it is not on the recorder's list of allowed calls "
				    "(docs/how-it-works/security.md). Recording continues\n";
	size_t at = sizeof before - 1;
	memcpy(text, before, at);
	for (unsigned rest = call; rest > 9; rest /= 10)
		digits++;
	for (unsigned i = digits, rest = call; i-- > 0; rest /= 10)
		text[at + i] = (char)('0' + rest % 10);
	memcpy(text + at + digits, after, sizeof after - 1);
	if (write(STDERR_FILENO, text, at + digits + sizeof after - 1) < 0) {
	}
	machine_set_result(context, -EPERM);
}

static int allow_files(scmp_filter_ctx filter)
{
	static const int calls[] = {
	    SCMP_SYS(read),	  SCMP_SYS(pread64),	SCMP_SYS(readv),      SCMP_SYS(write),
	    SCMP_SYS(writev),	  SCMP_SYS(pwrite64),	SCMP_SYS(pwritev),    SCMP_SYS(pwritev2),
	    SCMP_SYS(fallocate),  SCMP_SYS(close),	SCMP_SYS(ftruncate),  SCMP_SYS(lseek),
	    SCMP_SYS(fstat),	  SCMP_SYS(newfstatat), SCMP_SYS(statx),      SCMP_SYS(fstatfs),
	    SCMP_SYS(getdents64), SCMP_SYS(readlink),	SCMP_SYS(readlinkat), SCMP_SYS(access),
	    SCMP_SYS(faccessat),  SCMP_SYS(faccessat2), SCMP_SYS(fcntl)};
	const int err = allow(filter, calls, sizeof calls / sizeof *calls);
	return err ? err : allow_reading(filter);
}

static int allow_bpf(scmp_filter_ctx filter, const unsigned *commands, size_t count)
{
	int err = 0;
	for (size_t i = 0; i < count && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(bpf), 1,
				       SCMP_A0(SCMP_CMP_EQ, commands[i]));
	return err;
}

/* The kernel programs: reading their figures, passing them the counters of CPUs that come online, and
 * detaching them. */
static int allow_programs(scmp_filter_ctx filter)
{
	static const unsigned long requests[] = {PERF_EVENT_IOC_ENABLE,
						 PERF_EVENT_IOC_DISABLE,
						 PERF_EVENT_IOC_SET_BPF,
						 PERF_EVENT_IOC_PERIOD,
						 FIONREAD,
						 TCGETS};
	static const unsigned commands[] = {BPF_OBJ_GET_INFO_BY_FD, BPF_MAP_LOOKUP_AND_DELETE_BATCH,
					    BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM};
	int err = allow_bpf(filter, commands, sizeof commands / sizeof *commands);
	for (size_t i = 0; i < sizeof requests / sizeof *requests && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
				       SCMP_A1(SCMP_CMP_EQ, requests[i]));
	return err;
}

/* Segments: creates and deletes files in the ring's directory, as their owner, which is the recorder's
 * file-system user by now. A process that may write to a file may lock it. In addition: adding processes to
 * trace, starting iterators over all tasks, and running one program on every CPU. */
static int allow_ring(scmp_filter_ctx filter, int ring)
{
	static const unsigned commands[] = {BPF_PROG_TEST_RUN, BPF_ITER_CREATE};
	const uint64_t making = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const scmp_datum_t directory = (scmp_datum_t)ring;
	int err =
	    seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 3, SCMP_A0_32(SCMP_CMP_EQ, directory),
			     SCMP_A2_32(SCMP_CMP_EQ, making), SCMP_A3_32(SCMP_CMP_EQ, 0600));
	err = err ? err
		  : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(unlinkat), 2,
				     SCMP_A0_32(SCMP_CMP_EQ, directory), SCMP_A2_32(SCMP_CMP_EQ, 0));
	err = err ? err
		  : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(flock), 1,
				     SCMP_A1_32(SCMP_CMP_EQ, LOCK_EX | LOCK_NB));
	return err ? err : allow_bpf(filter, commands, sizeof commands / sizeof *commands);
}

int privileges_confine_starter(pid_t recorder)
{
	const uint64_t keep = BIT(CAP_SYS_PTRACE) | BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_DAC_READ_SEARCH) |
			      BIT(CAP_SYS_ADMIN) | BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_SETPCAP) |
			      BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SYS_CHROOT);
	lock_capabilities(keep);
	int err = set_capabilities(keep);
	if (err)
		return err;
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (getppid() != recorder)
		return -ESRCH;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	return filter ? load(filter, refuse_deadly(filter)) : -ENOMEM;
}

int privileges_filter_recorder(int ring)
{
	static const int calls[] = {SCMP_SYS(poll),
				    SCMP_SYS(ppoll),
				    SCMP_SYS(epoll_wait),
				    SCMP_SYS(epoll_ctl),
				    SCMP_SYS(epoll_pwait),
				    SCMP_SYS(nanosleep),
				    SCMP_SYS(clock_nanosleep),
				    SCMP_SYS(uname),
				    SCMP_SYS(sysinfo),
				    SCMP_SYS(prlimit64),
				    SCMP_SYS(getrlimit),
				    SCMP_SYS(sched_getaffinity),
				    SCMP_SYS(getcpu),
				    SCMP_SYS(sched_yield),
				    SCMP_SYS(sendmsg),
				    SCMP_SYS(recvmsg),
				    SCMP_SYS(wait4),
				    SCMP_SYS(getrandom),
				    SCMP_SYS(geteuid)};
	struct sigaction refused = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO | SA_NODEFER};
	if (sigaction(SIGSYS, &refused, NULL))
		return -errno;
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
	if (!filter)
		return -ENOMEM;
	int err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	err = err ? err : allow(filter, calls, sizeof calls / sizeof *calls);
	err = err ? err : allow_living(filter);
	err = err ? err : allow_memory(filter);
	err = err ? err : allow_files(filter);
	err = err ? err : allow_programs(filter);
	err = err ? err : refuse_deadly(filter);
	err = err || ring < 0 ? err : allow_ring(filter, ring);
	/* To a helper that is started later; setsockopt() is tried for its size. */
	err = err ? err
		  : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1,
				     SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	err = err ? err
		  : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt), 1,
				     SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET));
	return load(filter, err);
}

int privileges_drop_recorder(bool descriptors)
{
	/* CAP_BPF: before Linux 5.19, bpf() needs it for everything if unprivileged BPF is off.
	 * CAP_SYS_PTRACE: /proc of other users' processes. */
	uint64_t keep = BIT(CAP_BPF) | BIT(CAP_SYS_PTRACE);
	if (descriptors) /* /proc/PID/fd is readable only by its owner, even for processes that may trace it
			  */
		keep |= BIT(CAP_DAC_READ_SEARCH);
	lock_capabilities(keep);
	int err = set_capabilities(keep);
	if (err)
		return err;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

/* The initial pid namespace is identified by its fixed inode number (PROC_PID_INIT_INO in the kernel). */

static const uint32_t initial_pid_namespace = 0xeffffffc;

uint32_t pid_namespace(void)
{
	struct stat s;
	if (stat("/proc/self/ns/pid", &s) || (uint32_t)s.st_ino == initial_pid_namespace)
		return 0;
	return (uint32_t)s.st_ino;
}

bool proc_is_of_pid_namespace(void)
{
	char text[32];
	ssize_t n = readlink("/proc/self", text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[n] = 0;
	return atol(text) == getpid();
}
