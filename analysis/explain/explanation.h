// SPDX-License-Identifier: MIT
// The whole explanation of a run as data. Text, JSON and report page only present it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/blame/blame.h"
#include "analysis/evidence/activity.h"
#include "analysis/evidence/episodes.h"
#include "analysis/evidence/own_code.h"
#include "analysis/passes/groups.h"
#include "analysis/passes/lead.h"
#include "analysis/passes/peaks.h"
#include "analysis/run/log.h"
#include "analysis/run/part.h"
#include "analysis/run/progress.h"
#include "analysis/run/run.h"
#include "analysis/source/source.h"
#include "analysis/timeline/timeline.h"
#include "server_commands.h"
#include "server_count.h"
#include "server_threads.h"

namespace forktail::analysis
{

// What the end of a recorded process did to requests (process_ends.h): an entry per Run::ended.
struct ServerEnd {
	int server = -1;	     // index into Run::servers; -1: it served none of these requests itself
	uint64_t next_answer_ns = 0; // to a request that was sent after the end; 0: none
	// Requests of the outage without an answer: sent, and never sent.
	uint64_t failed = 0, unsent = 0;
	uint32_t successor = 0; // a recorded process of the same name that began later; 0: none
	uint64_t began_ns = 0;	// when
};

// Overload of an open loop (overload.h).
struct Overload {
	enum Limit { Unknown, Server, Client }; // who used all of its CPU
	TimeSpan period = {0, 0};
	bool whole = false; // almost all of the time in which requests were due
	double due_per_s = 0, answered_per_s = 0;
	uint64_t backlog = 0; // due, and neither answered nor failed, at the period's end
	uint64_t unsent = 0;  // of the run
	Limit limit = Unknown;
	int thread = -1; // index into Run::threads; of that one, or the busiest serving one; -1: none
	double cpu = 0;	 // its share of a CPU in the period
	double server_cpu = 0, client_cpu = 0; // of the busiest serving and load threads; -1: not recorded
};

struct Explanation {
	Run run;
	// Index into run.threads, or -1: one per server, one per server behind a proxy, then further serving
	// threads.
	std::vector<int> serving;
	std::vector<Timeline> timelines; // in the same order (at least one), then of threads they waited for
	Serving by_thread;
	bool waits_for_locks = false; // some thread waited for a lock
	bool by_loops = false;	      // no request log: timelines of all threads with an event loop
	Clients clients;
	Blame blame;
	// Only of a kernel log, or if requested; by client only if the log names clients.
	std::vector<RequestGroup> by_client, by_command;
	Peaks peaks;				 // of all answered requests; empty without a request log
	std::vector<Episode> episodes;		 // by start
	Lead lead;				 // what the answer speaks of
	Culprits culprits;			 // behind the causes that it names
	std::vector<Account> accounts;		 // per thread of the run
	Activities activities;			 // per loaded CPU sample
	std::vector<OwnCode> own_codes;		 // per thread of the run
	OwnCode own_code;			 // of the serving threads
	std::optional<ServerCount> server_count; // of the only server, for the whole run
	std::optional<ServerCommands> server_commands; // likewise
	// Calls, in the whole run, of commands that pause clients: {"CLIENT PAUSE", 2}. Of the only server.
	std::map<std::string, uint64_t> pauses;
	ServerThreads server_threads;
	std::vector<ServerEnd> server_ends;	// per Run::ended; empty without a request log
	std::optional<Overload> overload;	// only of an open loop
	std::vector<std::string> notes;		// limits of this explanation, one sentence each
	std::set<std::string> unrecorded_peers; // addresses of servers that recorded processes are clients of
	uint64_t zero_ns = 0;	  // origin of "+12.304 s": the first request, else the start of the recording
	uint64_t first_ns = 0;	  // the same for a part of a run: its first request, or its start
	uint64_t measured_ns = 0; // from first_ns to the last answer, or the end of the recording
	bool in_part = false;	  // only requests due (iterations begun) in `part`
	TimeSpan part;
	TimeSpan whole;	   // if in_part: from the first request of the run to its last answer
	Progress progress; // of the passes
	// Reads the run; `run` holds a window of its requests. Null: `run` holds all of them.
	std::unique_ptr<RunSource> source;
	// Loads stretches of the threads' records into `run` and the timelines. Default: all is loaded.
	Stretches stretches;
	std::unique_ptr<Log> log, log_before; // of the part, and of requests due before it (null: none)
};

} // namespace forktail::analysis
