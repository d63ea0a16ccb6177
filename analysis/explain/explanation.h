// SPDX-License-Identifier: MIT
// The whole explanation of a run, as data; what prints it and the report page only show it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/blame/blame.h"
#include "analysis/evidence/activity.h"
#include "analysis/evidence/episodes.h"
#include "analysis/evidence/own_code.h"
#include "analysis/passes/peaks.h"
#include "analysis/run/log.h"
#include "analysis/run/progress.h"
#include "analysis/run/run.h"
#include "analysis/source/source.h"
#include "analysis/timeline/timeline.h"

namespace forktail::analysis
{

struct Explanation {
	Run run;
	// Index into run.threads, or -1: per server, then per server behind, then further threads that serve.
	std::vector<int> serving;
	std::vector<Timeline> timelines; // likewise (at least one entry), then of threads those waited for
	Serving by_thread;
	bool waits_for_locks = false; // some thread did
	bool by_loops = false;	      // there is no log, and timelines are of all threads with an event loop
	Clients clients;
	Blame blame;
	Peaks peaks;			// of all answered requests; empty without a log
	std::vector<Episode> episodes;	// by start
	std::string culprit;		// what is behind the first cause, as a clause; "" if nothing names it
	std::vector<Account> accounts;	// per thread of the run
	Activities activities;		// per CPU sample that is there
	std::vector<OwnCode> own_codes; // per thread of the run
	OwnCode own_code;		// of the serving threads
	std::vector<std::string> notes; // what limits this explanation, one sentence each
	uint64_t zero_ns = 0;  // what "+12.304 s" counts from: the first request, else the recording's start
	uint64_t first_ns = 0; // the same, but of a part of a run its first request, or its start
	uint64_t measured_ns = 0; // from there to the last answer, or the recording's end
	bool in_part = false;	  // only of requests due (of iterations that began) in `part`
	TimeSpan part;
	TimeSpan whole;	   // then: from the first request of the run to its last answer
	Progress progress; // of what follows
	// Where the run's requests come from, a window of which is in `run`; null: all of them are.
	std::unique_ptr<RunSource> source;
	// Of what threads did a stretch is in `run`, with its timelines above. As it is: all of it.
	Stretches stretches;
	std::unique_ptr<Log> log, log_before; // of the part, and of what was due before it (null: nothing)
};

} // namespace forktail::analysis
