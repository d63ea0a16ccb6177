// SPDX-License-Identifier: MIT
// See children.h. Between fork and exec a child does only what a signal handler may.
#include "children.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/format/units.h"

namespace forktail::live::guard
{
namespace
{

constexpr int kNotStarted = 127, kMostResult = 4096;
constexpr int kIoprioWhoProcess = 1, kIoprioIdle = 3 << 13; // linux/ioprio.h

// The child has a session of its own, and with it an autogroup where the kernel makes them (sched(7)): what a
// thread's policy and niceness say goes only within it, and among groups the group's own niceness.
void BecomeIdle()
{
	const struct sched_param none = {};
	prctl(PR_SET_DUMPABLE, 1); // or its files in /proc are root's; what is run next is so anyway
	if (const int group = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC); group >= 0) {
		[[maybe_unused]] const ssize_t n = write(group, "19", 2);
		close(group);
	}
	sched_setscheduler(0, SCHED_IDLE, &none);
	setpriority(PRIO_PROCESS, 0, 19);
	syscall(SYS_ioprio_set, kIoprioWhoProcess, 0, kIoprioIdle);
}

// What any child of ours begins with.
void BecomeChild(pid_t parent)
{
	sigset_t none;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(kNotStarted);
	setsid();
	for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE, SIGUSR1})
		signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, nullptr);
}

struct Becoming {
	std::vector<char *> argv, environment;
	const ChildWords *words;
	pid_t parent;
};

[[noreturn]] void Become(const Becoming &b)
{
	BecomeChild(b.parent);
	if (b.words->idle)
		BecomeIdle();
	const struct rlimit memory = {b.words->memory_bytes, b.words->memory_bytes};
	if (b.words->memory_bytes)
		setrlimit(RLIMIT_DATA, &memory);
	const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const int out =
	    b.words->output.empty()
		? dup(2)
		: open(b.words->output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (in >= 0 && out >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && chdir("/") == 0)
		execve(b.argv[0], b.argv.data(), b.environment.data());
	_exit(kNotStarted);
}

std::vector<std::string> Environment(const ChildWords &words)
{
	std::vector<std::string> all;
	for (char **e = environ; *e; e++)
		all.push_back(*e);
	for (const auto &[name, value] : words.environment)
		all.push_back(name + "=" + value);
	return all;
}

std::vector<char *> Pointers(const std::vector<std::string> &words)
{
	std::vector<char *> pointers;
	for (const std::string &word : words)
		pointers.push_back(const_cast<char *>(word.c_str()));
	pointers.push_back(nullptr);
	return pointers;
}

bool Started(Child *child, const std::string &name, pid_t pid, uint64_t deadline_ns, std::string *error)
{
	*child = {};
	child->name = name;
	child->pid = pid;
	child->deadline_ns = deadline_ns;
	if (pid < 0)
		*error = "can't start " + name + ": " + strerror(errno);
	return pid > 0;
}

} // namespace

bool StartChild(const ChildWords &words, uint64_t now_ns, uint64_t limit_ns, Child *child, std::string *error)
{
	const std::vector<std::string> environment = Environment(words);
	Becoming b = {Pointers(words.argv), Pointers(environment), &words, getpid()};
	const pid_t pid = fork();
	if (pid == 0)
		Become(b);
	return Started(child, words.name, pid, now_ns + limit_ns, error);
}

bool ForkChild(const std::string &name, const std::function<std::string()> &work, uint64_t now_ns,
	       uint64_t limit_ns, Child *child, std::string *error)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
		*error = "can't start " + name + ": " + strerror(errno);
		return false;
	}
	const pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		BecomeChild(parent);
		const std::string said = work();
		const bool written =
		    write(ends[1], said.data(), std::min<size_t>(said.size(), kMostResult)) > 0;
		_exit(written ? 0 : 1);
	}
	const bool good = Started(child, name, pid, now_ns + limit_ns, error);
	close(ends[1]);
	if (good)
		child->result = ends[0];
	else
		close(ends[0]);
	return good;
}

bool HasEnded(Child *child, uint64_t now_ns)
{
	if (!child->running())
		return child->ended;
	if (waitpid(child->pid, &child->status, WNOHANG) == child->pid) {
		child->ended = true;
		kill(-child->pid, SIGKILL); // what it left behind
	} else if (now_ns > child->deadline_ns) {
		child->timed_out = true;
		EndChild(child);
	}
	return child->ended;
}

void EndChild(Child *child)
{
	if (!child->running())
		return;
	// It may not have made its session yet.
	kill(child->pid, SIGKILL);
	kill(-child->pid, SIGKILL);
	while (waitpid(child->pid, &child->status, 0) < 0 && errno == EINTR) {
	}
	child->ended = true;
}

std::string ResultOf(Child *child)
{
	char text[kMostResult];
	const ssize_t n = child->result >= 0 ? read(child->result, text, sizeof(text)) : -1;
	if (child->result >= 0)
		close(child->result);
	child->result = -1;
	return n > 0 ? std::string(text, static_cast<size_t>(n)) : "";
}

bool EndedWell(const Child &child)
{
	return child.ended && !child.timed_out && WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0;
}

std::string HowItEnded(const Child &child, uint64_t limit_ns)
{
	if (child.timed_out)
		return "took longer than " + common::FormatDuration(limit_ns) + " and was killed";
	if (WIFSIGNALED(child.status))
		return "was killed by signal " + std::to_string(WTERMSIG(child.status)) + " (" +
		       strsignal(WTERMSIG(child.status)) + ")";
	if (WEXITSTATUS(child.status) == kNotStarted)
		return "could not be run";
	return "ended with status " + std::to_string(WEXITSTATUS(child.status));
}

} // namespace forktail::live::guard
