// SPDX-License-Identifier: MIT
// See become.h.
#include "become.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "words.h"

namespace forktail::common
{
namespace
{

constexpr size_t kMostResult = 4096;
constexpr int kIoprioWhoProcess = 1, kIoprioIdle = 3 << 13; // linux/ioprio.h

std::vector<char *> Pointers(const std::vector<std::string> &words)
{
	std::vector<char *> pointers;
	for (const std::string &word : words)
		pointers.push_back(const_cast<char *>(word.c_str()));
	pointers.push_back(nullptr);
	return pointers;
}

std::vector<std::string> Variables(const Command &command)
{
	std::map<std::string, std::string> all;
	for (char **e = environ; *e; e++) {
		const std::string ours = *e;
		all.emplace(ours.substr(0, ours.find('=')), ours);
	}
	for (const auto &[name, value] : command.environment)
		all[name] = name + "=" + value;
	std::vector<std::string> variables;
	for (const auto &[name, variable] : all)
		variables.push_back(variable);
	return variables;
}

void WriteOwn(const char *path, const char *text)
{
	// Otherwise its files in /proc belong to root. The next program sets this itself.
	prctl(PR_SET_DUMPABLE, 1);
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	[[maybe_unused]] const ssize_t n = write(fd, text, strlen(text));
	close(fd);
}

// The child has its own session, and with it an autogroup if the kernel creates them (sched(7)). A thread's
// policy and niceness then apply only within the group, and between groups the group's niceness applies.
void BecomeIdle()
{
	const struct sched_param none = {};
	WriteOwn("/proc/self/autogroup", "19");
	sched_setscheduler(0, SCHED_IDLE, &none);
	setpriority(PRIO_PROCESS, 0, 19);
	syscall(SYS_ioprio_set, kIoprioWhoProcess, 0, kIoprioIdle);
}

void LeaveParent(const Command &command)
{
	if (command.group == Group::kSession)
		setsid();
	if (command.group == Group::kOwn) {
		setpgid(0, 0);
		// A process outside the terminal's foreground group may still print there.
		signal(SIGTTOU, SIG_IGN);
	}
	if (command.group != Group::kOurs)
		for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1})
			signal(s, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool EnterCgroup(const std::string &procs)
{
	const int fd = open(procs.c_str(), O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, "0", 1) == 1; // 0: the calling process
}

bool Connect(const Becoming &b)
{
	const Command &c = *b.command;
	auto lead = [](int from, int to, int flags) {
		const int fd = from >= 0 ? from : open("/dev/null", flags | O_CLOEXEC);
		return fd >= 0 && dup2(fd, to) >= 0;
	};
	const int out = c.output.empty()
			    ? b.out
			    : open(c.output.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | c.output_flags, 0644);
	return (c.output.empty() || out >= 0) && lead(b.in, 0, O_RDONLY) && lead(out, 1, O_WRONLY) &&
	       lead(b.err, 2, O_WRONLY) && (c.kept < 0 || fcntl(c.kept, F_SETFD, 0) == 0) &&
	       (c.directory.empty() || chdir(c.directory.c_str()) == 0);
}

// Not between fork and exec: nothing follows that.
[[noreturn]] void Work(const Command &command)
{
	const std::string result = command.work();
	_exit(write(1, result.data(), std::min(result.size(), kMostResult)) > 0 ? 0 : 1);
}

} // namespace

bool Prepare(const Command &command, Becoming *b, std::string *error)
{
	std::vector<int> cpus;
	if (!command.cpus.empty() && !ParseCpus(command.cpus, &cpus)) {
		*error = "cannot start " + command.name + " on CPUs " + command.cpus +
			 ": expected a list such as 0-1,3";
		return false;
	}
	CPU_ZERO(&b->cpus);
	for (const int cpu : cpus)
		CPU_SET(static_cast<size_t>(cpu), &b->cpus);
	if (!command.cgroup.empty())
		b->cgroup_procs = command.cgroup + "/cgroup.procs";
	b->command = &command;
	b->argv = Pointers(command.argv);
	b->variables = Variables(command);
	b->environment = Pointers(b->variables);
	b->parent = getpid();
	return true;
}

void Become(const Becoming &b)
{
	const Command &c = *b.command;
	prctl(PR_SET_PDEATHSIG, c.death_signal);
	if (getppid() != b.parent)
		_exit(kNotStarted);
	LeaveParent(c);
	if (c.idle)
		BecomeIdle();
	if (c.oom_victim)
		WriteOwn("/proc/self/oom_score_adj", "1000");
	const struct rlimit memory = {c.memory_bytes, c.memory_bytes};
	if (c.memory_bytes)
		setrlimit(RLIMIT_DATA, &memory);
	Failure failure;
	if (!b.cgroup_procs.empty() && !EnterCgroup(b.cgroup_procs)) {
		failure.step = Failure::kCgroup;
	} else if (!c.cpus.empty() && sched_setaffinity(0, sizeof(b.cpus), &b.cpus) != 0) {
		failure.step = Failure::kCpus;
	} else {
		failure.step = Failure::kProgram;
		if (Connect(b)) {
			if (c.work)
				Work(c);
			environ = const_cast<char **>(b.environment.data());
			execvp(b.argv[0], b.argv.data());
		}
	}
	failure.number = errno;
	[[maybe_unused]] const ssize_t n = write(b.report, &failure, sizeof(failure));
	_exit(kNotStarted);
}

} // namespace forktail::common
