// SPDX-License-Identifier: MIT
// See pager.h. $PAGER is the user's own command line and goes to the shell, as it does elsewhere; the
// program's words don't.
#include "pager.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

namespace forktail::live::watch
{

namespace
{

constexpr int kCouldNot = 127;

// The keys that end programs are the pager's while it runs.
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

void TakeKeys()
{
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
}

[[noreturn]] void BeProgram(const std::vector<std::string> &argv, const int (&ends)[2])
{
	TakeKeys();
	dup2(ends[1], STDOUT_FILENO);
	dup2(ends[1], STDERR_FILENO);
	close(ends[0]);
	close(ends[1]);
	std::vector<char *> words;
	for (const std::string &word : argv)
		words.push_back(const_cast<char *>(word.c_str()));
	words.push_back(nullptr);
	execv(words[0], words.data());
	fprintf(stderr, "can't run %s: %s\n", words[0], strerror(errno));
	_exit(kCouldNot);
}

[[noreturn]] void BePager(const int (&ends)[2])
{
	TakeKeys();
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	close(ends[1]);
	setenv("LESS", "R", 0); // colours, and stay when it all fits
	const char *pager = getenv("PAGER");
	if (!pager || !*pager)
		pager = "if command -v less >/dev/null; then exec less; else exec more; fi";
	execl("/bin/sh", "sh", "-c", pager, nullptr);
	_exit(kCouldNot);
}

} // namespace

std::string ShowInPager(const std::vector<std::string> &argv, size_t columns)
{
	int ends[2];
	if (pipe(ends))
		return std::string("can't open a pager: ") + strerror(errno);
	IgnoredKeys ignored;
	const std::string width = std::to_string(columns);
	const pid_t program = fork();
	if (program == 0) {
		setenv("COLUMNS", width.c_str(), 1);
		BeProgram(argv, ends);
	}
	const pid_t pager = program < 0 ? -1 : fork();
	if (pager == 0)
		BePager(ends);
	const int error = errno;
	close(ends[0]);
	close(ends[1]);
	int status = 0;
	if (pager > 0)
		waitpid(pager, &status, 0);
	if (program > 0) {
		kill(program, SIGTERM); // nobody reads what it has still to say
		waitpid(program, nullptr, 0);
	}
	if (program < 0 || pager < 0)
		return std::string("can't open a pager: ") + strerror(error);
	return WIFEXITED(status) && WEXITSTATUS(status) == kCouldNot ? "there is no pager: set PAGER" : "";
}

} // namespace forktail::live::watch
