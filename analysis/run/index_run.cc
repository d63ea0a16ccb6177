// SPDX-License-Identifier: MIT
// Indexes a run after reading: sorts records by thread and time, and drops impossible ones (declared in
// run.h). Either everything at once, or the small data first and the rest by stretches.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <numeric>
#include <unordered_map>

#include "analysis/run.h"
#include "common/format.h"
#include "common/text.h"

namespace forktail::analysis
{

namespace
{

uint64_t EndOf(const ft_span &s)
{
	return s.start_ns + s.duration_ns;
}

bool IsFault(uint8_t owner)
{
	return (owner >= FT_COW_COPY && owner <= FT_PAGE_IN) || owner == FT_FAULT_OTHER;
}

// Records of a thread without a thread record (its event was dropped) get a thread with the extent of those
// records.
template <typename T>
void AddMissingThreads(const Column<T> &records, uint64_t (*end_of)(const T &), std::vector<Thread> *threads,
		       uint64_t *made)
{
	std::unordered_map<uint32_t, size_t> by_tid;
	for (size_t i = 0; i < threads->size(); i++)
		by_tid[(*threads)[i].tid] = i;
	size_t announced = threads->size();
	for (const T &r : records) {
		auto [found, is_new] = by_tid.try_emplace(r.tid, threads->size());
		if (is_new) {
			Thread t;
			t.tid = r.tid;
			t.start_ns = r.start_ns;
			t.end_ns = end_of(r);
			threads->push_back(t);
			++*made;
		} else if (found->second >= announced) {
			Thread &t = (*threads)[found->second];
			t.start_ns = std::min(t.start_ns, r.start_ns);
			t.end_ns = std::max(t.end_ns, end_of(r));
		}
	}
}

// No clock reaches 2^62 ns (146 years), and no record ends before it begins.
bool Sane(uint64_t start_ns, uint64_t end_ns)
{
	return start_ns <= end_ns && end_ns >> 62 == 0;
}

bool SpanBefore(const ft_span &a, const ft_span &b)
{
	if (a.start_ns != b.start_ns)
		return a.start_ns < b.start_ns;
	if (a.duration_ns != b.duration_ns)
		return a.duration_ns > b.duration_ns;
	return a.depth < b.depth;
}

bool TallyBefore(const ft_tally &a, const ft_tally &b)
{
	if (a.start_ns != b.start_ns)
		return a.start_ns < b.start_ns;
	return a.owner < b.owner;
}

// For records of an instant: samples.
template <typename T> bool SampleBefore(const T &a, const T &b)
{
	return a.t_ns < b.t_ns;
}

template <typename T> uint64_t StartOf(const T &record)
{
	if constexpr (requires { record.t_ns; })
		return record.t_ns;
	else
		return record.start_ns;
}

// Groups records by thread, sorts each group, and sets each thread's range.
template <typename T, typename Before>
void Group(Column<T> *records, std::vector<Thread> *threads, const ThreadFinder &finder,
	   size_t Thread::*first, size_t Thread::*count, Before before)
{
	Column<uint32_t> owner;
	owner.Extend(records->size());
	for (Thread &t : *threads)
		t.*count = 0;
	for (size_t i = 0; i < records->size(); i++) {
		owner[i] =
		    static_cast<uint32_t>(finder.Find(*threads, (*records)[i].tid, StartOf((*records)[i])));
		((*threads)[owner[i]].*count)++;
	}
	size_t sum = 0;
	std::vector<size_t> next(threads->size());
	for (size_t t = 0; t < threads->size(); t++) {
		(*threads)[t].*first = next[t] = sum;
		sum += (*threads)[t].*count;
	}
	if (!std::is_sorted(owner.begin(), owner.end())) {
		Column<T> grouped;
		grouped.Extend(records->size());
		for (size_t i = 0; i < records->size(); i++)
			grouped[next[owner[i]]++] = (*records)[i];
		*records = std::move(grouped);
	}
	for (const Thread &t : *threads)
		SortNearly(records->begin() + t.*first, records->begin() + t.*first + t.*count, before);
}

// Whether a later record has a socket in the same place as an earlier one.
bool SamePlace(const ft_socket &a, const ft_socket &b)
{
	return a.inode == b.inode && a.tgid == b.tgid && a.epoll == b.epoll && a.reader == b.reader &&
	       a.peer_inode == b.peer_inode && a.local_port == b.local_port && a.peer_port == b.peer_port;
}

// The account of a thread still open at the recording's end lasts until the last record of any kind.
void CloseOpenThreads(Run *run)
{
	for (Thread &t : run->threads) {
		if (t.end_ns)
			continue;
		t.end_ns = t.start_ns;
		for (size_t i = 0; i < t.span_count; i++)
			t.end_ns = std::max(t.end_ns, EndOf(run->spans[t.first_span + i]));
		for (size_t i = 0; i < t.tally_count; i++)
			t.end_ns = std::max(t.end_ns, run->tallies[t.first_tally + i].end_ns);
	}
}

// The system call in which a thread's event loop waits, by its spans; -1 if unknown. A loop over epoll may
// wait for a peer in poll or select.
int LoopCall(const Run &run, const Thread &t)
{
	int first = -1;
	for (size_t i = t.first_span; i < t.first_span + t.span_count; i++) {
		const ft_span &s = run.spans[i];
		if (s.owner != FT_IDLE || !s.off_cpu || s.syscall == first)
			continue;
		if (SyscallName(run, s.syscall).starts_with("epoll"))
			return s.syscall;
		if (first < 0)
			first = s.syscall;
	}
	return first;
}

// For a wait of the event loop: since when other threads have waited for this one. That is since its wakeup,
// or the whole wait if it was stopped, because what came then did not wake it. The wait's end if none had to
// wait.
uint64_t WaitStart(const ft_span &wait, int loop_call)
{
	if (wait.owner == FT_IDLE && wait.off_cpu)
		return wait.start_ns + wait.blocked_ns;
	bool stopped = wait.owner == FT_STOPPED || wait.owner == FT_FROZEN || wait.owner == FT_PTRACED;
	return stopped && wait.off_cpu && wait.syscall >= 0 && wait.syscall == loop_call ? wait.start_ns
											 : EndOf(wait);
}

// An iteration is recorded from the moment its thread runs. Whatever waits for it waits from when the thread
// should have run, so an iteration begins there. An iteration too short to be recorded is known only by that
// wait.
void BeginIterationsAtWakeups(Run *run)
{
	Column<ft_span> iterations;
	for (Thread &t : run->threads) {
		const int loop_call = LoopCall(*run, t);
		size_t first = iterations.size(), next = t.first_iteration, end = next + t.iteration_count;
		for (size_t i = t.first_span; i < t.first_span + t.span_count; i++) {
			const ft_span &wait = run->spans[i];
			const uint64_t from_ns = WaitStart(wait, loop_call);
			if (EndOf(wait) - from_ns < std::max<uint64_t>(run->min_span_ns, 1))
				continue;
			for (; next < end && run->iterations[next].start_ns < EndOf(wait); next++)
				iterations.push_back(run->iterations[next]);
			if ((wait.owner != FT_IDLE || wait.syscall != loop_call) &&
			    iterations.size() > first && EndOf(iterations.back()) > from_ns)
				continue; // within a recorded iteration
			ft_span iteration = {};
			iteration.start_ns = from_ns;
			iteration.duration_ns = EndOf(wait) - from_ns;
			iteration.tid = wait.tid;
			iteration.owner = FT_ITERATION;
			iteration.syscall = -1;
			// Closer than anything that is recorded: the same iteration. A record that may be
			// many iterations does not count, and the wait is one iteration anyway.
			if (next < end && run->iterations[next].start_ns - EndOf(wait) < run->min_span_ns &&
			    !MayBeMany(run->iterations[next])) {
				const ft_span &recorded = run->iterations[next++];
				iteration.duration_ns = EndOf(recorded) - iteration.start_ns;
				std::copy(std::begin(recorded.arg), std::end(recorded.arg), iteration.arg);
				iteration.flags = recorded.flags;
			}
			iterations.push_back(iteration);
		}
		for (; next < end; next++)
			iterations.push_back(run->iterations[next]);
		t.first_iteration = first;
		t.iteration_count = iterations.size() - first;
	}
	run->iterations = std::move(iterations);
}

// The kind of a fault is known at its end. Waits before that were recorded as a fault of unknown kind. Spans
// of a thread are sorted by start, outer ones first. The fault's own span, which ended last, has the kind.
void NameWaitsInFaults(Run *run)
{
	for (const Thread &t : run->threads) {
		const ft_span *fault = nullptr; // the last one with a kind
		for (size_t i = t.first_span; i < t.first_span + t.span_count; i++) {
			ft_span &s = run->spans[i];
			if (!s.off_cpu && IsFault(s.owner))
				fault = &s;
			else if (s.off_cpu && s.owner == FT_FAULT_OTHER && fault && EndOf(s) <= EndOf(*fault))
				s.owner = fault->owner;
		}
	}
}

// An abandoned fault was no fault: its span has the owner of the time. Waits and samples recorded within it
// before that was known get the same owner: a wait is in no known system call, a sample is of what ran there.
void NameWhatLiesInAbandoned(Run *run)
{
	for (const Thread &t : run->threads) {
		const ft_span *abandoned = nullptr;
		size_t sample = t.first_cpu_sample, samples_end = sample + t.cpu_sample_count;
		for (size_t i = t.first_span; i < t.first_span + t.span_count; i++) {
			ft_span &s = run->spans[i];
			if (s.off_cpu && s.owner == FT_FAULT_OTHER && abandoned &&
			    EndOf(s) <= EndOf(*abandoned))
				s.owner =
				    abandoned->owner == FT_OWN_CODE ? uint8_t{FT_SYSCALL} : abandoned->owner;
			if (!(s.flags & FT_SPAN_ABANDONED))
				continue;
			abandoned = &s;
			while (sample < samples_end && run->cpu_samples[sample].t_ns < s.start_ns)
				sample++;
			for (; sample < samples_end && run->cpu_samples[sample].t_ns < EndOf(s); sample++)
				if (run->cpu_samples[sample].owner == FT_FAULT_OTHER)
					run->cpu_samples[sample].owner = s.owner;
		}
	}
}

} // namespace

// A recording with valid checksums may still come from a broken writer. Impossible times would spoil every
// sum.
uint64_t DropNonsense(Run *run)
{
	uint64_t dropped = 0;
	auto filter = [&](auto *records, auto is_sane) {
		size_t kept = 0;
		for (const auto &r : *records)
			if (is_sane(r))
				(*records)[kept++] = r;
		dropped += records->size() - kept;
		records->Truncate(kept);
	};
	// An interrupt during the BPF program that ends a frame counts in that frame too: its duration may
	// exceed the span by some microseconds, and the span must not be dropped for that.
	constexpr uint64_t kInterruptedNs = 100'000;
	for (ft_span &s : run->spans)
		if (s.on_cpu_ns > s.duration_ns && s.on_cpu_ns - s.duration_ns < kInterruptedNs &&
		    s.on_cpu_ns >> 62 == 0)
			s.on_cpu_ns = s.duration_ns;
	filter(&run->spans, [](const ft_span &s) {
		return Sane(s.start_ns, s.start_ns + s.duration_ns) && s.duration_ns >> 62 == 0 &&
		       s.on_cpu_ns <= s.duration_ns && s.runnable_ns <= s.duration_ns &&
		       s.blocked_ns <= s.duration_ns;
	});
	filter(&run->tallies, [](const ft_tally &t) {
		return Sane(t.start_ns, t.end_ns) && t.total_ns >> 62 == 0 && t.owner < FT_OWNER_LIMIT;
	});
	auto wild_io = [](const ft_io &io) { return !Sane(io.start_ns, io.start_ns + io.duration_ns); };
	dropped += std::erase_if(run->ios, wild_io);
	dropped += std::erase_if(
	    run->writes, [](const ft_writes &w) { return !Sane(w.start_ns, w.end_ns) || w.bytes >> 62; });
	dropped +=
	    std::erase_if(run->cpu_slices, [](const ft_cpu_slice &t) { return !Sane(t.start_ns, t.end_ns); });
	return dropped;
}

void WarnOfNonsense(uint64_t dropped, Run *run)
{
	if (dropped)
		run->warnings.push_back(common::Plural(dropped, "record has", "records have") +
					" impossible times and are ignored");
}

void WarnOfMadeThreads(uint64_t made, Run *run)
{
	if (made)
		run->warnings.push_back(
		    common::Plural(made, "thread has", "threads have") +
		    " spans but no thread record: the event with the thread's name was dropped");
}

void WarnOfRecorder(Run *run)
{
	for (const auto &[helper, count] : run->cost.helper_deaths)
		if (count)
			run->warnings.push_back("the recorder's helper process forktail-" + helper +
						" ended or hung " + common::Plural(count, "time", "times") +
						" and was started again");
	if (const uint64_t stalls = run->cost.main_loop_stalls)
		run->warnings.push_back(
		    common::Plural(stalls, "round", "rounds") +
		    " of the recorder's main loop took over a second: records of that time may be missing "
		    "or late");
}

void FindExtent(Run *run)
{
	uint64_t first = UINT64_MAX, last = 0;
	auto note = [&](uint64_t from_ns, uint64_t to_ns) {
		first = std::min(first, from_ns);
		last = std::max(last, to_ns);
	};
	for (const RecordingFile &f : run->files) {
		if (!f.overlaid || f.program == kClockProgram)
			continue;
		if (f.start_ns)
			note(f.start_ns, std::max(f.start_ns, f.end_ns));
	}
	for (const Thread &t : run->threads)
		note(t.start_ns, t.end_ns);
	const Requests &q = run->requests;
	for (size_t i = 0; i < q.size(); i++)
		note(q.due_ns[i], q.end_ns[i]);
	run->start_ns = first == UINT64_MAX ? 0 : first;
	run->end_ns = last;
}

void WarnOfSampledSoftirqs(Run *run)
{
	uint64_t sampled_ns = 0, per_second = 0;
	bool asked = false;
	std::vector<SoftirqSampling> &all = run->softirq_samplings;
	std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) {
		return std::tie(a.host, a.t_ns) < std::tie(b.host, b.t_ns);
	});
	for (size_t i = 0; i < all.size(); i++) {
		const bool last = i + 1 == all.size() || all[i + 1].host != all[i].host;
		const uint64_t until_ns = last ? run->end_ns : all[i + 1].t_ns;
		sampled_ns += all[i].on && until_ns > all[i].t_ns ? until_ns - all[i].t_ns : 0;
		per_second = std::max(per_second, all[i].per_second);
		asked |= all[i].asked;
	}
	if (sampled_ns)
		run->missing.push_back(
		    {"each soft interrupt for " + common::FormatDuration(sampled_ns) +
			 ", where those that two CPU samples in a row did not meet count as what they "
			 "interrupted",
		     per_second ? "the host had up to " + common::FormatCount(per_second) + " a second"
		     : asked	? "--softirqs=sampled was given"
				: "their programs cannot be attached"});
}

