// SPDX-License-Identifier: MIT
// See confine.h.
#include "common/confine.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <linux/fs.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace forktail::common
{
namespace
{

// Sanitizers make additional system calls.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Version 2 has LANDLOCK_ACCESS_FS_REFER; without it no file can be hard-linked into another directory, as
// snapshots do.
constexpr long kLandlockLeast = 2;
constexpr long kLandlockTruncate = 3;
constexpr uint64_t kRefer = 1 << 13, kTruncate = 1 << 14; // not in older headers

constexpr int kCalls[] = {
    // files
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(write), SCMP_SYS(writev),
    SCMP_SYS(pwrite64), SCMP_SYS(pwritev), SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(close),
    SCMP_SYS(close_range), SCMP_SYS(lseek), SCMP_SYS(fstat), SCMP_SYS(stat), SCMP_SYS(lstat),
    SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(statfs), SCMP_SYS(fstatfs), SCMP_SYS(access),
    SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64),
    SCMP_SYS(getcwd), SCMP_SYS(chdir), SCMP_SYS(fcntl), SCMP_SYS(flock), SCMP_SYS(dup), SCMP_SYS(dup2),
    SCMP_SYS(dup3), SCMP_SYS(pipe), SCMP_SYS(pipe2), SCMP_SYS(fadvise64), SCMP_SYS(readahead),
    SCMP_SYS(memfd_create),
    // changes of files, which Landlock limits
    SCMP_SYS(mkdir), SCMP_SYS(mkdirat), SCMP_SYS(rmdir), SCMP_SYS(unlink), SCMP_SYS(unlinkat),
    SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(link), SCMP_SYS(linkat),
    SCMP_SYS(truncate), SCMP_SYS(ftruncate), SCMP_SYS(fallocate), SCMP_SYS(fsync), SCMP_SYS(fdatasync),
    SCMP_SYS(chmod), SCMP_SYS(fchmod), SCMP_SYS(fchmodat), SCMP_SYS(fchown), SCMP_SYS(fchownat),
    SCMP_SYS(umask), SCMP_SYS(copy_file_range), SCMP_SYS(sendfile), SCMP_SYS(utimensat),
    // memory
    SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(msync), SCMP_SYS(mincore),
    // threads, time and waiting
    SCMP_SYS(futex), SCMP_SYS(set_robust_list), SCMP_SYS(get_robust_list), SCMP_SYS(set_tid_address),
    SCMP_SYS(rseq), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_setaffinity),
    SCMP_SYS(getcpu), SCMP_SYS(gettid), SCMP_SYS(getpid), SCMP_SYS(getppid), SCMP_SYS(exit),
    SCMP_SYS(exit_group), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall), SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep),
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    SCMP_SYS(getrusage), SCMP_SYS(times), SCMP_SYS(getrandom), SCMP_SYS(uname), SCMP_SYS(sysinfo),
    SCMP_SYS(getrlimit), SCMP_SYS(setrlimit), SCMP_SYS(prlimit64), SCMP_SYS(getuid), SCMP_SYS(geteuid),
    SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(select),
    SCMP_SYS(pselect6), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_create1), SCMP_SYS(eventfd2), SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime)};

constexpr int kOfChildren[] = {SCMP_SYS(fork),	 SCMP_SYS(vfork),      SCMP_SYS(wait4),
			       SCMP_SYS(waitid), SCMP_SYS(pidfd_open), SCMP_SYS(pidfd_send_signal),
			       SCMP_SYS(setsid), SCMP_SYS(setpgid)};

constexpr int kOfSockets[] = {SCMP_SYS(bind),	     SCMP_SYS(listen),	   SCMP_SYS(accept),
			      SCMP_SYS(accept4),     SCMP_SYS(connect),	   SCMP_SYS(getsockname),
			      SCMP_SYS(getpeername), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt),
			      SCMP_SYS(shutdown),    SCMP_SYS(sendto),	   SCMP_SYS(recvfrom),
			      SCMP_SYS(sendmsg),     SCMP_SYS(recvmsg)};

// One filter that is built rule by rule; the first error stays.
struct Filter {
	scmp_filter_ctx context = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int error = context ? 0 : -ENOMEM;
	~Filter() { seccomp_release(context); }
	template <typename... Conditions> void Allow(int call, Conditions... conditions)
	{
		if (!error)
			error = seccomp_rule_add(context, SCMP_ACT_ALLOW, call, sizeof...(conditions),
						 conditions...);
	}
};

