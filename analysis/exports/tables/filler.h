// SPDX-License-Identifier: MIT
// Fills the tables. Rows are collected in batches, and a full batch goes to the sink. The exporter
// (tables.cc) calls requests.cc for the log, threads.cc for what threads did, and facts.cc at the end for the
// explanation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analysis/explain/explanation.h"
#include "schema.h"
#include "table.h"
#include "wall_clock.h"

namespace forktail::analysis::exports
{

class Filler
{
public:
	explicit Filler(TableSink *sink);
	// Must be called first. Uses the run's files and names.
	bool Open(const Run &run, const std::string &run_id);
	bool opened() const { return opened_; }

	bool AddSlow(const Run &run, const SlowRequest &request, const Part *parts);
	bool AddWindow(const Explanation &e);
	bool AddStretch(const Explanation &e, uint64_t from_ns, uint64_t to_ns);
	bool AddFacts(const Explanation &e);
	// Passes the rest of the batches to the sink.
	bool Flush();
	bool ok() const { return ok_; }

private:
	// Adds a row to a table; full batches are written.
	Batch &Row(TableId table);
	void SetNames(TableId table, const char *column, const std::vector<std::string> &names);
	int64_t At(uint64_t t_ns) { return clock_.At(t_ns); }

	void AddSpan(const Explanation &e, uint32_t thread, const ft_span &span, Cause blocked);
	void AddTally(const Explanation &e, uint32_t thread, const ft_tally &tally);
	void AddIteration(const Explanation &e, uint32_t thread, const ft_span &iteration);
	void AddSample(const Explanation &e, uint32_t thread, size_t index);
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