void SeparateIterations(Run *run)
{
	// Overlays are not part of the account. Unknown ones come from a newer recorder and are ignored.
	size_t kept = 0;
	for (const ft_span &s : run->spans) {
		if (s.owner == FT_ITERATION)
			run->iterations.push_back(s);
		else if (s.owner < FT_OWNER_LIMIT)
			run->spans[kept++] = s;
	}
	run->spans.Truncate(kept);
}

void SortThreads(Run *run)
{
	std::sort(run->threads.begin(), run->threads.end(), [](const Thread &a, const Thread &b) {
		return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.tid < b.tid;
	});
}

uint64_t IndexFacts(Run *run)
{
	uint64_t dropped = 0;
	if (run->details.empty())
		run->details.emplace_back();
	if (run->stacks.empty())
		run->stacks.emplace_back();
	for (Thread &t : run->threads) {
		if (t.end_ns && !Sane(t.start_ns, t.end_ns)) {
			t.end_ns = t.start_ns = 0;
			dropped++;
		}
	}
	dropped += std::erase_if(run->drops, [](const ft_drop &d) { return !Sane(d.start_ns, d.end_ns); });
	dropped +=
	    std::erase_if(run->load_tcp, [](const ft_load_tcp &t) { return !Sane(t.before_ns, t.t_ns); });
	std::ranges::stable_sort(run->load_tcp, {}, &ft_load_tcp::t_ns);
	dropped += std::erase_if(run->loops, [](const ft_loop &l) { return !Sane(0, l.t_ns); });
	dropped +=
	    std::erase_if(run->sockets, [](const ft_socket &s) { return !Sane(s.before_ns, s.seen_ns); });
	dropped += std::erase_if(run->tcp_events, [](const ft_tcp_event &e) { return !Sane(0, e.t_ns); });
	dropped +=
	    std::erase_if(run->tcp_states, [](const ft_tcp_state &s) { return !Sane(s.before_ns, s.t_ns); });
	std::ranges::stable_sort(run->tcp_events, {}, &ft_tcp_event::t_ns);
	std::ranges::stable_sort(run->tcp_states, {}, &ft_tcp_state::t_ns);
	std::stable_sort(run->loops.begin(), run->loops.end(),
			 [](const ft_loop &a, const ft_loop &b) { return a.t_ns < b.t_ns; });
	std::stable_sort(run->sockets.begin(), run->sockets.end(),
			 [](const ft_socket &a, const ft_socket &b) {
				 return a.inode != b.inode ? a.inode < b.inode : a.seen_ns < b.seen_ns;
			 });
	// A ring's segments repeat the sockets' places.
	run->sockets.erase(std::unique(run->sockets.begin(), run->sockets.end(), SamePlace),
			   run->sockets.end());
	std::sort(run->drops.begin(), run->drops.end(),
		  [](const ft_drop &a, const ft_drop &b) { return a.start_ns < b.start_ns; });
	for (Series &s : run->series)
		std::stable_sort(s.samples.begin(), s.samples.end(),
				 [](const Sample &a, const Sample &b) { return a.t_ns < b.t_ns; });
	std::stable_sort(run->reports.begin(), run->reports.end(),
			 [](const ServerReport &a, const ServerReport &b) { return a.t_ns < b.t_ns; });
	std::ranges::stable_sort(run->keys, {}, &SlowKey::place);
	std::stable_sort(run->load_starts.begin(), run->load_starts.end(),
			 [](const LoadStart &a, const LoadStart &b) { return a.t_ns < b.t_ns; });
	if (run->ops.empty())
		run->ops.push_back("request");
	return dropped;
}