int LimitCalls(const Allowed &allowed)
{
	Filter f;
	for (const int call : kCalls)
		f.Allow(call);
	if (allowed.children)
		for (const int call : kOfChildren)
			f.Allow(call);
	if (allowed.sockets) {
		for (const int call : kOfSockets)
			f.Allow(call);
		for (const unsigned family : {AF_UNIX, AF_INET, AF_INET6})
			f.Allow(SCMP_SYS(socket), SCMP_A0(SCMP_CMP_EQ, family));
	}
	// A thread has CLONE_VM, a child has no flag of a namespace. clone3's flags cannot be read by a
	// filter; without it the C library uses clone.
	constexpr uint64_t kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID |
					 CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	const uint64_t wanted = allowed.children ? 0 : CLONE_VM | CLONE_THREAD;
	f.Allow(SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, kNamespaces | wanted, wanted));
	for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)})
		f.Allow(call, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	constexpr unsigned long kRequests[] = {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FICLONE};
	for (const unsigned long request : kRequests)
		f.Allow(SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_EQ, request));
	for (const unsigned long option : {PR_SET_PDEATHSIG, PR_SET_NAME, PR_GET_NAME, PR_SET_DUMPABLE})
		f.Allow(SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, option));
	f.Allow(SCMP_SYS(tgkill), SCMP_A2(SCMP_CMP_EQ, SIGABRT)); // abort()
	return f.error || kSanitized ? f.error : seccomp_load(f.context);
}

// Adds what may be done below `path`, or to it. Returns 0 or an errno. What cannot be opened is left out:
// writing there fails anyway.
int Permit(int rules, const std::string &path, uint64_t file, uint64_t directory)
{
	struct stat st = {};
	struct landlock_path_beneath_attr below = {};
	below.parent_fd = open(path.c_str(), O_PATH | O_CLOEXEC);
	if (below.parent_fd < 0)
		return 0;
	const bool is_directory = fstat(below.parent_fd, &st) == 0 && S_ISDIR(st.st_mode);
	below.allowed_access = is_directory ? file | directory : file;
	const long rc = below.allowed_access
			    ? syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0)
			    : 0;
	const int error = rc ? errno : 0;
	close(below.parent_fd);
	return error;
}

// Returns 0 or an errno.
int LimitWriting(const Allowed &allowed)
{
	const long version =
	    syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (version < kLandlockLeast)
		return 0;
	uint64_t file = LANDLOCK_ACCESS_FS_WRITE_FILE;
	if (version >= kLandlockTruncate)
		file |= kTruncate;
	const uint64_t directory = LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
				   LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
				   LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
				   LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
				   LANDLOCK_ACCESS_FS_MAKE_SYM | kRefer;
	struct landlock_ruleset_attr handled = {};
	handled.handled_access_fs = file | directory | LANDLOCK_ACCESS_FS_EXECUTE;
	const int rules =
	    static_cast<int>(syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0));
	if (rules < 0)
		return errno;
	int error = Permit(rules, "/dev/null", file, 0);
	for (const std::string &path : allowed.writable)
		error = error ? error : Permit(rules, path, file, directory);
	for (const std::string &path : allowed.removable)
		error = error ? error : Permit(rules, path, 0, LANDLOCK_ACCESS_FS_REMOVE_FILE);
	if (!error && syscall(SYS_landlock_restrict_self, rules, 0))
		error = errno;
	close(rules);
	return error;
}

} // namespace

bool Confine(const Allowed &allowed, std::string *error)
{
	int number = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? errno : 0;
	if (!number)
		number = LimitWriting(allowed);
	if (!number)
		number = -LimitCalls(allowed);
	if (number)
		*error = std::string("cannot give up rights: ") + strerror(number);
	return !number;
}

std::string PlaceOfOutput(const std::string &path)
{
	namespace fs = std::filesystem;
	std::error_code ec;
	const fs::file_type type = fs::status(path, ec).type();
	if (path.empty() || type == fs::file_type::fifo || type == fs::file_type::socket)
		return "";
	const fs::path real = fs::weakly_canonical(fs::absolute(path, ec), ec);
	return type == fs::file_type::character ? real : real.parent_path();
}

} // namespace forktail::common
