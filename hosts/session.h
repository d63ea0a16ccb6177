// SPDX-License-Identifier: MIT
// State of a run on several hosts from the messages of its ranks, and messages for the user.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan.h"
#include "progress.h"
#include "rank_protocol.h"

namespace forktail::hosts
{

struct HostState {
	Told hello, started = Told::array();
	bool loaded = false, over = false; // its loads have ended; all programs have ended
	uint64_t heard_ns = 0;
};

struct Session {
	std::map<std::string, HostState> hosts;
	std::map<std::string, LoadSecond> loads; // by "host/name"
	std::vector<std::string> troubles;	 // sentences for run.json
	bool cannot = false, ending = false;
	uint64_t go_ns = 0; // when all hosts were ready
	bool open = false;  // the terminal shows a progress line
	uint64_t shown_ns = 0;
};

// Removes the progress line and prints a sentence.
void Say(Session *session, const std::string &sentence);
// Prints and remembers a problem.
void Trouble(Session *session, const std::string &sentence);
// Processes one message of a rank. True: the run must end.
bool Take(Session *session, const Plan &plan, const Told &told);
// Shows the progress line if it is due.
void ShowProgress(Session *session, const Plan &plan);
// True if all loads have ended, as reported by the hosts.
bool AllLoaded(const Session &session, const Plan &plan);
bool AllOver(const Session &session, const Plan &plan);

} // namespace forktail::hosts
