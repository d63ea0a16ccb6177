// SPDX-License-Identifier: MIT
// See child.h. A failure between fork and exec is reported through a pipe that exec closes.
#include "child.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "become.h"

namespace forktail::common
{
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

std::string WhyNotStarted(const Command &c, const Failure &failure)
{
	std::string text = "cannot start " + c.name;
	if (failure.step == Failure::kCgroup)
		text += " in the cgroup " + c.cgroup;
	else if (failure.step == Failure::kCpus)
		text += " on CPUs " + c.cpus;
	else if (!c.argv.empty())
		text += " (" + c.argv[0] + ")";
	return text + ": " + strerror(failure.number);
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
	Becoming b;
	if (!Prepare(child->command, &b, error))
		return false;
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
	*error = WhyNotStarted(command, {Failure::kProgram, number});
	return false;
}

bool AwaitProgram(Child *child, std::string *error)
{
	Failure failure;
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

} // namespace forktail::common
