// SPDX-License-Identifier: MIT
// The first look at requests, and what most of them usually take.
//
// Requests are examined one by one, while the timelines of their time are in memory.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "analysis/blame.h"
#include "analysis/timeline.h"
#include "passes.h"

namespace forktail::analysis
{

namespace
{

// Is there a stall in [from, to) that was long enough for a span?
bool MetStall(const Timeline &t, uint64_t from_ns, uint64_t to_ns)
{
	from_ns = std::max(from_ns, t.start_ns());
	to_ns = std::min(to_ns, t.end_ns());
	if (from_ns >= to_ns)
		return false;
	for (uint32_t p = PieceAt(t, from_ns); t.pieces[p].start_ns < to_ns; p++)
		if (t.pieces[p].span != kNoSpan && IsStall(t.pieces[p].cause))
			return true;
	return false;
}

uint64_t OwnCode(const Timeline &t, uint64_t from_ns, uint64_t to_ns)
{
	CauseTimes times = {};
	AddTimes(t, from_ns, to_ns, &times);
	return times[Index(Cause::ServerBusy)];
}

// With the precision of a float: sums over parts of a run may differ by nanoseconds from those over all of
// it.
double PerRequest(double ns, double requests)
{
	return requests > 0 ? static_cast<double>(static_cast<float>(ns / requests)) : 0;
}

} // namespace

Usual::Usual(const Context &context, uint64_t log_from_ns)
    : log_from_ns_(log_from_ns), own_code_ns_(context.timelines.size()), of_server_(context.servers.size()),
      of_way_(context.way_ends.size())
{
}

void Usual::Add(const Context &context, const SampledRequest &r)
{
	all_[r.op].push_back(r.latency_ns);
	size_t server = context.ServerOfConnection(r.connection, r.start_ns);
	if (r.intended_ns >= log_from_ns_) {
		of_server_[server]++;
		if (!of_way_.empty())
			of_way_[context.WayOf(server, r.behind)]++;
	}
	uint16_t back = context.way_ends.empty() ? kNoHop : context.way_ends[context.WayOf(server, r.behind)];
	const Timeline &front = *context.servers[server].timeline;
	if (MetStall(front, r.intended_ns, r.arrived_ns) ||
	    (back != kNoHop && MetStall(*context.timelines[back], r.intended_ns, r.arrived_ns)))
		return;
	calm_[r.op].push_back(r.latency_ns);
	uint64_t service_ns = OwnCode(front, r.start_ns, r.arrived_ns);
	if (back != kNoHop)
		service_ns += OwnCode(*context.timelines[back], r.start_ns, r.arrived_ns);
	service_[r.op].push_back(static_cast<uint32_t>(std::min<uint64_t>(service_ns, UINT32_MAX)));
}

void Usual::AddOwnCode(const Context &context, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t hop = 0; hop < own_code_ns_.size(); hop++)
		own_code_ns_[hop] += static_cast<double>(OwnCode(*context.timelines[hop], from_ns, to_ns));
}

void Usual::SetService(uint64_t answered, Context *context)
{
	constexpr double alone = 10; // percentile of requests that met no other one
	context->service_ns.assign(service_.size(), 0);
	for (size_t op = 0; op < service_.size(); op++) {
		std::vector<uint32_t> &values = service_[op];
		if (values.empty())
			continue;
		uint32_t *value = values.data() + Rank(values.size(), alone) - 1;
		std::nth_element(values.data(), value, values.data() + values.size());
		context->service_ns[op] = *value;
		values = {};
	}
	const uint64_t sampled = std::accumulate(of_server_.begin(), of_server_.end(), uint64_t{0});
	const double stands_for =
	    static_cast<double>(answered) / static_cast<double>(std::max<uint64_t>(sampled, 1));
	auto own_code = [&](uint16_t hop) { return hop == kNoHop ? 0.0 : own_code_ns_[hop]; };
	for (size_t s = 0; s < of_server_.size(); s++) {
		Server &server = context->servers[s];
		server.service_ns =
		    PerRequest(own_code(server.hop), static_cast<double>(of_server_[s]) * stands_for);
	}
	context->way_service_ns.assign(of_way_.size(), 0);
	for (size_t w = 0; w < of_way_.size(); w++)
		context->way_service_ns[w] =
		    PerRequest(own_code(context->servers[w / context->WaysOfServer()].hop) +
				   own_code(context->way_ends[w]),
			       static_cast<double>(of_way_[w]) * stands_for);
}