namespace
{

// Sorts CPU slices by CPU and time, without duplicates and unknown ones.
void SortCpuSlices(std::vector<ft_cpu_slice> *slices)
{
	std::sort(slices->begin(), slices->end(), [](const ft_cpu_slice &a, const ft_cpu_slice &b) {
		if (a.cpu != b.cpu)
			return a.cpu < b.cpu;
		return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
	});
	auto same = [](const ft_cpu_slice &a, const ft_cpu_slice &b) {
		return a.cpu == b.cpu && a.start_ns == b.start_ns;
	};
	slices->erase(std::unique(slices->begin(), slices->end(), same), slices->end());
}

// A sample without a thread has no meaning; other records of its thread would have created one.
template <typename T> void KeepOfThreads(const Run &run, const ThreadFinder &finder, Column<T> *records)
{
	size_t kept = 0;
	for (const T &record : *records)
		if (finder.Find(run.threads, record.tid, StartOf(record)) >= 0)
			(*records)[kept++] = record;
	records->Truncate(kept);
}

// Sorts all records by thread.
void PutInOrder(Run *run)
{
	ThreadFinder finder(run->threads);
	Group(&run->spans, &run->threads, finder, &Thread::first_span, &Thread::span_count, SpanBefore);
	SortCpuSlices(&run->cpu_slices);
	Group(&run->tallies, &run->threads, finder, &Thread::first_tally, &Thread::tally_count, TallyBefore);
	Group(&run->iterations, &run->threads, finder, &Thread::first_iteration, &Thread::iteration_count,
	      SpanBefore);
	KeepOfThreads(*run, finder, &run->cpu_samples);
	KeepOfThreads(*run, finder, &run->counters);
	Group(&run->cpu_samples, &run->threads, finder, &Thread::first_cpu_sample, &Thread::cpu_sample_count,
	      SampleBefore<ft_cpu_sample>);
	Group(&run->counters, &run->threads, finder, &Thread::first_counters, &Thread::counters_count,
	      SampleBefore<ft_counters>);
	std::sort(run->ios.begin(), run->ios.end(),
		  [](const ft_io &a, const ft_io &b) { return a.start_ns < b.start_ns; });
	std::sort(run->writes.begin(), run->writes.end(),
		  [](const ft_writes &a, const ft_writes &b) { return a.start_ns < b.start_ns; });
}

// Sets names that come from other records.
void NameAll(Run *run)
{
	NameWaitsInFaults(run);
	NameWhatLiesInAbandoned(run);
	BeginIterationsAtWakeups(run);
}

} // namespace

