// SPDX-License-Identifier: MIT
// Child processes: what the parent does, what the child does between fork and exec, stops by signals, and
// words of commands.
#include "common/process.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <poll.h>
#include <sched.h>
#include <sstream>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace forktail::common
{

// A failure between fork and exec is reported through a pipe that exec closes.

// What a child does between fork and exec: only async-signal-safe calls, so everything that allocates memory
// is prepared before the fork.

// A command in the form the child needs. It points into the command.
struct Becoming {
	const Command *command = nullptr;
	std::vector<std::string> variables;
	std::vector<char *> argv, environment;
	pid_t parent = -1;
	int in = -1, out = -1, err = -1; // the child's ends; negative: /dev/null
	int report = -1;		 // where it writes the errno of a failure; exec closes it
};

Becoming Prepare(const Command &command);
// In the child. On failure, writes its errno to `report` and exits with kNotStarted.
[[noreturn]] void Become(const Becoming &becoming);

namespace
{

constexpr size_t kLastLines = 6, kLineBytes = 64 << 10;

uint64_t NowNs()
{
	return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
				     std::chrono::nanoseconds(1));
}

void Close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

// Stores the child's end, or what replaces a pipe, in *theirs. Our end doesn't block, the child's is an
// ordinary pipe.
bool MakePipe(int wanted, bool we_write, int *ours, int *theirs)
{
	*theirs = wanted;
	int ends[2];
	if (wanted != kPipe)
		return true;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	*ours = ends[we_write];
	*theirs = ends[!we_write];
	return fcntl(*ours, F_SETFL, O_NONBLOCK) == 0;
}

std::string WhyNotStarted(const Command &c, int number)
{
	std::string text = "cannot start " + c.name;
	if (!c.argv.empty())
		text += " (" + c.argv[0] + ")";
	return text + ": " + strerror(number);
}

void Signal(const Child &child, int signal)
{
	if (child.pidfd >= 0)
		syscall(SYS_pidfd_send_signal, child.pidfd, signal, nullptr, 0);
	else
		kill(child.pid, signal);
}

// Waits for its end. Until then its pid, which is also its group's id, cannot be reused.
void Reap(Child *child)
{
	if (child->command.group_ends)
		kill(-child->pid, SIGKILL);
	struct rusage usage = {};
	while (wait4(child->pid, &child->status, 0, &usage) < 0 && errno == EINTR) {
	}
	child->peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) << 10;
	child->ended = true;
	Close(&child->pidfd);
	Close(&child->report);
}

} // namespace

