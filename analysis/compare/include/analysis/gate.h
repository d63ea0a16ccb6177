// SPDX-License-Identifier: MIT
// Checks whether a run meets its limits, and names the cause if not.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/explain.h"
#include "analysis/passes.h"
#include "analysis/run.h"
#include "analysis/text.h"
#include "common/text.h"

namespace forktail::analysis::gate
{

// Exact figures of single operations, and of percentiles that the explanation does not have, from the request
// log. One pass counts, and usually one more finds percentiles. Without such limits the log is not read.

struct OperationFigures {
	std::array<bool, 256> ops = {}; // indices into Run::ops that match the name
	bool known = false;		// there are requests of such an operation
	uint64_t requests = 0, errors = 0, misses = 0;
	LogHistogram latencies; // of those answered
	uint64_t min_ns = UINT64_MAX;
	double mean_ns = 0, square_sum = 0;	// of distances to the mean: Welford's method
	std::map<double, uint64_t> percentiles; // requested, and filled in

	uint64_t answered() const { return latencies.count; }
	double stddev_ns() const; // of all values, not of a sample
};

// By the operation's name as the user wrote it, ignoring case; "": all operations.
using Operations = std::map<std::string, OperationFigures>;

// Fills in `wanted`. The keys of its `percentiles` are those requested.
void FindOperations(const Run &run, Log *log, Operations *wanted);

// Limits as they are asked for: on the command line, and in a file of a project (TOML):
//
//   slow = "1ms"                     # what is slow, as --slow; optional
//   limits = [
//     "p99.9 < 5ms",
//     { limit = "fork.max < 20ms", name = "snapshots don't stall" },
//   ]

struct AskedLimit {
	std::string text; // "p99.9 < 5ms"
	std::string name; // "": no name
};

struct AskedLimits {
	std::vector<AskedLimit> asked;
	std::vector<limit> limits; // likewise
	std::string slow;	   // "": not in the file
};

// Adds a limit. A bare "no worse than BASE ..." becomes one limit each on p50, p99 and p99.9. False: *error
// is one sentence. If it has to hold, a limit such as "p99 > 5ms" is refused.
bool AddLimit(const AskedLimit &asked, limit_reading reading, AskedLimits *limits, std::string *error);
// Adds a file's limits. False: *error is one sentence with the place.
bool ReadLimitsFile(const std::string &path, AskedLimits *limits, std::string *error);

// The figures of a run that limits need: which of them the explanation has, and what must be collected or
// read from the log.

// One cause, over all slow requests, stored or not.
struct CauseWatch {
	uint64_t longest_ns = 0; // the most time in one request; of that request:
	uint64_t start_ns = 0, latency_ns = 0;
};

// The latency of all requests that a limit is about, if the explanation has it; else null.
const NamedLatency *ExplainedLatency(const limit &limit);

class RunFigures
{
public:
	// The limits to evaluate. Sets `cause` of each limit that names one.
	explicit RunFigures(std::vector<limit> *limits);
	RunFigures(const RunFigures &) = delete;
	RunFigures &operator=(const RunFigures &) = delete;

	// Collects slow requests while the run is explained, and ranks causes by the first percentile with a
	// limit. This object must live until then.
	void Watch(ExplainOptions *options);
	// After the run is explained: reads its log for what the limits need. The explanation must live as
	// long as this object.
	void Finish(const Explanation &explanation, Reading *reading);

	// In the unit of limit.value. NAN: unknown, and *why is the reason.
	double Value(const limit &limit, std::string *why) const;
	// The cause that a limit names; false: none.
	static bool CauseOf(const limit &limit, Cause *cause);

	const Explanation &explanation() const { return *explanation_; }
	const CauseWatch &watch(Cause cause) const { return causes_[static_cast<size_t>(Index(cause))]; }
	// The time by cause of slow requests of operations with this name; "": of all.
	std::array<uint64_t, kCauses> TimesOf(const std::string &operation) const;

private:
	double OfCause(const limit &limit, Cause cause, std::string *why) const;
	double OfAll(const limit &limit, std::string *why) const;
	double OfRequests(const limit &limit, const OperationFigures &f, std::string *why) const;

	Operations operations_;
	std::array<CauseWatch, kTimelineCauses> causes_ = {};
	std::array<std::array<uint64_t, kCauses>, 256> by_op_ = {};
	const Explanation *explanation_ = nullptr;
	const NamedLatency *ranked_by_ =
	    nullptr;		 // what the first limit on a percentile of all requests is about
	bool slow_only_ = false; // the log has only slow requests
};

// Whether a run meets a limit, as a sentence, and the reason if not.

struct Verdict {
	enum Outcome { kKept, kBroken, kNotKnown };
	AskedLimit asked;
	limit by = {};	   // the limit that was checked; for one against a base, with the base's value
	bool base = false; // the limit is relative to a base
	Outcome outcome = kNotKnown;
	double value = 0, base_value = 0; // in the unit of limit.value; NAN: unknown
	std::string sentence;		  // "p99.9 is 21.4 ms, over 5 ms"
	std::string reason;		  // "without fork it would be 1.2 ms"; "": unknown
	std::string cause;		  // "fork"; "": none
	std::string evidence;		  // a sentence about when it happened

	// All of it, in one line.
	std::string text() const;
};

// Judges each limit. `base`: null without one; the caller has refused limits that need one.
std::vector<Verdict> Judge(const AskedLimits &limits, limit_reading reading, const RunFigures &run,
			   const RunFigures *base);

// 0: all are met; 1: one is broken; 3: none is broken, but one is unknown.
int StatusOf(const std::vector<Verdict> &verdicts);

// Verdicts as text, as JSON, and as JUnit XML for build servers.

// The runs of the verdicts.
struct Gated {
	std::string run, base; // paths; no base: ""
	std::string answer;    // what made the run's slow requests slow: an explanation's first line
	// What may be missing: damage, and what the recorder could not see.
	std::vector<std::string> notes;
};

// `base`: null without one.
Gated GatedOf(const Explanation &run, const Explanation *base);

std::string GateText(const Gated &gated, const std::vector<Verdict> &verdicts);
std::string GateJson(const Gated &gated, const std::vector<Verdict> &verdicts);
JunitSuite GateJunit(const Gated &gated, const std::vector<Verdict> &verdicts, double seconds);

} // namespace forktail::analysis::gate
