// SPDX-License-Identifier: MIT
// Runs forktail's programs for the lab: the recorder, the load generator, the analysis.
#pragma once

#include <string>
#include <vector>

#include "lab/host/session.h"

namespace forktail::lab
{

// Finds the directory of forktail, forktail-record and forktail-load: that of the running program. False: one
// is missing; *error names it.
bool FindPrograms(std::string *directory, std::string *error);

// Starts the recorder on these processes, with further options, and waits until it records. It is `needed`
// until WaitForEnd. nullptr: *error is one sentence.
Child *StartRecorder(Session *session, const std::string &programs, const std::vector<pid_t> &pids,
		     const std::vector<std::string> &options, const std::string &path, std::string *error);

// Runs `forktail WORDS` to its end. Its output goes to `output`, or to the lab's output if that is "".
bool RunForktail(Session *session, const std::string &programs, const std::vector<std::string> &words,
		 const std::string &output, std::string *error);

} // namespace forktail::lab
