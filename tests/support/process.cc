// SPDX-License-Identifier: MIT
// Processes under test. See process.h.
#include "tests/support/process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace forktail::test
{

namespace common = forktail::common;
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

} // namespace

Process::Process(const std::vector<std::string> &argv, const ProcessOptions &options)
{
	out_ = memory_file("stdout");
	err_ = memory_file("stderr");
	const int in = memory_file("stdin");
	if (pwrite(in, options.input.data(), options.input.size(), 0) !=
	    static_cast<ssize_t>(options.input.size()))
		throw std::system_error(errno, std::generic_category(), "cannot store standard input");

	common::Command command;
	command.name = argv[0];
	command.argv = argv;
	command.environment = options.environment;
	command.directory = options.directory;
	command.in = in;
	command.out = out_;
	command.err = err_;
	command.group = common::Group::kOurs;
	std::string error;
	const bool started = common::StartChild(command, &child_, &error);
	close(in);
	if (child_.pid < 0)
		throw std::runtime_error(error);
	if (!started)
		dprintf(err_, "%s\n", error.c_str());
}

Process::~Process()
{
	common::EndChild(&child_);
	close(out_);
	close(err_);
}

std::optional<int> Process::wait(Seconds limit)
{
	const auto end = std::chrono::steady_clock::now() + limit;
	while (!common::HasEnded(&child_)) {
		const Seconds left = end - std::chrono::steady_clock::now();
		if (left.count() <= 0)
			return {};
		common::WaitForAny({child_.pidfd}, static_cast<int>(left.count() * 1000) + 1);
	}
	return WIFSIGNALED(child_.status) ? 128 + WTERMSIG(child_.status) : WEXITSTATUS(child_.status);
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

bool is_gone(pid_t pid)
{
	std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
	std::string line;
	return !std::getline(stat, line) || line[line.rfind(')') + 2] == 'Z';
}

pid_t pid_in(const std::string &path)
{
	pid_t pid = 0;
	const bool written = eventually([&] {
		std::ifstream file(path);
		return file >> pid && file.get() == '\n';
	});
	if (!written)
		throw std::runtime_error("no number in " + path);
	return pid;
}

std::string program(const std::string &name)
{
	return std::string(FORKTAIL_BIN_DIR) + "/" + name;
}

void sleep_for(Seconds time)
{
	std::this_thread::sleep_for(time);
}

bool two_cpus()
{
	cpu_set_t allowed;
	if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_ISSET(0, &allowed) &&
	    CPU_ISSET(1, &allowed))
		return true;
	std::cerr << "SKIPPED: this test needs the CPUs 0 and 1\n";
	return false;
}

} // namespace forktail::test
