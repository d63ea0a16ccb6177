// SPDX-License-Identifier: MIT
// Runs triggers' commands, within limits of memory and rights.
//
// One packet (MessagePack) per program, and one when it has ended.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <grp.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json.h"
#include "jobs.h"
#include "live/guard.h"

namespace forktail::live::guard
{

namespace
{

constexpr size_t kMostPacket = 4096;
constexpr int kLookMs = 500; // at a program's time limit
constexpr int kNotStartedStatus = common::kNotStarted << 8;
constexpr uint64_t kLeastMemory = 64 << 20;

bool Send(int fd, const common::Json &packet)
{
	const std::vector<uint8_t> bytes = common::Json::to_msgpack(packet);
	return bytes.size() <= kMostPacket &&
	       send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

// Returns 1, 0 at the end, or -1: no packet is there. A packet that is none becomes an empty object.
int Receive(int fd, common::Json *packet)
{
	std::vector<uint8_t> bytes(kMostPacket);
	const ssize_t n = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
	if (n <= 0)
		return n == 0 || (errno != EAGAIN && errno != EINTR) ? 0 : -1;
	bytes.resize(static_cast<size_t>(n));
	*packet = common::Json::from_msgpack(bytes, true, false);
	if (!packet->is_object())
		*packet = common::Json::object();
	return 1;
}

// ---- the process ----

struct Starting {
	const GuardOptions &options;
	Config config;
	const std::string &snapshots;
};

// Each program has its own session, so that its descendants end with it.
common::Command InSession(const std::string &name, uint64_t limit_ns)
{
	return {.name = name,
		.directory = "/",
		.out = STDERR_FILENO,
		.err = STDERR_FILENO,
		.group = common::Group::kSession,
		.group_ends = true,
		.limit_ns = limit_ns,
		.oom_victim = true};
}

common::Command Explanation(const Starting &s, const std::string &snapshot)
{
	// The recorder is in the same cgroup. It must never be the recorder that exceeds the limit.
	const uint64_t most = std::min(s.config.limits.explain_bytes, MemoryLimit() / 2);
	common::Command c = InSession("the explanation", s.config.limits.explain_ns);
	c.argv = {s.options.forktail,
		  "explain",
		  snapshot,
		  "--ascii",
		  "--confined",
		  "--json-to",
		  snapshot + "/." + kExplanations[1],
		  "--memory",
		  std::to_string(std::max(most / 4, kLeastMemory))};
	c.environment = {{"COLUMNS", "100"}, {"NO_COLOR", "1"}};
	c.output = snapshot + "/." + kExplanations[0];
	c.output_flags = O_TRUNC | O_NOFOLLOW;
	c.idle = true;
	c.memory_bytes = most;
	return c;
}

// Without words: the trigger has no command, or root owns the ring.
common::Command TriggersCommand(const Starting &s, const std::string &snapshot, const std::string &name)
{
	const Trigger *trigger = FindTrigger(s.config.triggers, name);
	if (!trigger || trigger->command.argv.empty() || geteuid() == 0)
		return {};
	common::Command c = InSession(trigger->command.argv[0], s.config.limits.command_ns);
	c.argv = trigger->command.argv;
	c.argv.push_back(snapshot);
	c.environment = {{"FORKTAIL_SNAPSHOT", snapshot}, {"FORKTAIL_TRIGGER", name}};
	return c;
}

bool StartFor(Starting *s, const common::Json &packet, common::Child *program)
{
	const std::string name = common::Text(packet, "snapshot"), trigger = common::Text(packet, "trigger");
	Config config;
	std::string error;
	if (ReadOptions(s->options, &config, &error))
		s->config = config;
	if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos)
		return false;
	const std::string snapshot = s->snapshots + "/" + name;
	const common::Command c =
	    trigger.empty() ? Explanation(*s, snapshot) : TriggersCommand(*s, snapshot, trigger);
	if (c.argv.empty() || c.argv[0].empty())
		return false;
	if (common::ForkChild(c, program, &error))
		return true;
	Say(Level::Error, error);
	return false;
}

[[noreturn]] void StartPrograms(int fd, Starting s)
{
	common::Child program;
	common::Json packet;
	prctl(PR_SET_NAME, "forktail-run");
	prctl(PR_SET_PDEATHSIG, SIGKILL); // its program then ends, too
	// It ends with the guard, which may still need it after a signal to their group.
	for (const int signal_number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1})
		signal(signal_number, SIG_IGN);
	for (;;) {
		common::WaitForAny({fd, program.pidfd}, program.running() ? kLookMs : -1);
		const int got = Receive(fd, &packet);
		if (got == 0)
			break;
		if (got > 0 && (program.running() || !StartFor(&s, packet, &program)))
			Send(fd, {{"status", kNotStartedStatus}});
		if (program.running() && common::HasEnded(&program))
			Send(fd, {{"status", program.status}, {"timed_out", program.timed_out}});
	}
	common::EndChild(&program);
	_exit(0);
}

} // namespace

