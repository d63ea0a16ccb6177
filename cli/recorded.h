// SPDX-License-Identifier: MIT
// A recording that forktail itself supervises: while a command runs, with a line on the terminal, and
// explained at its end.
#pragma once

#include <string>
#include <vector>

namespace forktail::cli
{

struct Supervised {
	std::vector<std::string> recorder; // the options of forktail-record
	// Recorded while it runs. Empty: until the recorder ends, or a signal ends it. Without targets among
	// the recorder's options, those are the processes of the command that listen on a socket.
	std::vector<std::string> command;
	bool line = false; // show what happens on standard error, which is a terminal
};

struct Recorded {
	int status = 0;	       // of the command, if it ran and the recording succeeded; else the recorder's
	bool recorded = false; // the recording is complete
	std::string path;      // of the recording
	int64_t began_s = 0;   // when it began, since 1970
};

// Records. Errors are printed. Standard output is the command's alone.
Recorded Supervise(const Supervised &asked);

// What to explain: the recording, or the run directory around it if the load generator wrote there meanwhile.
std::string RunOf(const Recorded &recorded);

// Whether the words of a command line have an option: its long name (or at least three letters of its
// beginning), or its letter (0: none).
bool HasOption(const std::vector<std::string> &words, const std::string &name, char letter = 0);
// Whether they name a process to record.
bool HasTarget(const std::vector<std::string> &words);

} // namespace forktail::cli