std::vector<uint64_t> Usual::Latencies()
{
	std::vector<uint64_t> usual(256);
	for (size_t op = 0; op < usual.size(); op++) {
		std::vector<uint64_t> &values = calm_[op].empty() ? all_[op] : calm_[op];
		if (values.empty())
			continue;
		uint64_t *median = values.data() + Rank(values.size(), 50) - 1;
		std::nth_element(values.data(), median, values.data() + values.size());
		usual[op] = *median;
	}
	return usual;
}

// The first look uses doubles and running sums over a timeline, with two or three lookups: a few nanoseconds
// per request, by the same rules as exact blame (blame.h). Mixes are assumed to be even. So a request's
// stalls may be off by a nanosecond for each mix at its ends.

namespace
{

constexpr double kSlackNs = 128; // error of a request's latency without stalls
// Through a proxy a look takes microseconds: of more requests than this, one of several represents all.
constexpr size_t kMostProxyLooks = 200'000;

struct Glance {
	double stall, busy, net, late, latency;
};

// The sums of Divide (blame.h) as doubles, with all stalls in one. `hint` is that of UsageUntil.
struct QuickSums {
	using Number = double;
	static constexpr bool kOutages = true;

	const Context &context;
	const Server &server;
	uint32_t *hint;
	double latency;
	double stall = 0, busy = 0, network = 0, late = 0;
	uint64_t clear_ns = 0;

	double AddWaiting(uint64_t from_ns, uint64_t to_ns)
	{
		Usage u = UsageOf(server.curve, from_ns, to_ns, hint);
		stall += u.stall;
		busy += u.busy;
		network += u.socket;
		return u.idle;
	}
	double AddServed(uint64_t from_ns, uint64_t to_ns) { return AddWaiting(from_ns, to_ns); }
	double Busy() const { return busy; }
	double Unknown() const { return latency - stall - busy - network - late; }
	void AddUnknown(double) {} // see Unknown
	void AddHeld(double ns) { stall += ns; }
	void SetNoServer(double without, double) { stall += without; }
	BeforeDue<double> Before(size_t i)
	{
		const uint64_t due_ns = context.run.requests.due_ns[i];
		clear_ns = std::max(server.backlog.ClearBefore(due_ns), server.timeline->start_ns());
		uint32_t near = *hint;
		const Usage u = UsageOf(server.curve, clear_ns, due_ns, &near);
		return {u.stall, u.busy,
			context.WorkDue(i, server.backlog, server.service_ns, clear_ns, due_ns)};
	}
	InIteration<double> AtDue(size_t i) const
	{
		const TimeSpan iteration =
		    ClosedIteration(context.run, *server.timeline, context.run.requests.due_ns[i]);
		uint32_t near = *hint;
		double in = 0;
		ForServersTime(context, i, iteration.until_ns, [&](uint64_t from_ns, uint64_t to_ns) {
			in += UsageOf(server.curve, from_ns, to_ns, &near).busy;
		});
		return {in, UsageOf(server.curve, clear_ns, iteration.since_ns, &near).stall};
	}
	void MoveToQueued(double moved, double from_busy)
	{
		busy -= from_busy;
		stall += moved;
	}
};

// `hints` are per server.
Glance Look(const Context &context, size_t i, std::vector<uint32_t> *hints)
{
	const Server &server = context.ServerOf(i);
	QuickSums sums = {context, server, &(*hints)[static_cast<size_t>(&server - context.servers.data())],
			  static_cast<double>(context.run.requests.Latency(i))};
	Divide(context, i, &sums);
	return {sums.stall, sums.busy, sums.network, sums.late, sums.latency};
}

// There is no faster way through a proxy.
Glance LookAtProxyRequest(const Context &context, const ProxyPath &t, size_t i, ProxyScratch *scratch,
			  StallTimes *stalls)
{
	SumHops(context, t, i, scratch);
	const HopTimes &s = scratch->times;
	*stalls = s.Stalls();
	return {static_cast<double>(std::accumulate(stalls->begin(), stalls->end(), uint64_t{0})),
		static_cast<double>(s.Sum(Cause::ServerBusy)), static_cast<double>(s.between_ns),
		static_cast<double>(s.late_ns), static_cast<double>(context.run.requests.Latency(i))};
}

uint64_t Whole(double ns)
{
	// Via a signed number, which a processor converts in one instruction.
	return ns > 0 ? static_cast<uint64_t>(static_cast<int64_t>(ns + 0.5)) : 0;
}

void AddTimes(double ns, uint64_t times, LogHistogram *h)
{
	h->Add(Whole(ns), times);
}

} // namespace