// ---- the guard ----

Runner::~Runner()
{
	if (fd_ >= 0)
		close(fd_);
	if (pid_ > 0)
		waitpid(pid_, nullptr, 0);
}

bool Runner::Begin(const GuardOptions &options, const Config &config, const std::string &snapshots,
		   std::string *error)
{
	int pair[2];
	const pid_t guard = getpid();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
		pid_ = fork();
		if (pid_ == 0) {
			close(pair[0]);
			if (getppid() != guard)
				_exit(0);
			StartPrograms(pair[1], {options, config, snapshots});
		}
		fd_ = pair[0];
		close(pair[1]);
	}
	if (pid_ > 0)
		return true;
	*error = std::string("cannot start the process that starts programs: ") + strerror(errno);
	return false;
}

bool Runner::Start(const std::string &snapshot, const std::string &trigger, const common::Command &about,
		   std::string *error)
{
	program_ = {};
	program_.command = about;
	running_ = !gone_ && Send(fd_, {{"snapshot", snapshot}, {"trigger", trigger}});
	if (!running_)
		*error = "cannot start " + about.name + ": the process that starts programs has ended";
	return running_;
}

bool Runner::Explain(const std::string &snapshot, uint64_t limit_ns, std::string *error)
{
	return Start(snapshot, "", {.name = "the explanation", .limit_ns = limit_ns}, error);
}

bool Runner::RunCommand(const std::string &snapshot, const std::string &trigger, const std::string &name,
			uint64_t limit_ns, std::string *error)
{
	return Start(snapshot, trigger, {.name = name, .limit_ns = limit_ns}, error);
}

bool Runner::HasEnded()
{
	common::Json packet = common::Json::object();
	const int got = gone_ ? 0 : Receive(fd_, &packet);
	if (got < 0)
		return false;
	gone_ = got == 0;
	if (!running_)
		return false;
	running_ = false;
	program_.ended = true;
	program_.timed_out = packet.value("timed_out", false);
	program_.status = packet.value("status", kNotStartedStatus);
	return true;
}

// In a container the path may be the host's, which is not visible there. The limit is then in the root of the
// hierarchy.

namespace
{

uint64_t LowestLimit(const std::string &hierarchy, const std::string &path, const char *file)
{
	uint64_t lowest = UINT64_MAX;
	for (std::filesystem::path group = path;; group = group.parent_path()) {
		uint64_t bytes; // "max" is not a number
		if (std::ifstream(hierarchy + group.string() + "/" + file) >> bytes)
			lowest = std::min(lowest, bytes);
		if (group == group.parent_path())
			return lowest;
	}
}

} // namespace

uint64_t MemoryLimit(const std::string &root)
{
	std::ifstream groups(root + "/proc/self/cgroup");
	uint64_t lowest = UINT64_MAX;
	// "0::/path" of version 2, "4:cpuset,memory:/path" of version 1.
	for (std::string line; std::getline(groups, line);) {
		const size_t first = line.find(':'), second = line.find(':', first + 1);
		if (second == std::string::npos)
			continue;
		const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
		const std::string path = line.substr(second + 1), hierarchies = root + "/sys/fs/cgroup";
		if (controllers == ",,")
			lowest = std::min(lowest, LowestLimit(hierarchies, path, "memory.max"));
		else if (controllers.find(",memory,") != std::string::npos)
			lowest = std::min(
			    lowest, LowestLimit(hierarchies + "/memory", path, "memory.limit_in_bytes"));
	}
	return lowest;
}

