// SPDX-License-Identifier: MIT
// The programs of one host in a plan, with their arguments.
#pragma once

#include <string>
#include <vector>

#include "plan.h"

namespace forktail::hosts
{

struct Job {
	// In the order of their start; they are ended in reverse order.
	enum Kind { kClock, kRecorder, kLoad } kind;
	std::string name;	       // of its recording and its log: NAME.forktail, NAME.log
	std::vector<std::string> argv; // the program without a directory, then its arguments
};

// `directory` is the host's directory. --start-at of loads is added later.
std::vector<Job> JobsOf(const Plan &plan, const PlanHost &host, const std::string &directory);

// "recorder and load", for messages.
std::string RolesOf(const Plan &plan, const PlanHost &host);

} // namespace forktail::hosts
