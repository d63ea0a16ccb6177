// SPDX-License-Identifier: MIT
// Loads what threads did by stretches. Each block has a time range: blocks that overlap a stretch are read,
// and their records that overlap it are kept.
#include <algorithm>

#include "analysis/source.h"
#include "read_blocks.h"
#include "survey.h"

namespace forktail::analysis
{

namespace
{

// Memory per byte of records, after indexing and with timelines.
constexpr uint64_t kGrows = 4;
// The margin around a stretch that is indexed: a tally window that crosses its bound needs all of its spans.
constexpr uint64_t kAroundNs = 1'000'000'000;
// Records of one stretch in memory. Only a forged recording has more of nearly the same time.
constexpr uint64_t kMostBytes = 128 << 20;
constexpr uint64_t kWidestNs = 30'000'000'000; // longer ones belong to threads that did almost nothing

uint64_t After(uint64_t t_ns, uint64_t ns)
{
	return t_ns > UINT64_MAX - ns ? UINT64_MAX : t_ns + ns;
}

void Clear(Run *run)
{
	run->spans.Truncate(0);
	run->tallies.Truncate(0);
	run->iterations.Truncate(0);
	run->cpu_samples.Truncate(0);
	run->counters.Truncate(0);
	run->ios.clear();
	run->writes.clear();
	run->cpu_slices.clear();
}

// Keeps those records from `first` on that overlap [from_ns, to_ns].
template <typename Records, typename Start, typename End>
void Trim(Records *records, size_t first, Start start_of, End end_of, uint64_t from_ns, uint64_t to_ns)
{
	size_t kept = first;
	for (size_t i = first; i < records->size(); i++)
		if (start_of((*records)[i]) <= to_ns && end_of((*records)[i]) >= from_ns)
			(*records)[kept++] = (*records)[i];
	if constexpr (requires { records->Truncate(kept); })
		records->Truncate(kept);
	else
		records->resize(kept);
}

struct Sizes {
	size_t spans, tallies, cpu_samples, counters, ios, writes, cpu_slices;
	uint64_t Bytes() const
	{
		return spans * sizeof(ft_span) + tallies * sizeof(ft_tally) +
		       cpu_samples * sizeof(ft_cpu_sample) + counters * sizeof(ft_counters) +
		       ios * sizeof(ft_io) + writes * sizeof(ft_writes) + cpu_slices * sizeof(ft_cpu_slice);
	}
};
Sizes SizesOf(const Run &run)
{
	return {run.spans.size(), run.tallies.size(), run.cpu_samples.size(), run.counters.size(),
		run.ios.size(),	  run.writes.size(),  run.cpu_slices.size()};
}

void TrimRun(const Sizes &first, uint64_t from_ns, uint64_t to_ns, Run *run)
{
	auto start = [](const auto &r) { return r.start_ns; };
	auto lasts = [](const auto &r) { return r.start_ns + r.duration_ns; };
	auto end = [](const auto &r) { return r.end_ns; };
	auto at = [](const auto &r) { return r.t_ns; };
	Trim(&run->spans, first.spans, start, lasts, from_ns, to_ns);
	Trim(&run->tallies, first.tallies, start, end, from_ns, to_ns);
	Trim(&run->cpu_samples, first.cpu_samples, at, at, from_ns, to_ns);
	Trim(&run->counters, first.counters, at, at, from_ns, to_ns);
	Trim(&run->ios, first.ios, start, lasts, from_ns, to_ns);
	Trim(&run->writes, first.writes, start, end, from_ns, to_ns);
	Trim(&run->cpu_slices, first.cpu_slices, start, end, from_ns, to_ns);
}

} // namespace

void RunSource::OpenServers(uint64_t bytes, Run *run)
{
	uint64_t all = 0;
	for (const ServerBlock &b : servers_)
		all += b.place.raw_bytes;
	if (all <= bytes / kGrows) {
		LoadServers(run);
		return;
	}
	stretch_bytes_ = bytes / kGrows;
	uint64_t dropped = IndexFacts(run);
	Survey survey(*run);
	uint64_t done = 0;
	if (progress_)
		progress_->Begin();
	for (const ServerBlock &b : servers_) {
		if (progress_)
			progress_->At(done++, servers_.size());
		Run records;
		ft_block block;
		if (!Get(b.file, b.place, &block)) {
			b.file->lost++;
			continue;
		}
		ReadBlock(b.file, &records, block);
		NoteEnds(b.file, records, 0, 0);
		survey.Add(&records);
	}
	open_ = StillOpen();
	Run open;
	for (const ft_span &s : open_)
		open.spans.push_back(s);
	survey.Add(&open);
	CutStretches();
	survey.Finish(dropped, run);
	wide_ = survey.WideWindows();
	run->loaded_from_ns = run->loaded_to_ns = 0;
}

bool RunSource::Cover(uint64_t from_ns, uint64_t to_ns, Run *run, uint64_t until_ns)
{
	if (!stretch_bytes_ || (from_ns >= After(run->loaded_from_ns, kAroundNs / 2) &&
				After(to_ns, kAroundNs / 2) <= run->loaded_to_ns))
		return false;
	// Extends the stretch to what will be requested next.
	until_ns = std::max(to_ns, std::min(until_ns, Reach(from_ns)));
	// If that is too much, the stretch begins later.
	while (from_ns < to_ns && Bytes(from_ns, to_ns) > 2 * stretch_bytes_)
		from_ns += (to_ns - from_ns + 7) / 8;
	Load(from_ns - std::min(from_ns, kAroundNs), After(until_ns, kAroundNs), run);
	return true;
}

uint64_t RunSource::Bytes(uint64_t from_ns, uint64_t to_ns) const
{
	uint64_t bytes = 0;
	for (const ServerBlock &b : servers_)
		if (b.place.end_ns >= from_ns && b.place.start_ns <= to_ns)
			bytes += b.place.raw_bytes;
	return bytes;
}

// The ends of blocks that end after from_ns, in order, with the size of their records.
std::vector<std::pair<uint64_t, uint64_t>> RunSource::Ends(uint64_t from_ns) const
{
	std::vector<std::pair<uint64_t, uint64_t>> ends;
	for (const ServerBlock &b : servers_)
		if (b.place.end_ns >= from_ns)
			ends.push_back({b.place.end_ns, b.place.raw_bytes});
	std::sort(ends.begin(), ends.end());
	return ends;
}

void RunSource::CutStretches()
{
	stretches_ = {{0, UINT64_MAX}};
	uint64_t bytes = 0;
	for (const auto &[end_ns, more] : Ends(0)) {
		bytes += more;
		Stretch &last = stretches_.back();
		if (bytes < stretch_bytes_ / 2 || end_ns <= last.from_ns)
			continue;
		last.to_ns = end_ns;
		stretches_.push_back({end_ns, UINT64_MAX});
		bytes = 0;
	}
}

uint64_t RunSource::Reach(uint64_t from_ns) const
{
	if (!stretch_bytes_)
		return UINT64_MAX;
	uint64_t bytes = 0;
	for (const auto &[end_ns, more] : Ends(from_ns)) {
		bytes += more;
		if (bytes > stretch_bytes_ / 2)
			return end_ns;
	}
	return UINT64_MAX;
}

void RunSource::Load(uint64_t from_ns, uint64_t to_ns, Run *run)
{
	// A window that crosses a bound needs all of its spans.
	for (uint64_t first_ns = from_ns, last_ns = to_ns; const Survey::Wide &w : wide_) {
		if (w.start_ns > last_ns || w.end_ns < first_ns || w.end_ns - w.start_ns > kWidestNs)
			continue;
		from_ns = std::min(from_ns, w.start_ns);
		to_ns = std::max(to_ns, w.end_ns);
	}
	Clear(run);
	for (const ServerBlock &b : servers_) {
		bool timed = b.place.end_ns;
		if (timed && (b.place.end_ns < from_ns || b.place.start_ns > to_ns))
			continue;
		ft_block block;
		Sizes first = SizesOf(*run);
		if (first.Bytes() > std::max(kMostBytes, 4 * stretch_bytes_)) {
			if (!crowded_)
				run->warnings.emplace_back(
				    "more records of nearly the same time than fit into "
				    "memory: the rest is missing");
			crowded_ = true;
			break;
		}
		if (!Get(b.file, b.place, &block))
			continue; // already counted
		ReadBlock(b.file, run, block);
		TrimRun(first, from_ns, to_ns, run);
		TakeNames(b.file, first.spans, first.cpu_samples, run);
	}
	const Sizes first = SizesOf(*run);
	for (const ft_span &open : open_)
		run->spans.push_back(open);
	TrimRun(first, from_ns, to_ns, run);
	run->loaded_from_ns = from_ns;
	run->loaded_to_ns = to_ns;
	IndexStretch(run);
}

// Threads are found by their thread records. A record without one does not belong to another thread of the
// same id.

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
	WarnOfSampledSoftirqs(run);
}

} // namespace forktail::analysis
