// SPDX-License-Identifier: MIT
// The slowest requests. Sums are updated as requests arrive, so that they include requests that are dropped
// for lack of room.
#include <algorithm>
#include <functional>

#include "analysis/blame.h"
#include "passes.h"

namespace forktail::analysis
{

void SlowestRequests::SumUp(const SlowRequest &r, const Part *parts)
{
	slow_++;
	slow_ns_ += r.latency_ns;
	clocks_ns_ += r.clocks_ns;
	idle_.unread_ns += r.idle.unread_ns;
	idle_.read_ns += r.idle.read_ns;
	idle_large_ns_ += Requests::Fits(r.answer_bytes) ? 0 : r.idle.read_ns;
	const NetworkSplit split = r.Split();
	split_.requests += split.requests;
	split_.to_server_ns += split.to_server_ns;
	split_.unread_at_server_ns += split.unread_at_server_ns;
	split_.to_client_ns += split.to_client_ns;
	split_.unread_at_client_ns += split.unread_at_client_ns;
	for (size_t p = 0; p < r.part_count; p++) {
		const Part &part = parts[p];
		auto before = [&](auto same) { return std::any_of(parts, parts + p, same); };
		CauseRow &row = rows_[static_cast<size_t>(Index(part.cause))];
		row.requests += !before([&](const Part &x) { return x.cause == part.cause; });
		row.direct_ns += part.direct_ns;
		row.queued_ns += part.queued_ns;
		if (part.hop == kNoHop)
			continue;
		auto at = std::find_if(hops_.begin(), hops_.end(),
				       [&](const AtHopSum &h) { return h.hop == part.hop; });
		if (at == hops_.end())
			at = hops_.insert(at, {part.hop});
		at->requests += !before([&](const Part &x) { return x.hop == part.hop; });
		at->time_ns += part.total_ns();
		at->by_cause[static_cast<size_t>(Index(part.cause))] += part.total_ns();
	}
}

void SlowestRequests::SetThreshold(uint64_t threshold_ns)
{
	threshold_ns_ = threshold_ns;
	// Growing would take twice the memory.
	blamed_.reserve(std::min<uint64_t>(answered_, most_ + most_ / 4 + 1));
}

void SlowestRequests::Take(Sheet *sheet)
{
	const std::vector<SlowRequest> &all = sheet->requests;
	for (size_t i = 0, next, taken; i < all.size(); i = next) {
		next = EndOfEqual(all, i);
		taken = i;
		const Part *parts = sheet->parts.data() + all[i].first_part;
		while (!tails_ && taken < next) // until there is no more room
			TakeOne(all[taken++], parts);
		if (taken == next)
			continue;
		tails_->Add(all[i], parts, next - taken);
		while (!pass_ && taken < next)
			TakeOne(all[taken++], parts);
	}
	sheet->requests.clear();
	sheet->parts.clear();
}

void SlowestRequests::TakeOne(SlowRequest r, const Part *parts)
{
	if (r.latency_ns >= threshold_ns_) {
		SumUp(r, parts);
		if (tell_)
			tell_(r, parts);
	}
	if (r.latency_ns < kept_from_ns_)
		return;
	r.first_part = static_cast<uint32_t>(parts_.size());
	parts_.insert(parts_.end(), parts, parts + r.part_count);
	blamed_.push_back(r);
	if (blamed_.size() - blamed_.size() / 5 > most_)
		Prune();
}

void SlowestRequests::Prune()
{
	if (!tails_) {
		tails_ = std::make_unique<WithoutTails>(answered_);
		for (const SlowRequest &r : blamed_)
			tails_->Add(r, parts_.data() + r.first_part);
	}
	KeepSlowest();
}

void SlowestRequests::KeepSlowest()
{
	std::vector<uint64_t> latencies;
	latencies.reserve(blamed_.size());
	for (const SlowRequest &r : blamed_)
		latencies.push_back(r.latency_ns);
	auto nth = latencies.begin() + static_cast<ptrdiff_t>(most_ - 1);
	std::nth_element(latencies.begin(), nth, latencies.end(), std::greater<>());
	// Requests of equal latency are all stored or all dropped, unless there are no others.
	bool fit = std::find(nth + 1, latencies.end(), *nth) == latencies.end();
	kept_from_ns_ = fit || *std::max_element(latencies.begin(), nth) == *nth ? *nth : *nth + 1;
	size_t kept = 0, parts = 0;
	for (SlowRequest r : blamed_) {
		if (r.latency_ns < kept_from_ns_ || kept == most_)
			continue;
		std::copy_n(parts_.begin() + r.first_part, r.part_count,
			    parts_.begin() + static_cast<ptrdiff_t>(parts));
		r.first_part = static_cast<uint32_t>(parts);
		parts += r.part_count;
		blamed_[kept++] = r;
	}
	blamed_.resize(kept);
	parts_.resize(parts);
}

bool SlowestRequests::Again()
{
	if (!tails_)
		return false;
	if (pass_++)
		return !tails_->EndFurtherPass();
	if (blamed_.size() > most_)
		KeepSlowest();
	tails_->EndPass();
	return true;
}

void SlowestRequests::Conclude(const WithoutHistograms *without, Blame *blame)
{
	blame->slow_count = slow_;
	blame->slow_ns = slow_ns_;
	blame->clocks_ns = clocks_ns_;
	blame->idle = idle_;
	blame->idle_large_ns = idle_large_ns_;
	blame->split = split_;
	blame->kept_from_ns = kept_from_ns_;
	for (int c = 0; c < kCauses; c++) {
		CauseRow row = rows_[static_cast<size_t>(c)];
		row.cause = static_cast<Cause>(c);
		if (row.total_ns() == 0)
			continue;
		row.share =
		    slow_ns_ ? static_cast<double>(row.total_ns()) / static_cast<double>(slow_ns_) : 0;
		blame->causes.push_back(row);
	}
	FillWhatIf({blamed_, parts_, tails_.get(), without, answered_}, blame);
	std::stable_sort(blame->causes.begin(), blame->causes.end(),
			 [](const CauseRow &a, const CauseRow &b) {
				 bool a_last = a.cause == Cause::Unknown, b_last = b.cause == Cause::Unknown;
				 return a_last != b_last ? b_last : a.total_ns() > b.total_ns();
			 });
	blame->parts = std::move(parts_);
	std::erase_if(blamed_, [&](const SlowRequest &r) { return r.latency_ns < threshold_ns_; });
	blame->slow = std::move(blamed_);
	std::stable_sort(blame->slow.begin(), blame->slow.end(),
			 [](const SlowRequest &a, const SlowRequest &b) { return a.due_ns < b.due_ns; });
}

void SlowestRequests::FillHops(Blame *blame) const
{
	for (const AtHopSum &sum : hops_) {
		HopRow &row = RowOf(sum.hop, &blame->hops);
		row.requests = sum.requests;
		row.time_ns = sum.time_ns;
		for (int c = 0; c < kCauses; c++)
			if (uint64_t ns = sum.by_cause[static_cast<size_t>(c)])
				row.causes.push_back({static_cast<Cause>(c), ns});
		std::stable_sort(row.causes.begin(), row.causes.end(),
				 [](const HopCause &a, const HopCause &b) { return a.time_ns > b.time_ns; });
	}
	for (HopRow &row : blame->hops)
		if (slow_ns_)
			row.share = static_cast<double>(row.time_ns) / static_cast<double>(slow_ns_);
	std::stable_sort(blame->hops.begin(), blame->hops.end(),
			 [](const HopRow &a, const HopRow &b) { return a.time_ns > b.time_ns; });
}

} // namespace forktail::analysis
