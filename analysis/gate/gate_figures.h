// SPDX-License-Identifier: MIT
// The figures of a run that limits need: which of them the explanation has, and what must be collected or
// read from the log.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "common/limits/limits.h"
#include "operations.h"

namespace forktail::analysis::gate
{

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
	// After the run is explained: reads its log for what the limits need.
	void Finish(Explanation *explanation);

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

} // namespace forktail::analysis::gate
