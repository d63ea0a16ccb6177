// SPDX-License-Identifier: MIT
// What limits ask of a run: which figure that is of an explanation, and what has to be watched or gone
// through for it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "common/limits/limits.h"
#include "operations.h"

namespace forktail::analysis::gate
{

// Of one cause, over all slow requests, kept or not.
struct CauseWatch {
	uint64_t longest_ns = 0; // the most of it in one request; that was
	uint64_t start_ns = 0, latency_ns = 0;
};

// The latency of all requests that a limit is about, if the explanation has it by name; else null.
const NamedLatency *ExplainedLatency(const limit &limit);

class RunFigures
{
public:
	// What is asked. Each limit's `cause` is set where it names one.
	explicit RunFigures(std::vector<limit> *limits);
	RunFigures(const RunFigures &) = delete;
	RunFigures &operator=(const RunFigures &) = delete;

	// Has the explanation of a run tell of its slow requests; lives until that is done.
	void Watch(ExplainOptions *options);
	// The run is explained: goes through its log for what is asked.
	void Finish(Explanation *explanation);

	// In the unit of limit.value. NAN: it can't be known, and *why says why, without a subject.
	double Value(const limit &limit, std::string *why) const;
	// The cause a limit names; false: it names none.
	static bool CauseOf(const limit &limit, Cause *cause);

	const Explanation &explanation() const { return *explanation_; }
	const CauseWatch &watch(Cause cause) const { return causes_[static_cast<size_t>(Index(cause))]; }
	// The time of slow requests of operations so called, "" all, by cause.
	std::array<uint64_t, kCauses> TimesOf(const std::string &operation) const;

private:
	double OfCause(const limit &limit, Cause cause, std::string *why) const;
	double OfAll(const limit &limit, std::string *why) const;
	double OfRequests(const limit &limit, const OperationFigures &f, std::string *why) const;

	Operations operations_;
	std::array<CauseWatch, kTimelineCauses> causes_ = {};
	std::array<std::array<uint64_t, kCauses>, 256> by_op_ = {};
	const Explanation *explanation_ = nullptr;
	bool slow_only_ = false; // the log has no others
};

} // namespace forktail::analysis::gate