LogHistogram *Bounds::Of(size_t cause)
{
	// No earlier request had this stall.
	any = true;
	if (!without[cause])
		without[cause] = std::make_unique<LogHistogram>(calm);
	return without[cause].get();
}

void Bounds::Add(double latency_ns, double stalls_ns, uint64_t requests)
{
	if (any)
		for (auto &histogram : without)
			if (histogram)
				AddTimes(latency_ns - stalls_ns - kSlackNs, requests, histogram.get());
	AddTimes(latency_ns - stalls_ns - kSlackNs, requests, &calm);
}

void Bounds::Add(double latency_ns, const StallTimes &stalls_ns, uint64_t requests)
{
	for (size_t c = 0; c < without.size(); c++)
		if (stalls_ns[c] || without[c])
			AddTimes(latency_ns - static_cast<double>(stalls_ns[c]) - kSlackNs, requests, Of(c));
	AddTimes(latency_ns - kSlackNs, requests, &calm);
}

void Bounds::Merge(const Bounds &other)
{
	for (size_t c = 0; c < without.size(); c++)
		if (without[c] || other.without[c])
			Of(c)->Merge(other.without[c] ? *other.without[c] : other.calm);
	calm.Merge(other.calm);
	sampled += other.sampled;
}

StallTimes Bounds::SlowestPercent() const
{
	// A sample may miss the start of the slowest percent: eight standard errors cover that.
	double percentile = 99;
	if (sampled)
		percentile -= std::min(9.0, 800 * std::sqrt(0.01 * 0.99 / static_cast<double>(sampled)));
	StallTimes ns;
	ns.fill(calm.PercentileFloor(percentile));
	for (size_t c = 0; c < ns.size(); c++)
		if (without[c])
			ns[c] = without[c]->PercentileFloor(percentile);
	return ns;
}

void FirstLook::Merge(const FirstLook &other)
{
	bounds.Merge(other.bounds);
	for (size_t c = 0; c < without.size(); c++)
		without[c].Merge(other.without[c]);
}

uint64_t ProxyStep(uint64_t count)
{
	return count / kMostProxyLooks + 1;
}

// Most runs have few stalls, so without them the slowest percent is little faster than with them.
Floor::Floor(const LogHistogram &latencies) : likely_ns_(latencies.PercentileFloor(90)) {}

uint64_t Floor::Of(const std::vector<FirstLook> &workers)
{
	constexpr double lower = 0.92; // later requests may be faster
	uint64_t count = 0;
	for (const FirstLook &w : workers)
		count += w.bounds.calm.count;
	if (count < next_count_)
		return floor_ns_;
	next_count_ = 2 * count;
	std::vector<const LogHistogram *> together;
	auto least = UINT64_MAX;
	auto note = [&](auto of) {
		together.clear();
		for (const FirstLook &w : workers)
			together.push_back(&of(w));
		least = std::min(least, PercentileFloor(together, 99));
	};
	note([](const FirstLook &w) -> const LogHistogram & { return w.bounds.calm; });
	for (size_t c = 0; c < std::tuple_size_v<WithoutHistograms>; c++)
		note([c](const FirstLook &w) -> const LogHistogram & { return w.without[c]; });
	floor_ns_ = std::min(static_cast<uint64_t>(static_cast<double>(least) * lower), likely_ns_);
	highest_ns_ = std::max(highest_ns_, floor_ns_);
	return floor_ns_;
}

