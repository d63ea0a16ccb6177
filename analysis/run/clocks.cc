// SPDX-License-Identifier: MIT
// Chooses the clock of a run's times, and maps times of other clocks to it.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "analysis/source.h"
#include "common/json.h"
#include "host_clocks.h"
#include "read_blocks.h"

namespace forktail::analysis
{

namespace
{

std::vector<ft_probe> ReadProbes(ft_reader *reader, bool scan)
{
	std::vector<ft_probe> probes;
	ft_places places;
	if (ft_reader_places(reader, scan, &places, nullptr, nullptr))
		return probes; // reported when the file is read
	for (size_t i = 0; i < places.count; i++) {
		ft_block block;
		if (places.all[i].kind != FT_BLOCK_PROBE ||
		    ft_reader_read(reader, &places.all[i], &block) != 1)
			continue;
		for (uint32_t k = 0; k < block.count; k++) {
			probes.emplace_back();
			ft_block_record(&block, k, &probes.back(), sizeof(ft_probe));
		}
	}
	ft_places_free(&places);
	return probes;
}

std::vector<ClockPair> ReadPairs(const std::vector<std::unique_ptr<OpenFile>> &files, bool scan)
{
	std::vector<ClockPair> pairs;
	for (const auto &f : files)
		if (const common::Json *peer = common::Member(f->manifest, "peer");
		    f->about.program == kClockProgram && peer && peer->is_object())
			pairs.push_back({f->about.clock_id, common::Text(*peer, "clock_id"),
					 ReadProbes(f->reader.get(), scan)});
	return pairs;
}

// The first recording by that program.
const OpenFile *FirstBy(const std::vector<std::unique_ptr<OpenFile>> &files, const std::string &program)
{
	for (const auto &f : files)
		if (!f->about.clock_id.empty() && f->about.program == program)
			return f.get();
	return nullptr;
}

const ClockPath *Find(const std::vector<ClockPath> &paths, const std::string &clock)
{
	auto found =
	    std::find_if(paths.begin(), paths.end(), [&](const ClockPath &p) { return p.clock == clock; });
	return found == paths.end() ? nullptr : &*found;
}

void IgnoreFile(OpenFile *f, const OpenFile &reference, bool compared, Run *run)
{
	const std::string &name = f->name, &other = reference.name;
	f->about.overlaid = false;
	if (f->about.program == kClockProgram)
		return;
	// Once per ring.
	if (f->segment && std::exchange(f->merge->left_out, true))
		return;
	if (f->about.boot_id != reference.about.boot_id && !compared)
		run->warnings.push_back(
		    name + " and " + other +
		    " come from different boots (boot ids differ), so their times cannot be compared; " +
		    name + " is ignored");
	else
		run->warnings.push_back(
		    name + " and " + other +
		    " use different clocks, and no round trips between them were recorded "
		    "(forktail clock); " +
		    name + " is ignored");
}

// Records the uncertainty of a file with another clock. The end of a killed recording is not known yet.
void NoteClock(OpenFile *f, const ClockPath &path, Run *run)
{
	const uint64_t start_ns = f->about.start_ns,
		       end_ns = common::Whole(common::ParseVisibleObject(f->about.summary), "end_ns");
	f->clock = path.map;
	f->about.bound_ns = path.map.Bound(start_ns, std::max(start_ns, end_ns));
	for (const ClockMap::Knot &k : path.map.knots())
		f->about.bound_ns = std::max(f->about.bound_ns, k.bound_ns);
	f->about.start_ns = path.map.Map(start_ns);
	if (f->about.program == kClockProgram)
		return;
	auto known = std::find_if(run->host_clocks.begin(), run->host_clocks.end(),
				  [&](const HostClock &c) { return c.clock_id == path.clock; });
	if (known == run->host_clocks.end()) {
		HostClock clock = {f->about.host, path.clock, 0, path.map.DriftPpm(), 0, path.samples};
		clock.offset_ns = static_cast<int64_t>(path.map.Map(start_ns) - start_ns);
		known = run->host_clocks.insert(run->host_clocks.end(), clock);
	}
	known->bound_ns = std::max(known->bound_ns, f->about.bound_ns);
}

} // namespace

// The run's clock is that of the server's recording, which has most of the related times, if it can be
// compared with the load generator's. Otherwise it is that of the load generator, because without requests
// there is less to explain.
void RunSource::DecideClocks(bool scan, Run *run)
{
	const OpenFile *reference = FirstBy(files_, "forktail-load"),
		       *server = FirstBy(files_, "forktail-record");
	for (const auto &f : files_)
		if (!reference && !f->about.clock_id.empty() && f->about.program != kClockProgram)
			reference = f.get();
	if (!reference)
		return;
	std::vector<ClockPair> pairs = ReadPairs(files_, scan);
	const bool compared = !pairs.empty();
	if (compared && server) {
		std::vector<ClockPath> paths = ConnectClocks(server->about.clock_id, pairs);
		if (Find(paths, reference->about.clock_id))
			reference = server;
	}
	const std::vector<ClockPath> paths = ConnectClocks(reference->about.clock_id, std::move(pairs));
	for (const auto &file : files_) {
		OpenFile *f = file.get();
		const ClockPath *path = Find(paths, f->about.clock_id);
		if (f->about.clock_id.empty())
			continue;
		if (!path)
			IgnoreFile(f, *reference, compared, run);
		else if (!path->map.same())
			NoteClock(f, *path, run);
	}
	uint64_t loads_ns = 0, servers_ns = 0;
	for (const auto &f : files_)
		if (f->about.program == "forktail-load")
			loads_ns = std::max(loads_ns, f->about.bound_ns);
		else if (f->about.program == "forktail-record")
			servers_ns = std::max(servers_ns, f->about.bound_ns);
	run->clocks_bound_ns = loads_ns + servers_ns;
	if (!run->host_clocks.empty())
		run->host_clocks.insert(
		    run->host_clocks.begin(),
		    HostClock{reference->about.host, reference->about.clock_id, 0, 0, 0, 0});
}

// Each round trip shows that the offset is at most (received there - sent here) and at least (sent there -
// received here), whatever each direction took. Over a short time two clocks differ by a straight line. The
// lines that satisfy all round trips form a polygon in (offset at the begin, offset at the end): a square cut
// by one half plane for each constraint. The result is its middle, and the bound is its half width.

namespace
{

// A stretch over which the rate between two clocks is assumed constant. Oscillators drift by less than a
// tenth of a millionth in it. If a clock is steered, no line fits, and the constraints are relaxed.
constexpr double kStretchNs = 10e9, kWander = 1e-7;
// Running clocks differ by at most this rate, steering included.
constexpr double kMaxDrift = 1e-3;
// The possible change of a rate outside the measured time.
constexpr double kUnseenDrift = 1e-6;
constexpr uint64_t kNoTime = uint64_t{1} << 62;
constexpr int64_t kMaxOffset = static_cast<int64_t>(kNoTime) - 1;

// Product of an offset and a time, both in ns.
__extension__ using Wide = __int128;

struct Point {
	double x, y;
};

// Cuts a convex polygon to the points with a x + b y <= c.
void CutPolygon(std::vector<Point> *polygon, double a, double b, double c)
{
	std::vector<Point> kept;
	for (size_t i = 0; i < polygon->size(); i++) {
		const Point &p = (*polygon)[i], &q = (*polygon)[(i + 1) % polygon->size()];
		double at_p = a * p.x + b * p.y - c, at_q = a * q.x + b * q.y - c;
		if (at_p <= 0)
			kept.push_back(p);
		if ((at_p < 0 && at_q > 0) || (at_p > 0 && at_q < 0)) {
			double s = at_p / (at_p - at_q);
			kept.push_back({p.x + s * (q.x - p.x), p.y + s * (q.y - p.y)});
		}
	}
	*polygon = std::move(kept);
}

// A constraint of the offset at a time: an upper or lower bound.
struct Constraint {
	double at, offset; // at: 0 begin .. 1 end of the stretch
};

// The constraints that the others do not imply: the lower hull, by time.
std::vector<Constraint> LowerHull(std::vector<Constraint> all)
{
	std::sort(all.begin(), all.end(), [](const Constraint &a, const Constraint &b) {
		return a.at != b.at ? a.at < b.at : a.offset < b.offset;
	});
	std::vector<Constraint> hull;
	for (const Constraint &s : all) {
		if (!hull.empty() && hull.back().at == s.at)
			continue;
		while (hull.size() >= 2) {
			const Constraint &a = hull[hull.size() - 2], &b = hull.back();
			if ((b.offset - a.offset) * (s.at - a.at) < (s.offset - a.offset) * (b.at - a.at))
				break;
			hull.pop_back();
		}
		hull.push_back(s);
	}
	return hull;
}

struct Range {
	double low, high;
	double slack;
};

// The offsets at both ends of a stretch for all lines that satisfy the constraints.
struct Tube {
	Range begin, end;
};

std::vector<Point> Feasible(const std::vector<Constraint> &most, const std::vector<Constraint> &least,
			    double length_ns, double slack)
{
	double low = INFINITY, high = -INFINITY;
	for (const Constraint &s : most)
		high = std::max(high, s.offset);
	for (const Constraint &s : least)
		low = std::min(low, -s.offset);
	double room = kMaxDrift * length_ns;
	low = std::min(low, high) - room - slack;
	high = std::max(low, high) + room + slack;
	std::vector<Point> lines = {{low, low}, {high, low}, {high, high}, {low, high}};
	CutPolygon(&lines, -1, 1, room);
	CutPolygon(&lines, 1, -1, room);
	for (const Constraint &s : most)
		CutPolygon(&lines, 1 - s.at, s.at, s.offset + slack);
	for (const Constraint &s : least)
		CutPolygon(&lines, s.at - 1, -s.at, s.offset + slack);
	return lines;
}

// `least` are negated, so that both are upper bounds.
Tube FitStretch(std::vector<Constraint> most, std::vector<Constraint> least, double length_ns)
{
	most = LowerHull(std::move(most));
	least = LowerHull(std::move(least));
	double slack = kWander * length_ns;
	std::vector<Point> lines;
	for (; (lines = Feasible(most, least, length_ns, slack)).empty() && slack < 1e18;)
		slack = std::max(2 * slack, 1000.0);
	constexpr double any = 1e18; // a constraint that no line satisfies is ignored
	if (lines.empty())
		return {{-any, any, slack}, {-any, any, slack}};
	Tube tube = {{INFINITY, -INFINITY, slack}, {INFINITY, -INFINITY, slack}};
	for (const Point &p : lines) {
		tube.begin = {std::min(tube.begin.low, p.x), std::max(tube.begin.high, p.x), slack};
		tube.end = {std::min(tube.end.low, p.y), std::max(tube.end.high, p.y), slack};
	}
	return tube;
}

// Where two stretches meet, the true offset is in both ranges.
Range Meet(const Range &a, const Range &b)
{
	Range both = {std::max(a.low, b.low), std::min(a.high, b.high), std::max(a.slack, b.slack)};
	if (both.low > both.high)
		both = {std::min(a.low, b.low), std::max(a.high, b.high), both.slack};
	return both;
}

bool MakesSense(const ft_probe &p)
{
	return p.sent_ns <= p.received_ns && p.peer_received_ns <= p.peer_sent_ns &&
	       p.received_ns < kNoTime && p.peer_sent_ns < kNoTime &&
	       p.peer_sent_ns - p.peer_received_ns <= p.received_ns - p.sent_ns && p.sent_ns &&
	       p.peer_received_ns;
}

} // namespace

ClockMap::ClockMap(const std::vector<Knot> &knots)
{
	for (Knot k : knots) {
		k.offset_ns = std::clamp(k.offset_ns, -kMaxOffset, kMaxOffset);
		k.bound_ns = std::min(k.bound_ns, kNoTime);
		if (knots_.empty()) {
			knots_.push_back(k);
			continue;
		}
		Knot &last = knots_.back();
		if (k.t_ns <= last.t_ns) {
			last.bound_ns = std::max(last.bound_ns, k.bound_ns);
			continue;
		}
		const int64_t room_ns = static_cast<int64_t>((k.t_ns - last.t_ns) / 2),
			      bent_ns =
				  std::clamp(k.offset_ns, last.offset_ns - room_ns, last.offset_ns + room_ns);
		k.bound_ns += static_cast<uint64_t>(std::abs(k.offset_ns - bent_ns));
		k.offset_ns = bent_ns;
		knots_.push_back(k);
	}
	if (knots_.size() == 1)
		knots_.push_back({knots_[0].t_ns + 1'000'000, knots_[0].offset_ns, knots_[0].bound_ns});
}

// The knot at the end of the piece that contains an instant.
size_t ClockMap::After(uint64_t t_ns) const
{
	auto after = std::upper_bound(knots_.begin(), knots_.end(), t_ns,
				      [](uint64_t t, const Knot &k) { return t < k.t_ns; });
	return std::clamp<size_t>(static_cast<size_t>(after - knots_.begin()), 1, knots_.size() - 1);
}

int64_t ClockMap::OffsetAt(uint64_t t_ns) const
{
	constexpr double farthest_ns = 1e15; // eleven days from all measurements
	const size_t after = After(t_ns);
	const Knot &a = knots_[after - 1], &b = knots_[after];
	if (t_ns >= a.t_ns && t_ns <= b.t_ns)
		return a.offset_ns + static_cast<int64_t>((static_cast<Wide>(b.offset_ns) - a.offset_ns) *
							  static_cast<Wide>(t_ns - a.t_ns) /
							  static_cast<Wide>(b.t_ns - a.t_ns));
	double slope = static_cast<double>(b.offset_ns - a.offset_ns) / static_cast<double>(b.t_ns - a.t_ns);
	const Knot &next = t_ns < a.t_ns ? a : b;
	double from_ns = static_cast<double>(static_cast<int64_t>(t_ns - next.t_ns));
	const int64_t offset_ns =
	    next.offset_ns + std::llround(std::clamp(slope, -kMaxDrift, kMaxDrift) *
					  std::clamp(from_ns, -farthest_ns, farthest_ns));
	return std::clamp(offset_ns, -kMaxOffset, kMaxOffset);
}

uint64_t ClockMap::Map(uint64_t t_ns) const
{
	if (knots_.empty() || t_ns == 0 || t_ns >= kNoTime)
		return t_ns;
	int64_t mapped = static_cast<int64_t>(t_ns) + OffsetAt(t_ns);
	return static_cast<uint64_t>(std::clamp<int64_t>(mapped, 1, kNoTime - 1));
}

uint64_t ClockMap::BoundAt(uint64_t t_ns) const
{
	if (knots_.empty())
		return 0;
	const size_t after = After(t_ns);
	const Knot &a = knots_[after - 1], &b = knots_[after];
	const uint64_t within = std::max(a.bound_ns, b.bound_ns);
	if (t_ns >= a.t_ns && t_ns <= b.t_ns)
		return within;
	double slope = static_cast<double>(a.bound_ns + b.bound_ns) / static_cast<double>(b.t_ns - a.t_ns);
	uint64_t away = t_ns < a.t_ns ? a.t_ns - t_ns : t_ns - b.t_ns;
	double more = static_cast<double>(away) * (std::min(slope, 2 * kMaxDrift) + kUnseenDrift);
	return within + static_cast<uint64_t>(more);
}

uint64_t ClockMap::Bound(uint64_t from_ns, uint64_t to_ns) const
{
	uint64_t bound_ns = std::max(BoundAt(from_ns), BoundAt(to_ns));
	for (const Knot &k : knots_)
		if (k.t_ns >= from_ns && k.t_ns <= to_ns)
			bound_ns = std::max(bound_ns, k.bound_ns);
	return bound_ns;
}

double ClockMap::DriftPpm() const
{
	if (knots_.empty())
		return 0;
	const Knot &a = knots_.front(), &b = knots_.back();
	return 1e6 * static_cast<double>(b.offset_ns - a.offset_ns) / static_cast<double>(b.t_ns - a.t_ns);
}

ClockMap ClockMap::Inverse() const
{
	std::vector<Knot> knots;
	for (const Knot &k : knots_)
		knots.push_back(
		    {static_cast<uint64_t>(std::max<int64_t>(static_cast<int64_t>(k.t_ns) + k.offset_ns, 1)),
		     -k.offset_ns, k.bound_ns});
	return ClockMap(knots);
}

ClockMap ClockMap::Then(const ClockMap &next) const
{
	if (same())
		return next;
	if (next.same())
		return *this;
	std::vector<uint64_t> times;
	for (const Knot &k : knots_)
		times.push_back(k.t_ns);
	const ClockMap back = Inverse();
	for (const Knot &k : next.knots_)
		times.push_back(back.Map(k.t_ns));
	std::sort(times.begin(), times.end());
	std::vector<Knot> knots;
	for (uint64_t t : times)
		if (knots.empty() || t - knots.back().t_ns >= 1'000'000 || knots.size() < 2) {
			if (!knots.empty() && t == knots.back().t_ns)
				continue;
			knots.push_back({t, static_cast<int64_t>(next.Map(Map(t)) - t),
					 BoundAt(t) + next.BoundAt(Map(t))});
		}
	return ClockMap(knots);
}

ClockMap FitClock(std::vector<ft_probe> samples, uint64_t *left_out)
{
	*left_out = std::erase_if(samples, [](const ft_probe &p) { return !MakesSense(p); });
	if (samples.empty())
		return ClockMap();
	std::sort(samples.begin(), samples.end(),
		  [](const ft_probe &a, const ft_probe &b) { return a.sent_ns < b.sent_ns; });
	// Relative to the first sample, so that doubles hold nanoseconds.
	const uint64_t first_ns = samples.front().sent_ns;
	const int64_t base = static_cast<int64_t>(samples.front().peer_received_ns - first_ns);
	const double all_ns = static_cast<double>(samples.back().received_ns - first_ns);
	const double stretch_ns = all_ns / std::max(1.0, std::ceil(all_ns / kStretchNs));
	std::vector<size_t> begins;
	for (size_t i = 0, last = SIZE_MAX; i < samples.size(); i++) {
		double at = static_cast<double>(samples[i].sent_ns - first_ns);
		size_t stretch = stretch_ns > 0 ? static_cast<size_t>(at / stretch_ns) : 0;
		if (stretch != last)
			begins.push_back(i);
		last = stretch;
	}
	std::vector<ClockMap::Knot> knots;
	std::vector<Range> ranges;
	for (size_t b = 0; b < begins.size(); b++) {
		const size_t end = b + 1 < begins.size() ? begins[b + 1] : samples.size();
		const uint64_t from = samples[begins[b]].sent_ns,
			       to = b + 1 < begins.size()
					? samples[end].sent_ns
					: std::max(samples.back().received_ns, from + 1'000'000);
		const double length_ns = static_cast<double>(to - from);
		std::vector<Constraint> most, least;
		for (size_t i = begins[b]; i < end; i++) {
			const ft_probe &p = samples[i];
			auto offset = [&](uint64_t peer, uint64_t own) {
				return static_cast<double>(static_cast<int64_t>(peer - own) - base);
			};
			most.push_back({static_cast<double>(p.sent_ns - from) / length_ns,
					offset(p.peer_received_ns, p.sent_ns)});
			least.push_back({static_cast<double>(p.received_ns - from) / length_ns,
					 -offset(p.peer_sent_ns, p.received_ns)});
		}
		Tube tube = FitStretch(std::move(most), std::move(least), length_ns);
		if (ranges.empty()) {
			knots.push_back({from, 0, 0});
			ranges.push_back(tube.begin);
		} else {
			ranges.back() = Meet(ranges.back(), tube.begin);
		}
		knots.push_back({to, 0, 0});
		ranges.push_back(tube.end);
	}
	const double farthest = static_cast<double>(kMaxOffset);
	for (size_t i = 0; i < knots.size(); i++) {
		const Range &r = ranges[i];
		knots[i].offset_ns =
		    base + std::llround(std::clamp((r.low + r.high) / 2, -farthest, farthest));
		knots[i].bound_ns =
		    static_cast<uint64_t>(std::min(std::ceil((r.high - r.low) / 2 + r.slack), farthest)) + 1;
	}
	return ClockMap(knots);
}

std::vector<ClockPath> ConnectClocks(const std::string &reference, std::vector<ClockPair> pairs)
{
	struct Edge {
		std::string from, to;
		ClockMap map;
		size_t samples;
	};
	std::vector<Edge> edges;
	for (size_t i = 0; i < pairs.size(); i++) {
		ClockPair &pair = pairs[i];
		for (size_t k = i + 1; k < pairs.size(); k++)
			if (pairs[k].from == pair.from && pairs[k].to == pair.to) {
				pair.samples.insert(pair.samples.end(), pairs[k].samples.begin(),
						    pairs[k].samples.end());
				pairs[k].samples.clear();
			}
		uint64_t left_out = 0;
		const size_t count = pair.samples.size();
		ClockMap map = FitClock(std::move(pair.samples), &left_out);
		if (!map.same() && pair.from != pair.to)
			edges.push_back({pair.from, pair.to, map, count - left_out});
	}
	std::vector<ClockPath> known = {{reference, ClockMap(), 0}};
	auto is_known = [&](const std::string &clock) {
		return std::any_of(known.begin(), known.end(),
				   [&](const ClockPath &p) { return p.clock == clock; });
	};
	for (size_t i = 0; i < known.size(); i++) { // grows in the loop: the shortest path to each clock
		const ClockPath to = known[i];
		for (const Edge &e : edges) {
			if (e.to == to.clock && !is_known(e.from))
				known.push_back({e.from, e.map.Then(to.map), e.samples});
			if (e.from == to.clock && !is_known(e.to))
				known.push_back({e.to, e.map.Inverse().Then(to.map), e.samples});
		}
	}
	return known;
}

} // namespace forktail::analysis