void IndexStretch(Run *run)
{
	DropNonsense(run);
	SeparateIterations(run);
	PutInOrder(run);
	NameAll(run);
}

void IndexRun(Run *run)
{
	uint64_t dropped = IndexFacts(run) + DropNonsense(run);
	WarnOfNonsense(dropped, run);
	SeparateIterations(run);
	uint64_t made = 0;
	AddMissingThreads<ft_span>(run->spans, EndOf, &run->threads, &made);
	AddMissingThreads<ft_tally>(
	    run->tallies, [](const ft_tally &t) { return t.end_ns; }, &run->threads, &made);
	AddMissingThreads<ft_span>(run->iterations, EndOf, &run->threads, &made);
	WarnOfRecorder(run);
	WarnOfMadeThreads(made, run);
	SortThreads(run);
	PutInOrder(run);
	CloseOpenThreads(run);
	NameAll(run);
	FindExtent(run);
	WarnOfSampledSoftirqs(run);
}

// Converts times as users write them to the run's clock, by the recorded time of day.

namespace
{

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kAround = 10 * kSecond; // the default width

// "123" or "123.25", to the nanosecond: seconds since 1970 have more digits than a double.
bool ParseSeconds(const std::string &text, uint64_t *ns)
{
	constexpr uint64_t most = 4'000'000'000; // in 2096
	size_t point = text.find('.');
	uint64_t whole = 0, fraction = 0;
	if (!parse_count(text.substr(0, point).c_str(), 0, most, &whole))
		return false;
	if (point != std::string::npos) {
		std::string digits = text.substr(point + 1);
		if (digits.empty() || digits.size() > 9)
			return false;
		digits.resize(9, '0');
		if (!parse_count(digits.c_str(), 0, kSecond - 1, &fraction))
			return false;
	}
	*ns = whole * kSecond + fraction;
	return true;
}

// "20:15:03" or "20:15:03.5"
bool ParseTimeOfDay(const std::string &text, uint64_t *ns)
{
	uint64_t hours = 0, minutes = 0, seconds_ns = 0;
	if (text.size() < 8 || text[2] != ':' || text[5] != ':' || text[7] == '.' ||
	    !parse_count(text.substr(0, 2).c_str(), 0, 23, &hours) ||
	    !parse_count(text.substr(3, 2).c_str(), 0, 59, &minutes) ||
	    !ParseSeconds(text.substr(6), &seconds_ns) || seconds_ns >= 60 * kSecond)
		return false;
	*ns = (hours * 60 + minutes) * 60 * kSecond + seconds_ns;
	return true;
}

// "2026-11-22", in ns since 1970
bool ParseDay(const std::string &text, uint64_t *ns)
{
	uint64_t year = 0, month = 0, day = 0;
	if (text.size() != 10 || text[4] != '-' || text[7] != '-' ||
	    !parse_count(text.substr(0, 4).c_str(), 1970, 2096, &year) ||
	    !parse_count(text.substr(5, 2).c_str(), 1, 12, &month) ||
	    !parse_count(text.substr(8, 2).c_str(), 1, 31, &day))
		return false;
	tm t = {};
	t.tm_year = static_cast<int>(year) - 1900;
	t.tm_mon = static_cast<int>(month) - 1;
	t.tm_mday = static_cast<int>(day);
	time_t seconds = timegm(&t);
	*ns = static_cast<uint64_t>(seconds) * kSecond;
	return t.tm_mday == static_cast<int>(day); // else the month has no such day
}

bool ParseDayAndTime(std::string text, uint64_t *ns)
{
	uint64_t time_ns = 0;
	if (!text.empty() && text.back() == 'Z')
		text.pop_back();
	if (text.size() < 11 || (text[10] != 'T' && text[10] != ' ') || !ParseDay(text.substr(0, 10), ns) ||
	    !ParseTimeOfDay(text.substr(11), &time_ns))
		return false;
	*ns += time_ns;
	return true;
}

bool ParseOne(const char *option, const std::string &text, std::optional<Instant> *instant,
	      std::string *error)
{
	if (text.empty())
		return true;
	instant->emplace();
	if (ParseInstant(text, &**instant))
		return true;
	*error = std::string(option) + " takes a time, not '" + text +
		 "'. Give +12.5s (after the first request), -5m (before the end), 20:15:03 or "
		 "2026-11-22T20:15:03 (UTC), or seconds since 1970";
	return false;
}

std::string RealtimeText(uint64_t ns)
{
	time_t seconds = static_cast<time_t>(ns / kSecond);
	tm t;
	char text[32];
	gmtime_r(&seconds, &t);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &t);
	return text;
}