bool Floor::Covers(const FirstLook &look) const
{
	auto above = [this](const LogHistogram &h) {
		return LogHistogram::Slot(h.PercentileFloor(99)) > LogHistogram::Slot(highest_ns_);
	};
	return highest_ns_ == 0 ||
	       (above(look.bounds.calm) && std::all_of(look.without.begin(), look.without.end(), above));
}

void LookAt(const Context &context, size_t first, size_t last, uint64_t step, uint64_t floor_ns,
	    std::vector<FirstLook> *workers)
{
	const Requests &q = context.run.requests;
	ForRanges(first, last, [&](size_t begin, size_t end, size_t w) {
		FirstLook &look = (*workers)[w];
		auto without = [&](Cause c) {
			return &look.without[static_cast<size_t>(Index(c) - kStallCauses)];
		};
		std::vector<uint32_t> hints(context.servers.size());
		ProxyScratch scratch;
		StallTimes stalls;
		uint64_t below = 0;
		for (size_t i = begin, next; i < end; i = next) {
			next = i + 1;
			if (IsError(q.status[i]))
				continue;
			if (q.Latency(i) < floor_ns) {
				below++;
				continue;
			}
			const ProxyPath *t = context.ProxyPathOf(i);
			if (t && q.Number(i) % step)
				continue;
			if (!t)
				next = context.EndOfEqual(i, end);
			Glance g = t ? LookAtProxyRequest(context, *t, i, &scratch, &stalls)
				     : Look(context, i, &hints);
			uint64_t stands_for = t ? step : next - i;
			look.bounds.sampled += t && step > 1;
			if (t)
				look.bounds.Add(g.latency, stalls, stands_for);
			else
				look.bounds.Add(g.latency, g.stall, stands_for);
			AddTimes(g.latency - g.busy, stands_for, without(Cause::ServerBusy));
			AddTimes(g.latency - g.late, stands_for, without(Cause::ClientLate));
			AddTimes(g.latency - g.net, stands_for, without(Cause::Network));
			AddTimes(g.stall + g.busy + g.net + g.late, stands_for, without(Cause::Unknown));
		}
		if (!below)
			return;
		look.bounds.Add(0, 0, below);
		for (LogHistogram &h : look.without)
			AddTimes(0, below, &h);
	});
}

// The estimate is where the slowest percent begins without any stall. Two values bound it well: where it
// began for the requests examined so far, and where it begins with all stalls, because most runs have few.

namespace
{

// How far the estimate is below the begin of the slowest percent in the first kFirst requests; with more
// requests it is proportionally closer.
constexpr double kLower = 0.1, kLeastLower = 0.007;
constexpr double kFirst = 500'000;
// Two percent of requests may be among the slowest percent because of their stalls alone.
constexpr double kWithStalls = 97;

// Two years of nanoseconds fit next to a cause.
uint64_t Pack(const Part &part)
{
	static_assert(kCauses <= 256);
	return part.total_ns() << 8 | static_cast<uint64_t>(Index(part.cause));
}

Part Unpack(uint64_t packed)
{
	return {static_cast<Cause>(packed & 0xff), kNoHop, packed >> 8, 0};
}

} // namespace

SpeculativeBlame::SpeculativeBlame(size_t most, const LogHistogram &latencies, uint64_t threshold_ns)
    : most_(3 * most), threshold_ns_(threshold_ns), likely_ns_(latencies.PercentileFloor(kWithStalls))
{
}

void SpeculativeBlame::GiveUp()
{
	active_ = false;
	stretches_ = {};
}