std::vector<std::string> Lines::Read(bool last)
{
	std::vector<std::string> lines;
	auto take = [&] {
		if (!part.empty())
			lines.push_back(part);
		part.clear();
	};
	char chunk[4096];
	ssize_t n = -1;
	while (fd >= 0 && (n = read(fd, chunk, sizeof(chunk))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			const bool ends =
			    chunk[i] == '\n' || chunk[i] == '\r'; // progress is redrawn after '\r'
			if (ends || part.size() == kLineBytes)
				take();
			if (!ends)
				part += chunk[i];
		}
	if (n == 0 || last) {
		Close();
		take();
	}
	return lines;
}

void Lines::Close()
{
	common::Close(&fd);
}

bool ForkChild(const Command &command, Child *child, std::string *error)
{
	*child = {};
	child->command = command;
	Becoming b = Prepare(child->command);
	const int out = command.output.empty() ? command.out : kNull;
	const bool good = MakePipe(command.in, true, &child->in, &b.in) &&
			  MakePipe(out, false, &child->out.fd, &b.out) &&
			  MakePipe(command.err, false, &child->err.fd, &b.err) &&
			  MakePipe(kPipe, false, &child->report, &b.report) &&
			  fcntl(child->report, F_SETFL, 0) == 0; // AwaitProgram blocks
	child->pid = good ? fork() : -1;
	if (child->pid == 0)
		Become(b);
	if (child->pid > 0)
		child->pidfd = static_cast<int>(syscall(SYS_pidfd_open, child->pid, 0));
	const int number = errno;
	if (command.in == kPipe)
		Close(&b.in);
	if (out == kPipe)
		Close(&b.out);
	if (command.err == kPipe)
		Close(&b.err);
	Close(&b.report);
	if (child->pidfd >= 0) {
		child->deadline_ns = command.limit_ns ? NowNs() + command.limit_ns : 0;
		return true;
	}
	EndChild(child);
	CloseStreams(child);
	*error = WhyNotStarted(command, number);
	return false;
}

static bool AwaitProgram(Child *child, std::string *error)
{
	int failure;
	ssize_t n;
	while ((n = read(child->report, &failure, sizeof(failure))) < 0 && errno == EINTR) {
	}
	Close(&child->report);
	if (n <= 0)
		return true;
	Reap(child); // it ends by itself
	CloseStreams(child);
	*error = WhyNotStarted(child->command, failure);
	return false;
}

bool StartChild(const Command &command, Child *child, std::string *error)
{
	return ForkChild(command, child, error) && AwaitProgram(child, error);
}

bool HasEnded(Child *child)
{
	if (!child->running())
		return child->ended;
	siginfo_t info = {};
	if (waitid(P_PID, static_cast<id_t>(child->pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid == child->pid) {
		Reap(child);
	} else if (child->deadline_ns && NowNs() > child->deadline_ns) {
		child->timed_out = true;
		EndChild(child);
	}
	return child->ended;
}

void SignalChild(Child *child, int signal)
{
	if (!child->running())
		return;
	child->asked = true;
	Signal(*child, signal);
}

void EndChild(Child *child)
{
	if (!child->running())
		return;
	Signal(*child, SIGKILL); // it may not have created its group yet
	Reap(child);
}

void CloseStreams(Child *child)
{
	Close(&child->in);
	Close(&child->report);
	child->out.Close();
	child->err.Close();
}

void Remember(Child *child, const std::string &line)
{
	if (child->last.size() == kLastLines)
		child->last.erase(child->last.begin());
	child->last.push_back(line);
}

bool EndedWell(const Child &child)
{
	return child.ended && !child.timed_out && WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0;
}

std::string HowItEnded(const Child &child)
{
	if (WIFSIGNALED(child.status))
		return "was killed by signal " + std::to_string(WTERMSIG(child.status)) + " (" +
		       strsignal(WTERMSIG(child.status)) + ")";
	return "ended with status " + std::to_string(WEXITSTATUS(child.status));
}

std::vector<std::string> LinesOf(Command command)
{
	Child child;
	std::string error;
	std::vector<std::string> lines;
	command.out = kPipe;
	if (command.err == kPipe)
		command.err = kNull; // nothing would read it
	if (!StartChild(command, &child, &error))
		return lines;
	for (bool ended = false; !ended;) {
		WaitForAny({child.out.fd, child.pidfd}, 1000);
		ended = HasEnded(&child);
		for (const std::string &line : child.out.Read(ended))
			lines.push_back(line);
	}
	CloseStreams(&child);
	return lines;
}

int StatusOf(const std::vector<std::string> &argv)
{
	Child child;
	std::string error;
	const Command command{
	    .name = argv[0], .argv = argv, .in = 0, .err = 2, .group = Group::kOurs, .death_signal = 0};
	if (!StartChild(command, &child, &error))
		return -1;
	while (!HasEnded(&child))
		WaitForAny({child.pidfd}, -1);
	return WIFEXITED(child.status) ? WEXITSTATUS(child.status) : -1;
}

void WaitForAny(const std::vector<int> &fds, int ms)
{
	std::vector<pollfd> polled;
	for (const int fd : fds)
		polled.push_back({fd, POLLIN, 0});
	poll(polled.data(), polled.size(), ms);
}

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

Becoming Prepare(const Command &command)
{
	Becoming b;
	b.command = &command;
	b.argv = Pointers(command.argv);
	b.variables = Variables(command);
	b.environment = Pointers(b.variables);
	b.parent = getpid();
	return b;
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
	if (Connect(b)) {
		if (c.work)
			Work(c);
		environ = const_cast<char **>(b.environment.data());
		execvp(b.argv[0], b.argv.data());
	}
	const int failure = errno;
	[[maybe_unused]] const ssize_t n = write(b.report, &failure, sizeof(failure));
	_exit(kNotStarted);
}

namespace
{

volatile sig_atomic_t stops;

void OnStop(int)
{
	stops = stops + 1;
}

} // namespace

void CatchStops()
{
	struct sigaction action = {};
	action.sa_handler = OnStop;
	for (const int s : {SIGINT, SIGTERM, SIGHUP}) {
		struct sigaction old;
		// Under nohup we outlive our terminal, as usual.
		if (s == SIGHUP && sigaction(s, nullptr, &old) == 0 && old.sa_handler == SIG_IGN)
			continue;
		sigaction(s, &action, nullptr);
	}
}

int Stops()
{
	return stops;
}

std::string ProgramPath()
{
	std::error_code ec;
	const char *path = getenv("PATH");
	return std::filesystem::read_symlink("/proc/self/exe", ec).parent_path().string() + ":" +
	       (path ? path : "/usr/local/bin:/usr/bin:/bin");
}

std::string FindProgram(const std::string &name, const std::string &directories)
{
	std::istringstream all(directories);
	for (std::string directory; std::getline(all, directory, ':');) {
		const std::string file = directory + "/" + name;
		if (!directory.empty() && access(file.c_str(), X_OK) == 0)
			return file;
	}
	return "";
}

} // namespace forktail::common
