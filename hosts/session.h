// SPDX-License-Identifier: MIT
// What is known of a run on several hosts from what their ranks tell, and the user is told of it.
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
	bool loaded = false, over = false; // its loads have ended; all has
	uint64_t heard_ns = 0;
};

struct Session {
	std::map<std::string, HostState> hosts;
	std::map<std::string, LoadSecond> loads; // by "host/name"
	std::vector<std::string> troubles;	 // sentences, for run.json and the end
	bool cannot = false, ending = false;
	uint64_t go_ns = 0; // when all hosts were ready
	bool open = false;  // a progress line stands on the terminal
	uint64_t shown_ns = 0;
};

// A sentence for the user, once the progress line is out of the way.
void Say(Session *session, const std::string &sentence);
// The same, of something that went wrong.
void Trouble(Session *session, const std::string &sentence);
// Takes one line of a rank's in. True: the run has to end because of it.
bool Take(Session *session, const Plan &plan, const Told &told);
// Shows the progress line, if it is time to.
void ShowProgress(Session *session, const Plan &plan);
// No load sends any more, as far as hosts can say that.
bool AllLoaded(const Session &session, const Plan &plan);
bool AllOver(const Session &session, const Plan &plan);

} // namespace forktail::hosts