uint64_t SpeculativeBlame::From(const std::vector<FirstLook> &workers)
{
	if (!active_)
		return threshold_ns_;
	uint64_t count = 0;
	std::vector<const LogHistogram *> calm;
	for (const FirstLook &w : workers) {
		count += w.bounds.calm.count;
		calm.push_back(&w.bounds.calm);
	}
	double so_far = static_cast<double>(PercentileFloor(calm, 99));
	double lower = std::max(kLeastLower, kLower * std::min(1.0, kFirst / static_cast<double>(count + 1)));
	uint64_t guess = static_cast<uint64_t>(so_far * (1 - lower));
	from_ns_ = std::min({guess, likely_ns_, threshold_ns_});
	highest_ns_ = std::max(highest_ns_, from_ns_);
	return from_ns_;
}

void SpeculativeBlame::Add(const Sheet &sheet)
{
	Stretch to;
	for (size_t i = 0, next; i < sheet.requests.size(); i = next) {
		const SlowRequest &r = sheet.requests[i];
		next = EndOfEqual(sheet.requests, i);
		if (IsError(r.status))
			continue;
		to.requests.push_back({r.latency_ns, static_cast<uint32_t>(next - i), r.part_count});
		for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++)
			to.parts.push_back(Pack(sheet.parts[p]));
	}
	to.requests.shrink_to_fit();
	to.parts.shrink_to_fit();
	count_ += to.requests.size();
	stretches_.push_back(std::move(to));
}

void SpeculativeBlame::Take(std::vector<Sheet> *sheets, SlowestRequests *kept)
{
	for (Sheet &s : *sheets) {
		if (active_)
			Add(s);
		std::erase_if(s.requests, [&](const SlowRequest &r) { return r.latency_ns < threshold_ns_; });
		kept->Take(&s);
	}
	if (!active_ || count_ <= most_)
		return;
	// The first estimate was lower.
	Leave(from_ns_);
	if (count_ > most_ - most_ / 10)
		GiveUp();
}

// Drops requests below a latency.
void SpeculativeBlame::Leave(uint64_t least_ns)
{
	count_ = 0;
	for (Stretch &s : stretches_) {
		size_t from = 0, to = 0, kept = 0;
		for (Brief b : s.requests) {
			if (b.latency_ns >= least_ns) {
				std::copy_n(s.parts.begin() + static_cast<ptrdiff_t>(from), b.part_count,
					    s.parts.begin() + static_cast<ptrdiff_t>(to));
				to += b.part_count;
				s.requests[kept++] = b;
			}
			from += b.part_count;
		}
		s.requests.resize(kept);
		s.requests.shrink_to_fit();
		s.parts.resize(to);
		s.parts.shrink_to_fit();
		count_ += kept;
	}
}

// Recreates what is needed of a request: its latency, and its time by cause.
void SpeculativeBlame::Pass(uint64_t below_ns, SlowestRequests *kept) const
{
	for (const Stretch &s : stretches_) {
		Sheet sheet;
		auto part = s.parts.begin();
		for (const Brief &b : s.requests) {
			const auto end = part + b.part_count;
			if (b.latency_ns < below_ns) {
				SlowRequest r = {};
				r.latency_ns = b.latency_ns;
				r.first_part = static_cast<uint32_t>(sheet.parts.size());
				r.part_count = b.part_count;
				r.status = FT_STATUS_OK;
				std::transform(part, end, std::back_inserter(sheet.parts), Unpack);
				sheet.requests.insert(sheet.requests.end(), b.count, r);
			}
			part = end;
		}
		kept->Take(&sheet);
	}
}

bool SpeculativeBlame::PassTo(uint64_t least_ns, SlowestRequests *kept)
{
	if (!active_ || least_ns < highest_ns_)
		return false;
	Leave(least_ns);
	Pass(threshold_ns_, kept);
	return true;
}

void SpeculativeBlame::PassAgainTo(SlowestRequests *kept) const
{
	Pass(UINT64_MAX, kept);
}

} // namespace forktail::analysis
