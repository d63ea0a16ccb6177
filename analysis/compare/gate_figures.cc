// SPDX-License-Identifier: MIT
// The figures that limits name.
//
// A figure that the explanation has is taken from it, so that gate and explain agree.
#include "analysis/gate.h"

#include <algorithm>
#include <cmath>
#include <strings.h>

#include "analysis/run.h"
#include "analysis/text.h"
#include "common/json.h"
#include "common/text.h"

namespace forktail::analysis::gate
{

namespace
{

double NotKnown(std::string why, std::string *to)
{
	*to = std::move(why);
	return NAN;
}

// A log with only slow and failed requests has no other figures of all requests.
bool HasSlowOnly(const Run &run)
{
	const std::vector<const RecordingFile *> files = OverlaidFiles(run);
	return std::any_of(files.begin(), files.end(), [](const RecordingFile *f) {
		const common::Json manifest = common::ParseVisibleObject(f->manifest);
		return manifest.contains("log_slow_ns");
	});
}

bool IsOfSlowOnes(const limit &l)
{
	const NamedLatency *latency = ExplainedLatency(l);
	return l.figure == LIMIT_ERRORS || (latency && latency->value == &Latencies::max);
}

// Whether a figure of all requests needs the log.
bool NeedsLog(const limit &l)
{
	return l.figure == LIMIT_MINIMUM || l.figure == LIMIT_STDDEV ||
	       (l.figure == LIMIT_PERCENTILE && !ExplainedLatency(l));
}

} // namespace

const NamedLatency *ExplainedLatency(const limit &l)
{
	const double percentile = l.figure == LIMIT_MAXIMUM	 ? 100
				  : l.figure == LIMIT_PERCENTILE ? l.percentile
								 : 0;
	for (const NamedLatency &n : kLatencies)
		if (n.percentile == percentile)
			return &n;
	return nullptr;
}

bool RunFigures::CauseOf(const limit &l, Cause *cause)
{
	const bool can_be = l.cause || l.figure == LIMIT_MAXIMUM || l.figure == LIMIT_REQUESTS;
	return can_be && *l.of && CauseByName(l.of, cause);
}

RunFigures::RunFigures(std::vector<limit> *limits)
{
	for (limit &l : *limits) {
		Cause cause;
		l.cause |= CauseOf(l, &cause);
		if (const NamedLatency *latency = ExplainedLatency(l);
		    !ranked_by_ && latency && latency->percentile >= kLowestWithout && !*l.of)
			ranked_by_ = latency;
		if (l.cause || (!*l.of && !NeedsLog(l)))
			continue;
		OperationFigures *f = &operations_[l.of];
		if (l.figure == LIMIT_PERCENTILE)
			f->percentiles[l.percentile] = 0;
	}
}

void RunFigures::Watch(ExplainOptions *options)
{
	options->ranked_by = ranked_by_;
	options->tell = [this](const Run &, const SlowRequest &r, const Part *parts) {
		for (size_t i = 0; i < r.part_count; i++) {
			CauseWatch *watch = &causes_[static_cast<size_t>(Index(parts[i].cause))];
			by_op_[r.op][static_cast<size_t>(Index(parts[i].cause))] += parts[i].total_ns();
			if (parts[i].total_ns() > watch->longest_ns)
				*watch = {parts[i].total_ns(), r.due_ns, r.latency_ns};
		}
	};
}

void RunFigures::Finish(const Explanation &explanation, Reading *reading)
{
	explanation_ = &explanation;
	slow_only_ = HasSlowOnly(reading->run);
	if (!explanation.blame.from_iterations && reading->log)
		FindOperations(reading->run, reading->log.get(), &operations_);
}

std::array<uint64_t, kCauses> RunFigures::TimesOf(const std::string &operation) const
{
	std::array<uint64_t, kCauses> times = {};
	const std::vector<std::string> &ops = explanation_->run.ops;
	for (size_t op = 0; op < by_op_.size(); op++)
		if (operation.empty() ||
		    (op < ops.size() && strcasecmp(ops[op].c_str(), operation.c_str()) == 0))
			for (size_t c = 0; c < times.size(); c++)
				times[c] += by_op_[op][c];
	return times;
}

double RunFigures::OfCause(const limit &l, Cause cause, std::string *why) const
{
	const Explanation &e = *explanation_;
	if (e.run.threads.empty())
		return NotKnown(e.run.path + " has no recording of a server", why);
	if (l.figure == LIMIT_MAXIMUM)
		return static_cast<double>(watch(cause).longest_ns);
	const NamedFigure figure = *FindFigure(e, cause, l.figure_name);
	return figure.unit == FigureUnit::kShare ? 100 * figure.value : figure.value;
}

double RunFigures::OfRequests(const limit &l, const OperationFigures &f, std::string *why) const
{
	if (!f.answered() && (l.figure <= LIMIT_STDDEV))
		return NotKnown("none of these requests was answered", why);
	const double seconds = static_cast<double>(explanation_->measured_ns) * 1e-9;
	switch (l.figure) {
	case LIMIT_PERCENTILE:
		return static_cast<double>(f.percentiles.at(l.percentile));
	case LIMIT_AVERAGE:
		return f.mean_ns;
	case LIMIT_MINIMUM:
		return static_cast<double>(f.min_ns);
	case LIMIT_MAXIMUM:
		return static_cast<double>(f.latencies.max);
	case LIMIT_STDDEV:
		return f.stddev_ns();
	case LIMIT_ERRORS:
		return static_cast<double>(f.errors);
	case LIMIT_ERROR_PERCENT:
		return 100 * static_cast<double>(f.errors) / static_cast<double>(f.requests);
	case LIMIT_MISSES:
		return static_cast<double>(f.misses);
	case LIMIT_REQUESTS:
		return static_cast<double>(f.requests);
	case LIMIT_RPS:
		return seconds > 0 ? static_cast<double>(f.answered()) / seconds : NAN;
	default:
		return NotKnown("a request log does not count bytes. Use forktail load --fail-if", why);
	}
}

double RunFigures::OfAll(const limit &l, std::string *why) const
{
	const Blame &b = explanation_->blame;
	const uint64_t answered = b.count - b.errors;
	if (const NamedLatency *latency = answered ? ExplainedLatency(l) : nullptr)
		return static_cast<double>(b.latencies.*latency->value);
	OperationFigures f;
	f.requests = b.count;
	f.errors = b.errors;
	f.misses = b.by_status[FT_STATUS_MISS];
	f.latencies.count = answered;
	f.mean_ns = b.latencies.mean;
	if (auto found = operations_.find(""); found != operations_.end() && NeedsLog(l))
		return OfRequests(l, found->second, why);
	return OfRequests(l, f, why);
}

// "; did you mean the cause fork?", or "" if no cause has such a name.
static std::string Meant(const char *name)
{
	std::vector<const char *> names;
	for (const CauseInfo &info : kCauseTable)
		names.push_back(info.name);
	const char *closest = closest_name(name, names.data(), names.size());
	return closest ? std::string("; did you mean the cause ") + closest + "?" : "";
}

double RunFigures::Value(const limit &l, std::string *why) const
{
	Cause cause;
	if (CauseOf(l, &cause))
		return OfCause(l, cause, why);
	const Explanation &e = *explanation_;
	if (l.figure == LIMIT_EPISODES || l.figure == LIMIT_DROPS)
		return FindFigure(e, l.figure_name)->value;
	if (e.blame.from_iterations)
		return NotKnown(e.run.path + " has no request log", why);
	if (slow_only_ && !IsOfSlowOnes(l))
		return NotKnown("the log of " + e.run.path + " holds only slow requests (--log slow:)", why);
	if (!*l.of)
		return OfAll(l, why);
	const OperationFigures &f = operations_.at(l.of);
	if (!f.known)
		return NotKnown(e.run.path + " has no operation " + l.of +
				    ", and no cause of that name has this figure" + Meant(l.of),
				why);
	return OfRequests(l, f, why);
}

} // namespace forktail::analysis::gate