// False: the recordings have no time of day.
bool Find(const Instant &instant, const Run &run, uint64_t begin_ns, uint64_t end_ns, int64_t *ns)
{
	const int64_t begin = static_cast<int64_t>(begin_ns), end = static_cast<int64_t>(end_ns);
	int64_t at = static_cast<int64_t>(instant.ns);
	if (instant.kind == Instant::FromBegin || instant.kind == Instant::BeforeEnd) {
		*ns = instant.kind == Instant::FromBegin ? begin + at : end - at;
		return true;
	}
	auto real = [&](int64_t ns_of_run) {
		return static_cast<int64_t>(RealtimeNs(run, static_cast<uint64_t>(ns_of_run)));
	};
	int64_t begin_real = real(begin), end_real = real(end);
	if (!begin_real || !end_real)
		return false;
	if (instant.kind == Instant::TimeOfDay) {
		constexpr int64_t day = 86400 * static_cast<int64_t>(kSecond);
		at += begin_real / day * day;
		if (at < begin_real && at + day <= end_real) // the run passed midnight
			at += day;
	}
	*ns = begin + (at - begin_real);
	// By the nearest reading, as for printed times: clocks are set while runs last.
	if (*ns > begin)
		*ns += at - real(*ns);
	return true;
}

} // namespace

