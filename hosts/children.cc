// SPDX-License-Identifier: MIT
// See children.h. Between fork and exec a child does only what a signal handler may; what failed there comes
// back through a pipe that exec closes.
#include "children.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace forktail::hosts
{
namespace
{

constexpr size_t kLastLines = 6, kLineBytes = 4096;
constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP};

volatile sig_atomic_t stops;

void OnStop(int)
{
	stops = stops + 1;
}

// What a child becomes, made ready before the fork.
struct Becoming {
	std::vector<char *> argv;
	const char *output;
	pid_t parent;
	int in, out, err, report, kept;
};

[[noreturn]] void Become(const Becoming &b)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != b.parent)
		_exit(127);
	setpgid(0, 0);
	for (int s : kStopSignals)
		signal(s, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	int in = b.in >= 0 ? b.in : open("/dev/null", O_RDONLY | O_CLOEXEC);
	int out = *b.output ? open(b.output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : b.out;
	if (in >= 0 && out >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(b.err, 2) >= 0 &&
	    (b.kept < 0 || fcntl(b.kept, F_SETFD, 0) == 0))
		execvp(b.argv[0], b.argv.data());
	int why = errno;
	if (write(b.report, &why, sizeof(why)) < 0)
		_exit(126);
	_exit(127);
}

void CloseAll(std::initializer_list<int> fds)
{
	for (int fd : fds)
		if (fd >= 0)
			close(fd);
}

// Our end is not waited for, the child's is as any pipe.
bool MakePipe(int (&pair)[2], int ours)
{
	return pipe2(pair, O_CLOEXEC) == 0 && fcntl(pair[ours], F_SETFL, O_NONBLOCK) == 0;
}

} // namespace

std::vector<std::string> Lines::Read()
{
	std::vector<std::string> lines;
	char chunk[kLineBytes];
	ssize_t n = -1;
	while (fd >= 0 && (n = read(fd, chunk, sizeof(chunk))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (chunk[i] != '\n' && chunk[i] != '\r' && part.size() < kLineBytes) {
				part += chunk[i];
			} else if (!part.empty()) {
				lines.push_back(part);
				part.clear();
			}
		}
	if (fd >= 0 && n == 0) {
		Close();
		if (!part.empty())
			lines.push_back(part);
		part.clear();
	}
	return lines;
}

void Lines::Close()
{
	CloseAll({fd});
	fd = -1;
}

bool StartChild(const StartWords &words, Child *child, std::string *error)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, report[2] = {-1, -1}, why = 0;
	Becoming b;
	for (const std::string &word : words.argv)
		b.argv.push_back(const_cast<char *>(word.c_str()));
	b.argv.push_back(nullptr);
	bool good = (!words.input || MakePipe(in, 1)) && (!words.output.empty() || MakePipe(out, 0)) &&
		    MakePipe(err, 0) && pipe2(report, O_CLOEXEC) == 0;
	b.output = words.output.c_str();
	b.parent = getpid();
	b.in = in[0];
	b.out = out[1];
	b.err = err[1];
	b.report = report[1];
	b.kept = words.kept_fd;
	child->name = words.name;
	child->pid = good ? fork() : -1;
	if (child->pid == 0)
		Become(b);
	if (child->pid < 0)
		why = errno;
	CloseAll({in[0], out[1], err[1], report[1]});
	if (child->pid > 0 && read(report[0], &why, sizeof(why)) <= 0)
		why = 0;
	CloseAll({report[0]});
	child->input = in[1];
	child->output.fd = out[0];
	child->errors.fd = err[0];
	if (!why)
		return true;
	if (child->pid > 0)
		waitpid(child->pid, &child->status, 0);
	child->ended = true;
	ForgetChild(child);
	*error = "can't start " + words.name + " (" + words.argv[0] + "): " + strerror(why);
	return false;
}

void Remember(Child *child, const std::string &line)
{
	if (child->last.size() == kLastLines)
		child->last.erase(child->last.begin());
	child->last.push_back(line);
}

bool HasEnded(Child *child)
{
	if (!child->ended && child->pid > 0 && waitpid(child->pid, &child->status, WNOHANG) == child->pid)
		child->ended = true;
	return child->ended;
}

void SignalChild(Child *child, int signal)
{
	if (child->ended || child->pid <= 0)
		return;
	child->asked = true;
	kill(child->pid, signal);
}

void ForgetChild(Child *child)
{
	CloseAll({child->input});
	child->input = -1;
	child->output.Close();
	child->errors.Close();
}

std::string HowItEnded(const Child &child)
{
	std::string text = WIFSIGNALED(child.status)
			       ? "was killed by signal " + std::to_string(WTERMSIG(child.status)) + " (" +
				     strsignal(WTERMSIG(child.status)) + ")"
			       : "ended with status " + std::to_string(WEXITSTATUS(child.status));
	for (size_t i = 0; i < child.last.size(); i++)
		text += (i ? " / " : "; it said: ") + child.last[i];
	return text;
}

bool EndedWell(const Child &child)
{
	return child.ended && WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0;
}

void WaitForAny(const std::vector<int> &fds, int ms)
{
	std::vector<pollfd> polled;
	for (int fd : fds)
		polled.push_back({fd, POLLIN, 0});
	poll(polled.data(), polled.size(), ms);
}

void CatchStops()
{
	struct sigaction action = {};
	action.sa_handler = OnStop;
	for (int s : kStopSignals) {
		struct sigaction old;
		// Under nohup we outlive our terminal, as everything does.
		if (s == SIGHUP && sigaction(s, nullptr, &old) == 0 && old.sa_handler == SIG_IGN)
			continue;
		sigaction(s, &action, nullptr);
	}
	signal(SIGPIPE, SIG_IGN);
	// A child's end interrupts a wait, too.
	action.sa_handler = [](int) {};
	action.sa_flags = SA_NOCLDSTOP;
	sigaction(SIGCHLD, &action, nullptr);
}

int Stops()
{
	return stops;
}

} // namespace forktail::hosts
