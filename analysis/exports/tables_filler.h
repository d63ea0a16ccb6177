// SPDX-License-Identifier: MIT
// The time of day at millions of instants, equal to RealtimeNs() (run.h). The readings of both clocks are
// sorted once, and the nearest one is cached.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/explain.h"
#include "analysis/exports.h"
#include "analysis/run.h"

namespace forktail::analysis::exports
{

class WallClock
{
public:
	WallClock() = default;
	explicit WallClock(const Run &run)
	{
		std::vector<ft_clock> readings = run.clocks;
		std::stable_sort(readings.begin(), readings.end(), [](const ft_clock &a, const ft_clock &b) {
			return a.monotonic_ns < b.monotonic_ns;
		});
		for (const ft_clock &c : readings) {
			if (!spans_.empty()) // at equal distance the earlier one counts
				spans_.back().until_ns = last_ns_ + (c.monotonic_ns - last_ns_) / 2;
			spans_.push_back({UINT64_MAX, static_cast<int64_t>(c.realtime_ns - c.monotonic_ns)});
			last_ns_ = c.monotonic_ns;
		}
	}
	// ns since 1970, UTC; 0: unknown, also for times that no clock can have.
	int64_t At(uint64_t t_ns)
	{
		if (spans_.empty())
			return 0;
		if (t_ns > spans_[at_].until_ns || (at_ && t_ns <= spans_[at_ - 1].until_ns))
			at_ = static_cast<size_t>(
			    std::partition_point(spans_.begin(), spans_.end() - 1,
						 [&](const Span &s) { return s.until_ns < t_ns; }) -
			    spans_.begin());
		int64_t at = 0;
		const bool possible =
		    t_ns <= INT64_MAX &&
		    !__builtin_add_overflow(spans_[at_].offset_ns, static_cast<int64_t>(t_ns), &at);
		return possible && at > 0 ? at : 0;
	}

private:
	struct Span {
		uint64_t until_ns; // the last instant for which this reading is nearest
		int64_t offset_ns; // from CLOCK_MONOTONIC to the time of day
	};
	std::vector<Span> spans_;
	uint64_t last_ns_ = 0;
	size_t at_ = 0;
};

// Fills the tables. Rows are collected in batches, and a full batch goes to the sink. The exporter
// (tables.cc) calls one for the log, one for what threads did, and one at the end for the
// explanation.

class Filler
{
public:
	explicit Filler(TableSink *sink);
	// Must be called first. Uses the run's files and names.
	bool Open(const Run &run, const std::string &run_id);
	bool opened() const { return opened_; }

	bool AddSlow(const Run &run, const SlowRequest &request, const Part *parts);
	// Requests of threshold_ns or more are marked as slow.
	bool AddWindow(const Run &run, uint64_t threshold_ns);
	bool AddStretch(const Run &run, uint64_t from_ns, uint64_t to_ns);
	bool AddFacts(const Explanation &e);
	// Passes the rest of the batches to the sink.
	bool Flush();
	bool ok() const { return ok_; }

private:
	// Adds a row to a table; full batches are written.
	Batch &Row(TableId table);
	void SetNames(TableId table, const char *column, const std::vector<std::string> &names);
	int64_t At(uint64_t t_ns) { return clock_.At(t_ns); }

	void AddSpan(const Run &run, uint32_t thread, const ft_span &span, Cause blocked);
	void AddTally(uint32_t thread, const ft_tally &tally);
	void AddIteration(uint32_t thread, const ft_span &iteration);
	void AddSample(const Run &run, const Activities &activities, size_t index);
	void AddRun(const Explanation &e);
	void AddCauses(const Explanation &e);
	void AddEpisodes(const Explanation &e);
	void AddMetrics(const Run &run);
	void AddStacks(const Run &run);
	void AddConnections(const Run &run);
	void AddThreads(const Explanation &e);
	void AddHops(const Explanation &e);
	void AddDrops(const Run &run);
	void AddMarks(const Run &run);

	TableSink *sink_;
	std::vector<Batch> batches_;
	WallClock clock_;
	bool opened_ = false, ok_ = true;
};

} // namespace forktail::analysis::exports
