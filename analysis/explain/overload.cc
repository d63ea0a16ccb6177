// SPDX-License-Identifier: MIT
// Overload of an open loop, and CPU times and figures of INFO that show it.
//
// The rates are compared in slices of the time in which requests were due. A period is an overload only if
// the backlog grew, and answers came at a steady rate, in each eighth of it, and if the rate of answers was
// nowhere much higher than in it, or always lower than what was due: otherwise a disturbance lowered it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/evidence.h"
#include "analysis/explain.h"
#include "common/format.h"

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kSliceNs = 50'000'000;
constexpr size_t kSlices = 160; // at most
constexpr size_t kPieces = 8;	// of a period
constexpr uint64_t kLeastNs = 1'000'000'000;
constexpr double kLeastPart = 0.2; // of the time in which requests were due
constexpr double kWholePart = 0.8; // likewise
constexpr double kAnswered = 0.95; // of the requests due; more is no overload
constexpr double kGrowth = 0.25;   // of the mean growth, in each piece
constexpr double kSteady = 0.5;	   // of the mean rate of answers, in each piece
// Of the highest rate of answers in any piece of the run: what is answered in an overload, or at least if
// what is due is beyond what was possible at any time.
constexpr double kCapacity = 0.8, kLeastCapacity = 0.5, kBeyond = 1.1;
constexpr double kAtLimit = 0.9; // of a CPU

// Sums since the first request was due, at the ends of slices.
struct Sums {
	double due = 0, answered = 0, ended = 0;
	double Backlog() const { return due - ended; }
};

// [0] is the begin. Counts of an interval are spread evenly over it.
std::vector<Sums> SumsOf(const LoadCurve &curve, uint64_t from_ns, uint64_t slice_ns, size_t slices)
{
	std::vector<Sums> each(slices + 1);
	const double length = static_cast<double>(curve.length_ns()), slice = static_cast<double>(slice_ns);
	for (size_t i = 0; i < curve.size(); i++) {
		// An interval is never before the first request, except for its begin.
		const double begin = std::max(0.0, static_cast<double>(curve.begin_ns(i)) -
						       static_cast<double>(from_ns)),
			     end = static_cast<double>(curve.begin_ns(i)) + length -
				   static_cast<double>(from_ns);
		for (size_t s = static_cast<size_t>(begin / slice);
		     s < slices && static_cast<double>(s) * slice < end; s++) {
			const double from = std::max(begin, static_cast<double>(s) * slice),
				     to = std::min(end, static_cast<double>(s + 1) * slice),
				     part = (to - from) / (end - begin);
			each[s + 1].due += part * static_cast<double>(curve[i].due);
			each[s + 1].answered += part * static_cast<double>(curve[i].answered);
			each[s + 1].ended += part * static_cast<double>(curve[i].answered + curve[i].failed);
		}
	}
	for (size_t s = 1; s <= slices; s++) {
		each[s].due += each[s - 1].due;
		each[s].answered += each[s - 1].answered;
		each[s].ended += each[s - 1].ended;
	}
	return each;
}

// The highest number of answers in `width` slices.
double MostAnswered(const std::vector<Sums> &sums, size_t width)
{
	double most = 0;
	for (size_t s = width; s < sums.size(); s++)
		most = std::max(most, sums[s].answered - sums[s - width].answered);
	return most;
}

// `most`: the highest number of answers in a piece of this length.
bool IsOverload(const std::vector<Sums> &sums, size_t begin, size_t piece, double most)
{
	const Sums &first = sums[begin], &last = sums[begin + kPieces * piece];
	const double due = last.due - first.due, answered = last.answered - first.answered,
		     grown = last.Backlog() - first.Backlog(), pieces = static_cast<double>(kPieces);
	if (answered > kAnswered * due || grown < (1 - kAnswered) * due)
		return false;
	const double capacity = due / pieces < kBeyond * most ? kCapacity : kLeastCapacity;
	if (answered / pieces < capacity * most)
		return false;
	for (size_t p = 0; p < kPieces; p++) {
		const Sums &from = sums[begin + p * piece], &to = sums[begin + (p + 1) * piece];
		if (to.Backlog() - from.Backlog() < kGrowth * grown / pieces ||
		    to.answered - from.answered < kSteady * answered / pieces)
			return false;
	}
	return true;
}

bool IsOpenLoop(const Run &run)
{
	return !run.loads.empty() && std::all_of(run.loads.begin(), run.loads.end(), [](const Load &load) {
		return load.arrival != "closed" && !load.kernel && !load.only_slow;
	});
}

// The share of a CPU of the busiest thread, and its index; -1: none.
double Busiest(const CpuTimes &cpu, const std::vector<int> &threads, uint64_t ns, int *thread)
{
	double most = -1;
	for (int t : threads)
		if (t >= 0) {
			const double share =
			    static_cast<double>(cpu.Of(static_cast<size_t>(t))) / static_cast<double>(ns);
			if (share > most) {
				most = share;
				*thread = t;
			}
		}
	return most;
}