bool ParseInstant(const std::string &text, Instant *instant)
{
	if (text.empty())
		return false;
	if (text[0] == '+' || text[0] == '-') {
		instant->kind = text[0] == '+' ? Instant::FromBegin : Instant::BeforeEnd;
		return parse_duration(text.c_str() + 1, TIME_ANY, 0, &instant->ns);
	}
	instant->kind = Instant::TimeOfDay;
	if (ParseTimeOfDay(text, &instant->ns))
		return true;
	instant->kind = Instant::Realtime;
	return ParseDayAndTime(text, &instant->ns) || ParseSeconds(text, &instant->ns);
}

bool ParsePart(const std::string &since, const std::string &until, const std::string &around, PartAsked *part,
	       std::string *error)
{
	if (around.empty())
		return ParseOne("--since", since, &part->since, error) &&
		       ParseOne("--until", until, &part->until, error);
	if (!since.empty() || !until.empty()) {
		*error = "--around and --since or --until are mutually exclusive";
		return false;
	}
	size_t comma = around.find(',');
	if (!ParseOne("--around", around.substr(0, comma), &part->since, error))
		return false;
	uint64_t width_ns = kAround;
	if (comma != std::string::npos &&
	    (!parse_duration(around.c_str() + comma + 1, TIME_ANY, 0, &width_ns) || !width_ns)) {
		*error = "--around takes a duration as its width (2s, 500ms), not '" +
			 around.substr(comma + 1) + "'";
		return false;
	}
	if (!part->since) {
		*error = "--around takes a time and an optional width (+12.5s,2s), not '" + around + "'";
		return false;
	}
	part->until = part->since;
	part->before_ns = width_ns / 2;
	part->after_ns = width_ns - part->before_ns;
	return true;
}

