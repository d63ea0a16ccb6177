// SPDX-License-Identifier: MIT
// Threads are found by their thread records. A record without one does not belong to another thread of the
// same id.
#include "survey.h"

#include <algorithm>

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kWideNs = 500'000'000; // a busy thread's windows last 1 ms, an idle one's until its timer
constexpr size_t kWideMost = 100'000;

} // namespace

Survey::Survey(const Run &run) : announced_(run.threads), finder_(announced_), last_(announced_.size()) {}

void Survey::Note(uint32_t tid, uint64_t start_ns, uint64_t end_ns, bool closes)
{
	if (int64_t found = finder_.Find(announced_, tid, start_ns); found >= 0) {
		uint64_t &last = last_[static_cast<size_t>(found)];
		if (closes)
			last = std::max(last, end_ns);
		return;
	}
	auto [found, is_new] = made_by_tid_.try_emplace(tid, made_.size());
	if (is_new) {
		made_.emplace_back();
		made_.back().tid = tid;
		made_.back().start_ns = start_ns;
	}
	Thread &t = made_[found->second];
	t.start_ns = std::min(t.start_ns, start_ns);
	t.end_ns = std::max(t.end_ns, end_ns);
}

void Survey::Add(Run *block)
{
	dropped_ += DropNonsense(block);
	SeparateIterations(block);
	for (const ft_span &s : block->spans)
		Note(s.tid, s.start_ns, s.start_ns + s.duration_ns, true);
	for (const ft_tally &t : block->tallies) {
		Note(t.tid, t.start_ns, t.end_ns, true);
		if (t.end_ns - t.start_ns > kWideNs && wide_.size() < kWideMost)
			wide_.push_back({t.start_ns, t.end_ns});
	}
	// Iterations do not close an account.
	for (const ft_span &s : block->iterations)
		Note(s.tid, s.start_ns, s.start_ns + s.duration_ns, false);
}

std::vector<Survey::Wide> Survey::WideWindows()
{
	std::sort(wide_.begin(), wide_.end(), [](const Wide &a, const Wide &b) {
		return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns < b.end_ns;
	});
	auto same = [](const Wide &a, const Wide &b) {
		return a.start_ns == b.start_ns && a.end_ns == b.end_ns;
	};
	wide_.erase(std::unique(wide_.begin(), wide_.end(), same),
		    wide_.end()); // a window has several tallies
	return std::move(wide_);
}

void Survey::Finish(uint64_t dropped, Run *run)
{
	WarnOfNonsense(dropped + dropped_, run);
	WarnOfMadeThreads(made_.size(), run);
	for (size_t i = 0; i < run->threads.size(); i++)
		if (Thread &t = run->threads[i]; !t.end_ns)
			t.end_ns = std::max(t.start_ns, last_[i]);
	run->threads.insert(run->threads.end(), made_.begin(), made_.end());
	SortThreads(run);
	FindExtent(run);
}

} // namespace forktail::analysis