std::string ThreadName(const Run &run, int thread)
{
	const Thread &t = run.threads[static_cast<size_t>(thread)];
	return t.comm + " (" + std::to_string(OwnId(run, t.tid)) + ")";
}

// "command/GET 31 %, kernel/send 25 %": what the thread ran, as the table of on-CPU time names it.
std::string RanText(const Explanation &e, int thread)
{
	constexpr size_t named = 3;
	constexpr double worth_naming = 0.05;
	std::string text;
	const OwnCode &own = e.own_codes[static_cast<size_t>(thread)];
	for (size_t i = 0;
	     i < std::min(named, own.activities.size()) && own.activities[i].share >= worth_naming; i++)
		text += (i ? ", " : "") + own.activities[i].name + " " +
			common::FormatShare(own.activities[i].share);
	return text.empty() ? "" : " (" + text + ")";
}

std::string LimitText(const Explanation &e, const Overload &o)
{
	const std::string ran = " ran " + common::FormatShare(std::min(o.cpu, 1.0)) + " of a CPU";
	if (o.limit == Overload::Server)
		return ThreadName(e.run, o.thread) + ran + RanText(e, o.thread) + ": it was at its limit.";
	return "The load generator's thread " +
	       std::to_string(OwnId(e.run, e.run.threads[static_cast<size_t>(o.thread)].tid)) + ran +
	       ", the server's busiest thread " + common::FormatShare(o.server_cpu) +
	       ": the load generator was at its limit. Give it more threads (--threads) and CPUs.";
}

std::string RatesText(const Explanation &e, const Overload &o)
{
	auto rate = [](double per_s) {
		return common::FormatCount(static_cast<uint64_t>(std::llround(per_s)));
	};
	const std::string when = o.whole
				     ? ""
				     : "from " + common::FormatOffset(o.period.since_ns, e.zero_ns) + " to " +
					   common::FormatOffset(o.period.until_ns, e.zero_ns) + " ";
	return when + rate(o.due_per_s) + " requests/s were due, " + rate(o.answered_per_s) +
	       "/s were answered: the backlog grew " +
	       (o.whole ? "from the first second to the last" : "all the time") + ", to " +
	       common::Plural(o.backlog, "request", "requests") +
	       (o.unsent ? ", and " + common::Plural(o.unsent, "request was", "requests were") + " never sent"
			 : "");
}

} // namespace

std::optional<Overload> FindOverload(const Run &run, const LogFacts &facts)
{
	if (!IsOpenLoop(run) || facts.last_due_ns < facts.first_due_ns + kLeastNs)
		return {};
	const uint64_t due_ns = facts.last_due_ns - facts.first_due_ns,
		       slice_ns = std::max<uint64_t>(kSliceNs, due_ns / kSlices);
	const size_t slices = due_ns / slice_ns,
		     after = (facts.last_end_ns - facts.first_due_ns) / slice_ns; // with the answers after it
	const std::vector<Sums> sums =
	    SumsOf(facts.curve, facts.first_due_ns, slice_ns, std::max(slices, std::min(after, 4 * kSlices)));
	for (size_t piece = slices / kPieces; piece; piece--) {
		const uint64_t ns = kPieces * piece * slice_ns;
		if (ns < kLeastNs || static_cast<double>(ns) < kLeastPart * static_cast<double>(due_ns))
			break;
		const double most = MostAnswered(sums, piece);
		for (size_t begin = 0; begin + kPieces * piece <= slices; begin++) {
			if (!IsOverload(sums, begin, piece, most))
				continue;
			const Sums &from = sums[begin], &to = sums[begin + kPieces * piece];
			Overload o;
			o.period = {facts.first_due_ns + begin * slice_ns,
				    facts.first_due_ns + begin * slice_ns + ns};
			o.whole = static_cast<double>(ns) >= kWholePart * static_cast<double>(due_ns);
			o.due_per_s = (to.due - from.due) * 1e9 / static_cast<double>(ns);
			o.answered_per_s = (to.answered - from.answered) * 1e9 / static_cast<double>(ns);
			o.backlog = static_cast<uint64_t>(std::llround(to.Backlog()));
			o.unsent = facts.by_status[FT_STATUS_UNSENT];
			return o;
		}
	}
	return {};
}