std::string SpanText(const Run &run, uint64_t begin_ns, uint64_t end_ns)
{
	std::string text = "the run lasts from +0 s to " + common::FormatOffset(end_ns, begin_ns);
	uint64_t from = RealtimeNs(run, begin_ns), to = RealtimeNs(run, end_ns);
	if (from && to)
		text += " (" + RealtimeText(from) + " to " + RealtimeText(to) + " UTC)";
	return text;
}

int FindPart(const PartAsked &asked, const Run &run, uint64_t begin_ns, uint64_t end_ns, TimeSpan *part,
	     std::string *error)
{
	int64_t since = static_cast<int64_t>(begin_ns), until = INT64_MAX;
	if ((asked.since && !Find(*asked.since, run, begin_ns, end_ns, &since)) ||
	    (asked.until && !Find(*asked.until, run, begin_ns, end_ns, &until))) {
		*error = run.path +
			 " has no time of day. Give +12.5s (after its first request) or -5m (before its end)";
		return 3;
	}
	since -= static_cast<int64_t>(asked.before_ns);
	if (asked.until)
		until += static_cast<int64_t>(asked.after_ns);
	if (since >= until && asked.since) {
		*error = "--since is not earlier than --until in " + run.path + ": " +
			 SpanText(run, begin_ns, end_ns);
		return 2;
	}
	if (since > static_cast<int64_t>(end_ns) || until <= static_cast<int64_t>(begin_ns)) {
		*error = run.path + " has no data at that time: " + SpanText(run, begin_ns, end_ns);
		return 3;
	}
	*part = {static_cast<uint64_t>(std::max<int64_t>(since, 0)),
		 asked.until ? static_cast<uint64_t>(until) : UINT64_MAX};
	return 0;
}

} // namespace forktail::analysis
