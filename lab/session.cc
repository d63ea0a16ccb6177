// SPDX-License-Identifier: MIT
// Starting programs, waiting for them and ending them; see session.h.
#include "lab/session.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recording/recording.h"

namespace forktail
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

// In the child, between fork and exec. What can't be done here is told through `report`, which exec closes.
[[noreturn]] void Become(char *const *argv, pid_t lab, const char *output, int err_fd, int report)
{
	// Second line of defence, should the keeper have been killed too.
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != lab)
		_exit(127);
	setpgid(0, 0);
	for (int s : kStopSignals)
		signal(s, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	// Not in the terminal's foreground group, it may still print there.
	signal(SIGTTOU, SIG_IGN);
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int out = *output ? open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : 1;
	if (in >= 0 && out >= 0 && dup2(in, 0) >= 0 && (out == 1 || dup2(out, 1) >= 0) &&
	    dup2(err_fd, 2) >= 0)
		execvp(argv[0], argv);
	int failed = errno;
	if (write(report, &failed, sizeof(failed)) < 0)
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

// "redis-server ended with status 1", and what it said last.
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

bool CloseSession(Session *session, std::string *error)
{
	for (auto &child : session->children)
		if (!child->ended) {
			child->on_line = nullptr; // whoever listened may be gone
			kill(-child->pid, SIGKILL);
		}
	for (auto &child : session->children)
		if (!child->ended)
			Reap(*session, child.get());
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
	std::vector<char *> argv;
	for (const std::string &word : command.argv)
		argv.push_back(const_cast<char *>(word.c_str()));
	argv.push_back(nullptr);

	int err[2] = {-1, -1}, report[2] = {-1, -1};
	pid_t lab = getpid(), pid = -1;
	if (pipe2(err, O_CLOEXEC | O_NONBLOCK) == 0 && pipe2(report, O_CLOEXEC) == 0)
		pid = fork();
	if (pid == 0) {
		fcntl(err[1], F_SETFL, 0); // only the lab's end is non-blocking
		Become(argv.data(), lab, command.output.c_str(), err[1], report[1]);
	}
	int failed = pid < 0 ? errno : 0;
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
		if (read(report[0], &failed, sizeof(failed)) <= 0)
			failed = 0; // exec has closed it
	}
	close(report[0]);
	if (pid < 0 || failed || child->pidfd < 0) {
		if (!failed)
			failed = ENOSYS;
		*error = "can't start " + command.name + " (" + command.argv[0] + "): " + Errno(failed);
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

} // namespace forktail
