// SPDX-License-Identifier: MIT
// What a plan means for one host: the programs that run there, with their words.
#pragma once

#include <string>
#include <vector>

#include "plan.h"

namespace forktail::hosts
{

struct Job {
	// In the order in which they are started; they are ended the other way round.
	enum Kind { kClock, kRecorder, kLoad } kind;
	std::string name;	       // of its recording and its log: NAME.forktail, NAME.log
	std::vector<std::string> argv; // the program without a directory, then its words
};

// `directory` is where the host keeps its files. A load lacks --start-at, which is agreed upon later.
std::vector<Job> JobsOf(const Plan &plan, const PlanHost &host, const std::string &directory);

// "recorder and load", for messages.
std::string RolesOf(const Plan &plan, const PlanHost &host);

} // namespace forktail::hosts
