// SPDX-License-Identifier: MIT
// See pager.h. $PAGER is the user's command line and is run by the shell; the program's arguments are not.
#include "pager.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/process/child.h"

namespace forktail::live::watch
{

namespace
{

// While the pager runs, it handles the keys that end programs.
class IgnoredKeys
{
public:
	IgnoredKeys()
	{
		struct sigaction ignore = {};
		ignore.sa_handler = SIG_IGN;
		sigaction(SIGINT, &ignore, &interrupt_);
		sigaction(SIGQUIT, &ignore, &quit_);
	}
	~IgnoredKeys()
	{
		sigaction(SIGINT, &interrupt_, nullptr);
		sigaction(SIGQUIT, &quit_, nullptr);
	}

private:
	struct sigaction interrupt_, quit_;
};

} // namespace

std::string ShowInPager(const std::vector<std::string> &argv, size_t columns)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return std::string("cannot open a pager: ") + strerror(errno);
	const char *pager = getenv("PAGER");
	if (!pager || !*pager)
		pager = "if command -v less >/dev/null; then exec less; else exec more; fi";
	common::Command writes{.name = "a program for the pager",
			       .argv = argv,
			       .environment = {{"COLUMNS", std::to_string(columns)}},
			       .in = 0,
			       .out = ends[1],
			       .err = 1,
			       .group = common::Group::kOurs,
			       .death_signal = 0};
	common::Command shows{.name = "a pager",
			      .argv = {"/bin/sh", "-c", pager},
			      .in = ends[0],
			      .err = 2,
			      .group = common::Group::kOurs,
			      .death_signal = 0};
	if (!getenv("LESS"))
		shows.environment = {{"LESS", "R"}}; // colours, and stay when it all fits
	common::Child program, shown;
	std::string error;
	const bool started =
	    common::StartChild(writes, &program, &error) && common::StartChild(shows, &shown, &error);
	close(ends[0]);
	close(ends[1]);
	IgnoredKeys ignored;
	while (started && !common::HasEnded(&shown))
		common::WaitForAny({shown.pidfd}, -1);
	common::EndChild(&program); // its remaining output has no reader
	return started && WIFEXITED(shown.status) && WEXITSTATUS(shown.status) == common::kNotStarted
		   ? "cannot find a pager: set PAGER"
		   : error;
}

} // namespace forktail::live::watch
