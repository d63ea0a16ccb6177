// SPDX-License-Identifier: MIT
// Processes under test; see process.h.
#include "tests/support/process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace forktail::test
{
namespace
{

int checked(int result, const char *what)
{
	if (result < 0)
		throw std::system_error(errno, std::generic_category(), what);
	return result;
}

int memory_file(const char *name)
{
	return checked(memfd_create(name, MFD_CLOEXEC), "memfd_create");
}

std::string contents(int fd)
{
	std::string all;
	char chunk[65536];
	for (ssize_t n; (n = pread(fd, chunk, sizeof(chunk), static_cast<off_t>(all.size()))) > 0;)
		all.append(chunk, static_cast<size_t>(n));
	return all;
}

[[noreturn]] void become(char *const *argv, const ProcessOptions &options, pid_t parent, int in, int out,
			 int err)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127); // the test died before prctl
	dup2(in, 0);
	dup2(out, 1);
	dup2(err, 2);
	// A test that ignores or blocks a signal must not hand that on.
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, nullptr);
	::signal(SIGPIPE, SIG_DFL);
	for (const auto &[name, value] : options.environment)
		setenv(name.c_str(), value.c_str(), 1);
	if (!options.directory.empty() && chdir(options.directory.c_str()))
		dprintf(2, "cannot enter %s: %s\n", options.directory.c_str(), std::strerror(errno));
	else
		execvp(argv[0], argv);
	dprintf(2, "cannot run %s: %s\n", argv[0], std::strerror(errno));
	_exit(127);
}

} // namespace

Process::Process(const std::vector<std::string> &argv, const ProcessOptions &options)
{
	std::vector<char *> args;
	for (const auto &arg : argv)
		args.push_back(const_cast<char *>(arg.c_str()));
	args.push_back(nullptr);

	out_ = memory_file("stdout");
	err_ = memory_file("stderr");
	const int in = memory_file("stdin");
	if (pwrite(in, options.input.data(), options.input.size(), 0) !=
	    static_cast<ssize_t>(options.input.size()))
		throw std::system_error(errno, std::generic_category(), "cannot store standard input");

	const pid_t parent = getpid();
	pid_ = checked(fork(), "fork");
	if (pid_ == 0)
		become(args.data(), options, parent, in, out_, err_);
	close(in);
	pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)); // what wait() with a limit needs
	if (pidfd_ < 0)
		kill(pid_, SIGKILL);
	checked(pidfd_, "pidfd_open");
}

Process::~Process()
{
	if (running()) {
		signal(SIGKILL);
		wait(Seconds(10));
	}
	for (int fd : {pidfd_, out_, err_})
		if (fd >= 0)
			close(fd);
}

bool Process::running()
{
	return !wait(Seconds(0));
}

void Process::signal(int number)
{
	if (!status_) // not reaped by us, so the number still is its own
		kill(pid_, number);
}

std::optional<int> Process::wait(Seconds limit)
{
	if (status_)
		return status_;
	pollfd ended = {pidfd_, POLLIN, 0};
	const auto end = std::chrono::steady_clock::now() + limit;
	for (;;) {
		const Seconds left = end - std::chrono::steady_clock::now();
		const int ms = left.count() > 0 ? static_cast<int>(left.count() * 1000) + 1 : 0;
		const int ready = poll(&ended, 1, ms);
		if (ready > 0)
			break;
		if (ready == 0)
			return {};
		if (errno != EINTR)
			throw std::system_error(errno, std::generic_category(), "poll");
	}
	int raw = 0;
	rusage usage = {};
	checked(wait4(pid_, &raw, 0, &usage), "wait4");
	peak_bytes_ = static_cast<size_t>(usage.ru_maxrss) * 1024;
	status_ = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
	return status_;
}

std::string Process::out() const
{
	return contents(out_);
}

std::string Process::err() const
{
	return contents(err_);
}

Result run(const std::vector<std::string> &argv, Seconds limit, const ProcessOptions &options)
{
	Process process(argv, options);
	Result result;
	auto status = process.wait(limit);
	if (!status) {
		result.timed_out = true;
		process.signal(SIGKILL);
		status = process.wait(Seconds(10));
	}
	result.status = status.value_or(-1);
	result.out = process.out();
	result.err = process.err();
	result.peak_bytes = process.peak_bytes();
	return result;
}

std::string program(const std::string &name)
{
	return std::string(FORKTAIL_BIN_DIR) + "/" + name;
}

void sleep_for(Seconds time)
{
	std::this_thread::sleep_for(time);
}

} // namespace forktail::test
