// SPDX-License-Identifier: MIT
// A running forktail-record, for tests. After construction it is recording. stop() ends it as Ctrl-C would.
#pragma once
#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/recorded.h"
#include "tests/support/tempdir.h"

namespace forktail::test
{

inline bool root()
{
	return geteuid() == 0;
}

class Recorder
{
public:
	explicit Recorder(pid_t target, const std::vector<std::string> &more = {})
	    : Recorder({"--pid", std::to_string(target)}, more)
	{
	}
	// The target's options: {"--cgroup", "/docker/x"}.
	explicit Recorder(const std::vector<std::string> &target, const std::vector<std::string> &more = {})
	{
		std::vector<std::string> argv = {program("forktail-record"), "-o", path()};
		argv.insert(argv.end(), target.begin(), target.end());
		argv.insert(argv.end(), more.begin(), more.end());
		process_ = std::make_unique<Process>(argv);
		const bool began = eventually(
		    [&] { return process_->err().find("recording ") == 0 || !process_->running(); },
		    Seconds(30));
		if (!began || !process_->running())
			throw std::runtime_error("forktail-record did not start: " + process_->err());
	}
	std::string path() const { return dir_.file("server.forktail"); }
	Process &process() { return *process_; }
	// Ends it by SIGINT and reads its file. Throws if its exit status is not 0.
	Recorded stop()
	{
		process_->signal(SIGINT);
		return finished();
	}
	// Waits for its own end.
	Recorded finished()
	{
		const auto status = process_->wait(Seconds(60));
		if (status != 0)
			throw std::runtime_error("forktail-record ended badly: " + process_->err());
		return read_recording(path());
	}

private:
	TempDir dir_;
	std::unique_ptr<Process> process_;
};

} // namespace forktail::test