void FindLimit(const std::vector<int> &serving, const Clients &load, const CpuTimes &cpu, Overload *o)
{
	const uint64_t ns = o->period.until_ns - o->period.since_ns;
	std::vector<int> clients;
	for (const Timeline &t : load.timelines)
		clients.push_back(t.thread == UINT32_MAX ? -1 : static_cast<int>(t.thread));
	int server = -1, client = -1;
	o->server_cpu = Busiest(cpu, serving, ns, &server);
	o->client_cpu = Busiest(cpu, clients, ns, &client);
	const bool by_client = o->server_cpu >= 0 && o->server_cpu < kAtLimit && o->client_cpu >= kAtLimit;
	o->limit = o->server_cpu >= kAtLimit ? Overload::Server
		   : by_client		     ? Overload::Client
					     : Overload::Unknown;
	o->thread = by_client ? client : server;
	o->cpu = by_client ? o->client_cpu : o->server_cpu;
}

std::string OverloadText(const Explanation &e)
{
	if (!e.overload || e.overload->limit == Overload::Unknown)
		return "";
	std::string rates = RatesText(e, *e.overload);
	rates[0] = static_cast<char>(std::toupper(rates[0]));
	return rates + " (overload). " + LimitText(e, *e.overload);
}

std::string OverloadNote(const Explanation &e)
{
	if (!e.overload || e.overload->limit != Overload::Unknown)
		return "";
	const Overload &o = *e.overload;
	std::string used;
	if (o.server_cpu >= 0)
		used = "; the busiest serving thread used " + common::FormatShare(o.server_cpu) + " of a CPU";
	if (o.client_cpu >= 0)
		used += std::string(used.empty() ? "; the busiest load thread used "
						 : ", the busiest load thread ") +
			common::FormatShare(o.client_cpu) + (used.empty() ? " of a CPU" : "");
	return RatesText(e, o) + used;
}

// Spans have their time on the CPU. A tally has its owner's whole time: that of own code and of frames is on
// the CPU, except for blocked times below the minimum span, which are not separate there. A tally of fsync is
// of waits, because without --exact it is no frame.

namespace
{

bool IsOnCpu(uint32_t owner)
{
	return owner != FT_FSYNC && (owner <= FT_HARDIRQ || (owner >= FT_SOFTIRQ && owner <= FT_FAULT_OTHER));
}

} // namespace

uint64_t CpuTimes::Within(uint64_t amount_ns, uint64_t start_ns, uint64_t end_ns) const
{
	const uint64_t from_ns = std::max(start_ns, period_.since_ns),
		       to_ns = std::min(end_ns, period_.until_ns);
	if (from_ns == start_ns && to_ns == end_ns)
		return amount_ns;
	if (from_ns >= to_ns)
		return 0;
	return static_cast<uint64_t>(static_cast<double>(amount_ns) * static_cast<double>(to_ns - from_ns) /
				     static_cast<double>(end_ns - start_ns));
}

void CpuTimes::Add(const Run &run, uint64_t from_ns, uint64_t to_ns)
{
	auto began = [&](const auto &r) { return r.start_ns >= from_ns && r.start_ns < to_ns; };
	by_thread_.resize(run.threads.size());
	for (size_t t = 0; t < run.threads.size(); t++) {
		const Thread &thread = run.threads[t];
		for (size_t i = thread.first_span; i < thread.first_span + thread.span_count; i++)
			if (const ft_span &s = run.spans[i]; began(s) && !s.off_cpu)
				by_thread_[t] += Within(s.on_cpu_ns, s.start_ns, s.start_ns + s.duration_ns);
		for (size_t i = thread.first_tally; i < thread.first_tally + thread.tally_count; i++)
			if (const ft_tally &tally = run.tallies[i]; began(tally) && IsOnCpu(tally.owner))
				by_thread_[t] += Within(tally.total_ns, tally.start_ns, tally.end_ns);
	}
}

namespace
{

// The value at an instant; before the first one that.
double ValueAt(const Series &s, uint64_t t_ns)
{
	const auto after =
	    std::ranges::upper_bound(s.samples, t_ns, {}, [](const Sample &sample) { return sample.t_ns; });
	return after == s.samples.begin() ? after->value : std::prev(after)->value;
}

} // namespace

const Series *InfoSeries(const Run &run, const std::string &name)
{
	const auto found =
	    std::ranges::find_if(run.series, [&](const Series &s) { return s.name == "redis." + name; });
	return found == run.series.end() || found->samples.empty() ? nullptr : &*found;
}

uint64_t WholeInfo(double value)
{
	constexpr double most = 1e18;
	return value > 0 ? static_cast<uint64_t>(std::min(value, most) + 0.5) : 0;
}

std::optional<uint64_t> InfoGrowth(const Run &run, const std::string &name, const TimeSpan &period,
				   double unit)
{
	const Series *s = InfoSeries(run, name);
	if (!s || !std::ranges::is_sorted(s->samples, {}, &Sample::value))
		return {};
	return WholeInfo((ValueAt(*s, period.until_ns) - ValueAt(*s, period.since_ns)) * unit);
}

} // namespace forktail::analysis
