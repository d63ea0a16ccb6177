// SPDX-License-Identifier: MIT
// Between fork and exec a child does only what a signal handler may, and tells what failed through a pipe.
#include "session.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"
#include "recording/recording.h"

namespace forktail::lab
{
namespace
{

constexpr size_t kTailLines = 6;
constexpr int kGroupGoneMs = 5000;
constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP};

volatile sig_atomic_t stop_signal;

void OnStop(int signal)
{
	stop_signal = signal;
}

std::string Errno(int number)
{
	return std::strerror(number);
}

// What a child has to become, made ready before the fork.
struct Becoming {
	std::vector<char *> argv;
	const char *output;	  // "": the lab's
	std::string cgroup_procs; // "": the lab's cgroup
	bool pinned = false;
	cpu_set_t cpus;
	pid_t lab;
	int err_fd, report;
};

// What a child couldn't do, and why.
struct Failure {
	enum Step { kNothing, kCgroup, kCpus, kProgram } step = kNothing;
	int number = 0; // errno
};

bool EnterCgroup(const std::string &procs)
{
	int fd = open(procs.c_str(), O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, "0", 1) == 1; // 0: whoever writes
}

// In the child, between fork and exec. What can't be done here is told through `report`, which exec closes.
[[noreturn]] void Become(const Becoming &becoming)
{
	// Second line of defence, should the keeper have been killed too.
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != becoming.lab)
		_exit(127);
	setpgid(0, 0);
	for (int s : kStopSignals)
		signal(s, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	// Not in the terminal's foreground group, it may still print there.
	signal(SIGTTOU, SIG_IGN);
	Failure failure;
	if (!becoming.cgroup_procs.empty() && !EnterCgroup(becoming.cgroup_procs)) {
		failure.step = Failure::kCgroup;
	} else if (becoming.pinned && sched_setaffinity(0, sizeof(becoming.cpus), &becoming.cpus) != 0) {
		failure.step = Failure::kCpus;
	} else {
		failure.step = Failure::kProgram;
		int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
		int out = 1;
		if (*becoming.output)
			out = open(becoming.output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
		if (in >= 0 && out >= 0 && dup2(in, 0) >= 0 && (out == 1 || dup2(out, 1) >= 0) &&
		    dup2(becoming.err_fd, 2) >= 0)
			execvp(becoming.argv[0], becoming.argv.data());
	}
	failure.number = errno;
	if (write(becoming.report, &failure, sizeof(failure)) < 0)
		_exit(126);
	_exit(127);
}

void TakeLine(Child *child)
{
	if (child->line.empty())
		return;
	std::string line;
	line.swap(child->line);
	if (child->tail.size() == kTailLines)
		child->tail.erase(child->tail.begin());
	child->tail.push_back(line);
	if (child->on_line)
		child->on_line(line);
}

void ReadErrors(Child *child)
{
	char chunk[4096];
	ssize_t n = 0;
	while (child->err_fd >= 0 && (n = read(child->err_fd, chunk, sizeof(chunk))) > 0)
		for (ssize_t i = 0; i < n; i++)
			if (chunk[i] == '\n' || chunk[i] == '\r') // progress is redrawn after '\r'
				TakeLine(child);
			else
				child->line += chunk[i];
	if (child->err_fd >= 0 && n == 0) {
		close(child->err_fd);
		child->err_fd = -1;
	}
}

// The child is dead but not reaped, so that its number still is its own.
void Reap(const Session &session, Child *child)
{
	ReadErrors(child);
	TakeLine(child);
	kill(-child->pid, SIGKILL); // what it forked and left
	while (waitpid(child->pid, &child->status, 0) < 0 && errno == EINTR) {
	}
	child->ended = true;
	// A snapshot child takes a while to give its memory back, and until then it is not gone.
	for (int i = 0; i < kGroupGoneMs && kill(-child->pid, 0) == 0; i++)
		usleep(1000);
	ReleaseGroup(session.keeper, child->pid);
	close(child->pidfd);
	if (child->err_fd >= 0)
		close(child->err_fd);
	child->pidfd = child->err_fd = -1;
}

std::vector<std::string> LastLines(const std::string &path)
{
	std::ifstream in(path);
	std::vector<std::string> lines;
	for (std::string line; std::getline(in, line);) {
		if (lines.size() == kTailLines)
			lines.erase(lines.begin());
		lines.push_back(line);
	}
	return lines;
}

std::string WhyNotStarted(const Command &command, const Failure &failure)
{
	switch (failure.step) {
	case Failure::kCgroup:
		return "can't start " + command.name + " in the cgroup " + command.cgroup + ": " +
		       Errno(failure.number);
	case Failure::kCpus:
		return "can't start " + command.name + " on CPUs " + command.cpus + ": " +
		       Errno(failure.number);
	default:
		return "can't start " + command.name + " (" + command.argv[0] + "): " + Errno(failure.number);
	}
}

// Words, cgroup and CPUs of a command as the child needs them, which may not allocate.
bool Prepare(const Command &command, Becoming *becoming, std::string *error)
{
	for (const std::string &word : command.argv)
		becoming->argv.push_back(const_cast<char *>(word.c_str()));
	becoming->argv.push_back(nullptr);
	becoming->output = command.output.c_str();
	becoming->lab = getpid();
	if (!command.cgroup.empty())
		becoming->cgroup_procs = command.cgroup + "/cgroup.procs";
	if (command.cpus.empty())
		return true;
	std::vector<int> cpus;
	if (!ParseCpus(command.cpus, &cpus)) {
		*error =
		    "can't start " + command.name + " on CPUs " + command.cpus + ": a list is like 0-1,3";
		return false;
	}
	becoming->pinned = true;
	CPU_ZERO(&becoming->cpus);
	for (int cpu : cpus)
		CPU_SET(static_cast<size_t>(cpu), &becoming->cpus);
	return true;
}

} // namespace

int StopSignal()
{
	return stop_signal;
}

bool OpenSession(Session *session, std::string *error)
{
	if (!StartKeeper(&session->keeper, error))
		return false;
	struct sigaction action = {};
	action.sa_handler = OnStop;
	for (int s : kStopSignals) {
		struct sigaction old;
		// Under nohup the lab outlives its terminal, as everything does.
		if (s == SIGHUP && sigaction(s, nullptr, &old) == 0 && old.sa_handler == SIG_IGN)
			continue;
		sigaction(s, &action, nullptr);
	}
	return true;
}

void EndChildren(Session *session)
{
	for (auto &child : session->children)
		if (!child->ended) {
			child->on_line = nullptr; // whoever listened may be gone
			kill(-child->pid, SIGKILL);
		}
	for (auto &child : session->children)
		if (!child->ended)
			Reap(*session, child.get());
}

bool CloseSession(Session *session, std::string *error)
{
	EndChildren(session);
	return CloseKeeper(&session->keeper, error);
}

bool MakeTempDirectory(Session *session, std::string *path, std::string *error)
{
	const char *base = getenv("TMPDIR");
	std::string name = std::string(base && *base ? base : "/tmp") + "/forktail-lab.XXXXXX";
	if (name[0] != '/') {
		*error = "TMPDIR must be an absolute path, not " + name;
		return false;
	}
	if (!mkdtemp(name.data())) {
		*error = "can't make a temporary directory " + name + ": " + Errno(errno);
		return false;
	}
	KeepDirectory(session->keeper, name);
	*path = name;
	return true;
}

Child *Start(Session *session, const Command &command, std::string *error)
{
	Becoming becoming;
	if (!Prepare(command, &becoming, error))
		return nullptr;
	int err[2] = {-1, -1}, report[2] = {-1, -1};
	pid_t pid = -1;
	if (pipe2(err, O_CLOEXEC | O_NONBLOCK) == 0 && pipe2(report, O_CLOEXEC) == 0)
		pid = fork();
	if (pid == 0) {
		fcntl(err[1], F_SETFL, 0); // only the lab's end is non-blocking
		becoming.err_fd = err[1];
		becoming.report = report[1];
		Become(becoming);
	}
	Failure failure;
	if (pid < 0)
		failure = {Failure::kProgram, errno};
	close(err[1]);
	close(report[1]);
	auto child = std::make_unique<Child>();
	child->name = command.name;
	child->argv = command.argv;
	child->output = command.output;
	child->on_line = command.on_line;
	child->pid = pid;
	child->err_fd = err[0];
	if (pid > 0) {
		KeepGroup(session->keeper, pid);
		child->pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
		if (read(report[0], &failure, sizeof(failure)) <= 0)
			failure = {}; // exec has closed it
		if (failure.step == Failure::kNothing && child->pidfd < 0)
			failure = {Failure::kProgram, ENOSYS};
	}
	close(report[0]);
	if (failure.step != Failure::kNothing) {
		*error = WhyNotStarted(command, failure);
		if (pid > 0) {
			kill(pid, SIGKILL);
			Reap(*session, child.get());
		} else {
			close(err[0]);
		}
		return nullptr;
	}
	session->children.push_back(std::move(child));
	return session->children.back().get();
}

bool Step(Session *session, int ms, std::string *error, int fd)
{
	for (const auto &[name, chore] : session->chores)
		chore();
	std::vector<pollfd> fds;
	for (auto &child : session->children)
		if (!child->ended) {
			fds.push_back({child->err_fd, POLLIN, 0}); // poll skips a negative one
			fds.push_back({child->pidfd, POLLIN, 0});
		}
	fds.push_back({fd, POLLIN, 0});
	// A signal that comes just before poll is seen after it, so poll must not be long.
	poll(fds.data(), fds.size(), std::clamp(ms, 0, 100));
	size_t i = 0;
	bool good = true;
	for (auto &child : session->children) {
		if (child->ended)
			continue;
		if (fds[i].revents)
			ReadErrors(child.get());
		if (fds[i + 1].revents) {
			Reap(*session, child.get());
			// One's end may end the others: the first is the cause.
			if (child->needed && good) {
				*error = HowItEnded(*child);
				good = false;
			}
		}
		i += 2;
	}
	if (stop_signal) {
		*error = std::string("stopped by ") + strsignal(stop_signal);
		good = false;
	}
	return good;
}

bool WaitForEnd(Session *session, Child *child, int signal, double seconds, std::string *error)
{
	child->needed = false;
	if (signal && !child->ended)
		kill(child->pid, signal);
	uint64_t limit_ns = ft_now_ns() + static_cast<uint64_t>(seconds * 1e9);
	while (!child->ended) {
		if (!Step(session, 100, error))
			return false;
		if (!child->ended && ft_now_ns() > limit_ns) {
			*error = child->name + " did not end within " +
				 std::to_string(static_cast<int>(seconds)) + " s";
			return false;
		}
	}
	return true;
}

std::string HowItEnded(const Child &child)
{
	std::string text = child.name;
	if (WIFSIGNALED(child.status))
		text += " was killed by signal " + std::to_string(WTERMSIG(child.status)) + " (" +
			strsignal(WTERMSIG(child.status)) + ")";
	else
		text += " ended with status " + std::to_string(WEXITSTATUS(child.status));
	return text + LastWords(child);
}

std::string LastWords(const Child &child)
{
	std::vector<std::string> last = child.tail;
	if (last.empty() && !child.output.empty())
		last = LastLines(child.output);
	std::string text = last.empty() ? "" : "; it said:";
	for (const std::string &line : last)
		text += "\n    " + line;
	return text;
}

bool Succeeded(const Child &child, std::string *error)
{
	if (child.ended && WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0)
		return true;
	*error = HowItEnded(child);
	return false;
}

} // namespace forktail::lab