// The seccomp filter lists forbidden calls instead of allowed ones, because it also applies to the configured
// commands, which may be any program.

namespace
{

constexpr int kRefused[] = {SCMP_SYS(ptrace),
			    SCMP_SYS(process_vm_readv),
			    SCMP_SYS(process_vm_writev),
			    SCMP_SYS(kcmp),
			    SCMP_SYS(bpf),
			    SCMP_SYS(perf_event_open),
			    SCMP_SYS(init_module),
			    SCMP_SYS(finit_module),
			    SCMP_SYS(delete_module),
			    SCMP_SYS(kexec_load),
			    SCMP_SYS(kexec_file_load),
			    SCMP_SYS(mount),
			    SCMP_SYS(umount2),
			    SCMP_SYS(fsopen),
			    SCMP_SYS(fsconfig),
			    SCMP_SYS(fsmount),
			    SCMP_SYS(fspick),
			    SCMP_SYS(move_mount),
			    SCMP_SYS(open_tree),
			    SCMP_SYS(mount_setattr),
			    SCMP_SYS(pivot_root),
			    SCMP_SYS(chroot),
			    SCMP_SYS(pidfd_getfd),
			    SCMP_SYS(setns),
			    SCMP_SYS(unshare),
			    SCMP_SYS(add_key),
			    SCMP_SYS(request_key),
			    SCMP_SYS(keyctl),
			    SCMP_SYS(userfaultfd),
			    SCMP_SYS(io_uring_setup),
			    SCMP_SYS(io_uring_enter),
			    SCMP_SYS(io_uring_register),
			    SCMP_SYS(personality),
			    SCMP_SYS(swapon),
			    SCMP_SYS(swapoff),
			    SCMP_SYS(reboot),
			    SCMP_SYS(acct),
			    SCMP_SYS(quotactl),
			    SCMP_SYS(vhangup),
			    SCMP_SYS(open_by_handle_at)};

bool BecomeOwner(const std::string &path, std::string *error)
{
	struct stat owner = {};
	if (geteuid() != 0 || stat(path.c_str(), &owner) != 0 || owner.st_uid == 0)
		return true;
	if (setgroups(0, nullptr) == 0 && setresgid(owner.st_gid, owner.st_gid, owner.st_gid) == 0 &&
	    setresuid(owner.st_uid, owner.st_uid, owner.st_uid) == 0)
		return true;
	*error = "cannot change to user " + std::to_string(owner.st_uid) + ", the owner of " + path + ": " +
		 strerror(errno);
	return false;
}

// Call it before the change of user, which removes the privilege to do it.
void DropBounds()
{
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}

bool DropCapabilities()
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {};
	return syscall(SYS_capset, &header, none) == 0;
}

int Filter()
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int err = filter ? 0 : -ENOMEM;
	for (const int call : kRefused)
		err = err ? err : seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0);
	// New namespaces, in which a process has all capabilities. A filter cannot read clone3's flags:
	// without it the C library uses clone.
	for (const unsigned flag : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWPID, CLONE_NEWIPC,
				    CLONE_NEWUTS, CLONE_NEWCGROUP})
		err = err ? err
			  : seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
					     SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
	err = err ? err : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	// The firewall's interface.
	err =
	    err ? err
		: seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 2,
				   SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_EQ, NETLINK_NETFILTER));
	err = err ? err : seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

} // namespace

bool Confine(const std::string &path, std::string *error)
{
	const struct rlimit none = {0, 0};
	DropBounds();
	if (!BecomeOwner(path, error))
		return false;
	umask(0077);
	setrlimit(RLIMIT_CORE, &none);
	if (!DropCapabilities() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		*error = std::string("cannot drop privileges: ") + strerror(errno);
		return false;
	}
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (const int err = Filter()) {
		*error = std::string("cannot install the seccomp filter: ") + strerror(-err);
		return false;
	}
	return true;
}

} // namespace forktail::live::guard
