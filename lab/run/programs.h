// SPDX-License-Identifier: MIT
// forktail's own programs as the lab runs them: the recorder, the load generator, the analysis.
#pragma once

#include <string>
#include <vector>

#include "lab/host/session.h"

namespace forktail::lab
{

// The directory of forktail, forktail-record and forktail-load: that of the program that runs. False: one is
// missing, *error says which.
bool FindPrograms(std::string *directory, std::string *error);

// Starts the recorder on these processes, with the load generator beside them or not, and waits until it
// records. It is needed until WaitForEnd. nullptr: *error is one sentence.
Child *StartRecorder(Session *session, const std::string &programs, const std::vector<pid_t> &pids,
		     bool with_client, const std::string &path, std::string *error);

// Runs `forktail WORDS` to its end; its output is the lab's, unless `output` names a file.
bool RunForktail(Session *session, const std::string &programs, const std::vector<std::string> &words,
		 const std::string &output, std::string *error);

} // namespace forktail::lab
