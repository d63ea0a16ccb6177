// SPDX-License-Identifier: MIT
// What the rows of all tables share: the batches, and the texts of their numbered names.
#include "filler.h"

namespace forktail::analysis::exports
{

namespace
{

// Rows of a batch: enough that the batch's overhead is negligible, few enough for a CPU cache.
constexpr size_t kBatchRows = 1 << 15;

std::vector<std::string> CauseNames()
{
	std::vector<std::string> names;
	for (int c = 0; c < kTimelineCauses; c++)
		names.push_back(AccountName(static_cast<Cause>(c)));
	return names;
}

std::vector<std::string> RequestCauseNames()
{
	std::vector<std::string> names;
	for (int c = 0; c < kCauses; c++)
		names.push_back(CauseName(static_cast<Cause>(c)));
	return names;
}

} // namespace

Filler::Filler(TableSink *sink) : sink_(sink)
{
	for (const TableKind &kind : Tables())
		batches_.emplace_back(kind);
}

void Filler::SetNames(TableId table, const char *column, const std::vector<std::string> &names)
{
	const std::vector<TableColumn> &columns = Tables()[table].columns;
	for (size_t c = 0; c < columns.size(); c++)
		if (columns[c].name == std::string(column))
			batches_[table].SetNames(c, names);
}

bool Filler::Open(const Run &run, const std::string &run_id)
{
	opened_ = true;
	clock_ = WallClock(run);
	for (Batch &b : batches_)
		b.SetNames(0, {run_id});
	std::vector<std::string> behind;
	for (const Behind &b : run.behind)
		behind.push_back(b.address);
	for (TableId t : {kRequests, kSlow, kParts})
		SetNames(t, "op", run.ops);
	for (TableId t : {kRequests, kSlow})
		SetNames(t, "status",
			 {"ok", "miss", "error-reply", "timeout", "reset", "refused", "wrong", "unsent"});
	SetNames(kRequests, "behind", behind);
	SetNames(kParts, "cause", RequestCauseNames());
	for (TableId t : {kSpans, kTallies, kSamples})
		SetNames(t, "cause", CauseNames());
	SetNames(kSpans, "wait_cause", CauseNames());
	SetNames(kDisk, "operation", {"read", "write", "discard", "flush", "other"});
	return ok_ = sink_->Open(Tables());
}

Batch &Filler::Row(TableId table)
{
	Batch &b = batches_[table];
	if (b.rows() >= kBatchRows) {
		ok_ = ok_ && sink_->Write(table, b);
		b.Clear();
	}
	return b.Row();
}

bool Filler::Flush()
{
	for (size_t t = 0; t < batches_.size(); t++) {
		ok_ = ok_ && (batches_[t].rows() == 0 || sink_->Write(t, batches_[t]));
		batches_[t].Clear();
	}
	return ok_;
}

} // namespace forktail::analysis::exports
