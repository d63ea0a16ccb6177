// SPDX-License-Identifier: MIT
// A request's route through threads, and what held up the head of its line.
//
// Both threads' times are summed every 2 ms (more in a long run), once for each order in which the two are
// examined. So a request costs a walk over the pieces at its ends, however long it took. The place of idle
// time within a mix is unknown. So its begin counts as late, and its end as early, as possible.
#include <algorithm>

#include "analysis/blame.h"
#include "analysis/timeline.h"

namespace forktail::analysis
{

namespace
{

constexpr uint32_t kPieceShift = 21; // 2 ms: a few pieces

// Whether a thread's time has nothing to do with the request, because the thread waited. For the second
// thread, on which the request is known not to wait, its own code counts too: it ran for others.
bool IsIdle(Cause c, bool own_code)
{
	return c == Cause::Idle || c == Cause::Network || (own_code && c == Cause::ServerBusy);
}

// Adds `ns` of the second's [from, to) in its proportions there. Returns the idle part.
uint64_t AddShare(const Timeline &second, bool own_code, uint64_t from_ns, uint64_t to_ns, uint64_t ns,
		  CauseTimes *times)
{
	static_assert(kTimelineCauses <= static_cast<int>(kApportionMax));
	CauseTimes all = {};
	AddTimes(second, from_ns, to_ns, &all);
	// Only the causes with time, in the order of causes.
	uint8_t causes[kTimelineCauses];
	uint64_t weights[kTimelineCauses], shares[kTimelineCauses];
	size_t count = 0;
	for (int c = 0; c < kTimelineCauses; c++) {
		if (!all[static_cast<size_t>(c)])
			continue;
		causes[count] = static_cast<uint8_t>(c);
		weights[count++] = all[static_cast<size_t>(c)];
	}
	const uint64_t *parts = weights;
	if (ns != to_ns - from_ns) {
		Apportion(ns, weights, count, shares);
		parts = shares;
	}
	uint64_t idle_ns = 0;
	for (size_t i = 0; i < count; i++)
		(IsIdle(static_cast<Cause>(causes[i]), own_code) ? idle_ns : (*times)[causes[i]]) += parts[i];
	return idle_ns;
}

// The two threads in the order in which they are examined.
struct Pair {
	const Timeline &first, &second;
	bool own_code; // the second's counts as idle
	const WholePieces &whole;
};

// Adds [from, to) of one piece of the first; returns the time in which both were idle.
uint64_t AddPartOf(const Pair &pair, const Piece &piece, uint64_t from_ns, uint64_t to_ns,
		   CauseTimes *of_first, CauseTimes *of_second)
{
	uint64_t idle_ns = 0;
	if (piece.mix == kNoMix) {
		(IsIdle(piece.cause, false) ? idle_ns : (*of_first)[Index(piece.cause)]) += to_ns - from_ns;
	} else {
		const Mix &mix = pair.first.mixes[piece.mix];
		const MixPart *parts = pair.first.mix_parts.data() + mix.first_part;
		uint64_t weights[kApportionMax], shares[kApportionMax];
		for (uint32_t i = 0; i < mix.part_count; i++)
			weights[i] = parts[i].ns;
		Apportion(to_ns - from_ns, weights, mix.part_count, shares);
		for (uint32_t i = 0; i < mix.part_count; i++)
			(IsIdle(parts[i].cause, false) ? idle_ns : (*of_first)[Index(parts[i].cause)]) +=
			    shares[i];
	}
	return idle_ns ? AddShare(pair.second, pair.own_code, from_ns, to_ns, idle_ns, of_second) : 0;
}

// The same for a whole piece with stored times.
uint64_t AddWhole(const WholePieces &whole, uint32_t piece, CauseTimes *of_first, CauseTimes *of_second)
{
	uint64_t between_ns = 0;
	for (uint32_t i = whole.begin[piece - whole.from]; i < whole.begin[piece - whole.from + 1]; i++) {
		uint8_t place = whole.place[i];
		if (place < kTimelineCauses)
			(*of_first)[place] += whole.ns[i];
		else if (place < 2 * kTimelineCauses)
			(*of_second)[place - kTimelineCauses] += whole.ns[i];
		else
			between_ns += whole.ns[i];
	}
	return between_ns;
}

// Adds [from, to): the first's pieces, and the second's where the first is idle. Returns the time in which
// both were idle.
uint64_t AddOver(const Pair &pair, uint64_t from_ns, uint64_t to_ns, CauseTimes *of_first,
		 CauseTimes *of_second)
{
	const Timeline &first = pair.first;
	if (from_ns >= to_ns)
		return 0;
	uint64_t from = std::max(from_ns, first.start_ns()), to = std::min(to_ns, first.end_ns());
	if (first.empty() || from >= to) {
		(*of_first)[Index(Cause::Unknown)] += to_ns - from_ns;
		return 0;
	}
	(*of_first)[Index(Cause::Unknown)] += (from - from_ns) + (to_ns - to);
	uint64_t between_ns = 0;
	for (uint32_t i = PieceAt(first, from); from < to; i++) {
		uint64_t next = first.pieces[i + 1].start_ns, end = std::min(to, next);
		bool all = from == first.pieces[i].start_ns && end == next;
		between_ns += all && pair.whole.Has(i)
				  ? AddWhole(pair.whole, i, of_first, of_second)
				  : AddPartOf(pair, first.pieces[i], from, end, of_first, of_second);
		from = end;
	}
	return between_ns;
}

Pair PairOf(const Route &route, First first)
{
	if (first == First::Front)
		return {*route.front, *route.back, false, route.whole[0]};
	return {*route.back, *route.front, true, route.whole[1]};
}

uint64_t AddWalking(const Route &route, First first, uint64_t from_ns, uint64_t to_ns, CauseTimes *front,
		    CauseTimes *back)
{
	return first == First::Front ? AddOver(PairOf(route, first), from_ns, to_ns, front, back)
				     : AddOver(PairOf(route, first), from_ns, to_ns, back, front);
}

// The pieces that overlap [start_ns, end_ns).
WholePieces WholePiecesOf(const Pair &pair, uint64_t start_ns, uint64_t end_ns)
{
	WholePieces whole;
	const Timeline &first = pair.first;
	if (first.empty() || start_ns >= first.end_ns() || end_ns <= first.start_ns())
		return whole;
	whole.from = PieceAt(first, std::max(start_ns, first.start_ns()));
	auto end = std::lower_bound(first.pieces.begin() + whole.from, first.pieces.end() - 1, end_ns,
				    [](const Piece &p, uint64_t ns) { return p.start_ns < ns; });
	size_t count = static_cast<size_t>(end - first.pieces.begin()) - whole.from;
	whole.begin.reserve(count + 1);
	whole.begin.push_back(0);
	for (uint32_t i = whole.from; i < whole.from + count; i++) {
		std::array<CauseTimes, 2> times = {};
		uint64_t between_ns = AddPartOf(pair, first.pieces[i], first.pieces[i].start_ns,
						first.pieces[i + 1].start_ns, &times[0], &times[1]);
		auto keep = [&](size_t place, uint64_t ns) {
			for (uint64_t part; ns; ns -= part) {
				part = std::min<uint64_t>(ns, UINT32_MAX);
				whole.ns.push_back(static_cast<uint32_t>(part));
				whole.place.push_back(static_cast<uint8_t>(place));
			}
		};
		for (size_t place = 0; place < 2 * kTimelineCauses; place++)
			keep(place, times[place / kTimelineCauses][place % kTimelineCauses]);
		keep(2 * kTimelineCauses, between_ns);
		whole.begin.push_back(static_cast<uint32_t>(whole.ns.size()));
	}
	return whole;
}

bool HasIdle(const Timeline &t, const Piece &p)
{
	if (p.mix == kNoMix)
		return p.cause == Cause::Idle;
	const Mix &mix = t.mixes[p.mix];
	for (uint32_t i = 0; i < mix.part_count; i++)
		if (t.mix_parts[mix.first_part + i].cause == Cause::Idle)
			return true;
	return false;
}

} // namespace

uint64_t IdleTimes::FirstAfter(uint64_t t_ns) const
{
	if (begins.empty() || t_ns > begins.back().at_ns)
		return UINT64_MAX;
	size_t b = t_ns < start_ns ? 0 : (t_ns - start_ns) >> shift;
	return std::lower_bound(begins.begin() + begins_before[b], begins.begin() + begins_before[b + 1],
				t_ns, [](const Mark &m, uint64_t ns) { return m.at_ns < ns; })
	    ->known_ns;
}

uint64_t IdleTimes::LastBefore(uint64_t t_ns) const
{
	if (ends.empty() || t_ns < ends.front().at_ns)
		return 0;
	size_t b = std::min((t_ns - start_ns) >> shift, ends_before.size() - 2);
	auto after = std::upper_bound(ends.begin() + ends_before[b], ends.begin() + ends_before[b + 1], t_ns,
				      [](uint64_t ns, const Mark &m) { return ns < m.at_ns; });
	return (after - 1)->known_ns;
}

void IdleTimes::Index(uint64_t from_ns, uint64_t to_ns)
{
	start_ns = from_ns;
	shift = 12;
	while ((to_ns - from_ns) >> shift > std::max<uint64_t>(begins.size(), 1024))
		shift++;
	size_t buckets = ((to_ns - from_ns) >> shift) + 2;
	auto count = [&](const std::vector<Mark> &marks, std::vector<uint32_t> *before) {
		uint32_t m = 0;
		for (size_t b = 0; b < buckets; b++) {
			while (m < marks.size() && marks[m].at_ns < start_ns + (uint64_t{b} << shift))
				m++;
			before->push_back(m);
		}
	};
	count(begins, &begins_before);
	count(ends, &ends_before);
}

IdleTimes IdleTimesOf(const Timeline &t)
{
	IdleTimes idle;
	for (size_t i = 0; i + 1 < t.pieces.size(); i++) {
		const Piece &p = t.pieces[i];
		uint64_t start_ns = p.start_ns, end_ns = t.pieces[i + 1].start_ns;
		bool whole = p.mix == kNoMix && p.span != kNoSpan;
		if (!HasIdle(t, p))
			continue;
		// A window may consist of several pieces with spans between them. The place of idle time in
		// it is unknown.
		bool counted = false;
		for (size_t k = i; p.mix != kNoMix && k-- > 0 && !counted;) {
			counted = t.pieces[k].mix == p.mix;
			if (t.pieces[k].span == kNoSpan)
				break;
		}
		if (counted)
			continue;
		for (size_t k = i + 1; p.mix != kNoMix && k + 1 < t.pieces.size(); k++) {
			if (t.pieces[k].mix == p.mix)
				end_ns = t.pieces[k + 1].start_ns;
			else if (t.pieces[k].span == kNoSpan)
				break;
		}
		idle.begins.push_back({start_ns, whole ? start_ns : end_ns});
		idle.ends.push_back({end_ns, whole ? end_ns : start_ns});
	}
	// An idle span inside a window gives earlier and later bounds than the window: the minimum and
	// maximum count.
	std::stable_sort(
	    idle.ends.begin(), idle.ends.end(),
	    [](const IdleTimes::Mark &a, const IdleTimes::Mark &b) { return a.at_ns < b.at_ns; });
	for (size_t i = idle.begins.size(); i-- > 1;)
		idle.begins[i - 1].known_ns = std::min(idle.begins[i - 1].known_ns, idle.begins[i].known_ns);
	for (size_t i = 1; i < idle.ends.size(); i++)
		idle.ends[i].known_ns = std::max(idle.ends[i].known_ns, idle.ends[i - 1].known_ns);
	idle.Index(t.start_ns(), t.end_ns());
	return idle;
}

RouteGrid GridOf(uint64_t start_ns, uint64_t end_ns, uint64_t max_sums)
{
	RouteGrid grid = {start_ns, kPieceShift};
	while ((end_ns - start_ns) >> grid.shift >= max_sums)
		grid.shift++;
	return grid;
}

Route BuildRoute(const Timeline &front, const Timeline &back, const RouteGrid &grid, uint64_t from_ns,
		 uint64_t to_ns)
{
	Route r;
	r.front = &front;
	r.back = &back;
	r.front_idle = IdleTimesOf(front);
	r.shift = grid.shift;
	uint64_t steps = from_ns < grid.start_ns ? 0 : (from_ns - grid.start_ns) >> r.shift;
	r.start_ns = grid.start_ns + (steps << r.shift);
	uint64_t step_ns = uint64_t{1} << r.shift;
	for (First first : {First::Front, First::Back}) {
		RouteTimes sum;
		std::vector<RouteTimes> &sums = r.sums[static_cast<int>(first)];
		r.whole[static_cast<int>(first)] =
		    WholePiecesOf(PairOf(r, first), r.start_ns, to_ns + step_ns);
		sums.reserve(to_ns < r.start_ns ? 0 : ((to_ns - r.start_ns) >> r.shift) + 1);
		for (uint64_t at = r.start_ns; at <= to_ns; at += step_ns) {
			sums.push_back(sum);
			sum.between_ns += AddWalking(r, first, at, at + step_ns, &sum.front, &sum.back);
		}
	}
	return r;
}

uint64_t AddRouteTimes(const Route &route, First first, uint64_t from_ns, uint64_t to_ns, CauseTimes *front,
		       CauseTimes *back)
{
	const std::vector<RouteTimes> &sums = route.sums[static_cast<int>(first)];
	if (from_ns >= to_ns)
		return 0;
	uint64_t step_ns = uint64_t{1} << route.shift;
	uint64_t low = from_ns < route.start_ns ? 0 : (from_ns - route.start_ns + step_ns - 1) >> route.shift;
	uint64_t high = to_ns < route.start_ns
			    ? 0
			    : std::min<uint64_t>((to_ns - route.start_ns) >> route.shift, sums.size() - 1);
	if (sums.empty() || low >= high)
		return AddWalking(route, first, from_ns, to_ns, front, back);
	for (size_t c = 0; c < kTimelineCauses; c++) {
		(*front)[c] += sums[high].front[c] - sums[low].front[c];
		(*back)[c] += sums[high].back[c] - sums[low].back[c];
	}
	return AddWalking(route, first, from_ns, route.start_ns + (low << route.shift), front, back) +
	       (sums[high].between_ns - sums[low].between_ns) +
	       AddWalking(route, first, route.start_ns + (high << route.shift), to_ns, front, back);
}

Cuts CutsOf(const Route &route, uint64_t sent_ns, uint64_t answered_ns)
{
	return {route.front_idle.FirstAfter(sent_ns), route.front_idle.LastBefore(answered_ns)};
}

uint64_t AddRequestTimes(const Route &route, const Cuts &cuts, uint64_t from_ns, uint64_t to_ns,
			 CauseTimes *front, CauseTimes *back)
{
	if (cuts.passed_ns >= cuts.returned_ns)
		return AddRouteTimes(route, First::Front, from_ns, to_ns, front, back);
	uint64_t passed = std::clamp(cuts.passed_ns, from_ns, to_ns),
		 returned = std::clamp(cuts.returned_ns, from_ns, to_ns);
	return AddRouteTimes(route, First::Front, from_ns, passed, front, back) +
	       AddRouteTimes(route, First::Back, passed, returned, front, back) +
	       AddRouteTimes(route, First::Front, returned, to_ns, front, back);
}

// If the sums do not cover a case (the connection was free in between, or answers were out of order), a walk
// over all holders replaces them.

namespace
{

// The maximum number of connections with stored sums (about 40 kB each), and of paths of waiting requests.
constexpr size_t kLines = 256;
constexpr size_t kWays = 4;

// Since when a request was the oldest unanswered one on its connection, if it ever was.
uint64_t OldestSince(const Context &context, uint32_t request)
{
	const Requests &q = context.run.requests;
	uint32_t before = context.in_front[request];
	return before == kNoRequest ? q.sent_ns[request] : std::max(q.sent_ns[request], q.end_ns[before]);
}

} // namespace

uint64_t WalkHeadOfLine(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, HopTimes *s)
{
	const Requests &q = context.run.requests;
	const RequestPath path = PathOfRequest(context, i);
	uint64_t idle_ns = 0;
	uint32_t oldest = context.in_front[i];
	for (int n = 0; to_ns > from_ns && oldest != kNoRequest && n < kHolders;
	     oldest = context.in_front[oldest]) {
		uint64_t held_from = std::clamp(OldestSince(context, oldest), from_ns, to_ns),
			 held_to = std::clamp(q.end_ns[oldest], held_from, to_ns);
		if (held_from == to_ns)
			continue;
		idle_ns += AddOwn(path, held_to, to_ns, s); // the connection was free
		idle_ns += AddOwn(PathOfRequest(context, oldest), held_from, held_to, s);
		to_ns = held_from;
		n++;
	}
	return idle_ns + AddOwn(path, from_ns, to_ns, s);
}

void SlidingSums::Restart(uint64_t begin)
{
	begin_ = end_ = begin;
	idle_ns_ = 0;
	sums_.clear();
	counts_.clear();
	parts_.clear();
}

void SlidingSums::TakeAway()
{
	for (uint32_t n = counts_.front(); n; n--) {
		const Part &part = parts_.front();
		(part.idle ? idle_ns_ : sums_[part.sum].direct[part.cause]) -= part.ns;
		parts_.pop_front();
	}
	counts_.pop_front();
	begin_++;
}

void SlidingSums::KeepPart(uint64_t ns, Part part)
{
	(part.idle ? idle_ns_ : sums_[part.sum].direct[part.cause]) += ns;
	for (; ns; ns -= part.ns) {
		part.ns = static_cast<uint32_t>(std::min<uint64_t>(ns, UINT32_MAX));
		parts_.push_back(part);
	}
}

void SlidingSums::Keep(const HopTimes &times, uint64_t idle_ns)
{
	size_t before = parts_.size();
	for (size_t place = 0; place < times.hops.size(); place++) {
		const AtHop &at = times.hops[place];
		size_t h = 0;
		while (h < sums_.size() && sums_[h].hop != at.hop)
			h++;
		if (h == sums_.size())
			sums_.push_back({at.hop, 0});
		sums_[h].place = static_cast<uint16_t>(place);
		sums_[h].last = end_;
		for (size_t c = 0; c < kCauses; c++)
			if (at.direct[c])
				KeepPart(at.direct[c],
					 {0, static_cast<uint16_t>(h), static_cast<uint8_t>(c), false});
	}
	KeepPart(idle_ns, {0, 0, 0, true});
	counts_.push_back(static_cast<uint32_t>(parts_.size() - before));
	end_++;
}

template <typename Add> void SlidingSums::MoveTo(uint64_t begin, uint64_t end, HopTimes *scratch, Add add)
{
	if (begin < begin_ || begin >= end_ || end < end_)
		Restart(begin);
	while (begin_ < begin)
		TakeAway();
	while (end_ < end) {
		scratch->hops.clear();
		uint64_t idle_ns = add(end_, scratch);
		Keep(*scratch, idle_ns);
	}
}

uint64_t SlidingSums::AddBoth(const SlidingSums &a, const SlidingSums &b, HopTimes *s)
{
	struct Place {
		const HopSum *sum;
		bool second;
	};
	std::vector<Place> places;
	for (const SlidingSums *sums : {&a, &b})
		for (const HopSum &sum : sums->sums_)
			if (sum.last >= sums->begin_)
				places.push_back({&sum, sums == &b});
	std::sort(places.begin(), places.end(), [](const Place &x, const Place &y) {
		return x.sum->last != y.sum->last ? x.sum->last > y.sum->last
		       : x.second != y.second	  ? y.second
						  : x.sum->place < y.sum->place;
	});
	for (const Place &place : places)
		s->Add(place.sum->direct, place.sum->hop);
	return a.idle_ns_ + b.idle_ns_;
}

void HeadOfLine::Line::Restart()
{
	holder_sums.Restart(0);
	free.clear();
}

void HeadOfLine::Append(const Context &context, uint32_t request, Line *line)
{
	Holder holder = {OldestSince(context, request), context.run.requests.end_ns[request], request};
	line->disordered |= holder.to_ns < holder.from_ns;
	line->last = request;
	// Of several requests with one answer the last one counts: the others never were the oldest.
	if (!line->holders.empty() && line->holders.back().from_ns == holder.from_ns) {
		line->holders.pop_back();
		if (line->holder_sums.end() > line->first + line->holders.size())
			line->Restart();
	}
	line->holders.push_back(holder);
}

// Adds the requests ahead of i, back to the first that counts for [from, to).
void HeadOfLine::TakeIn(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, Line *line)
{
	chain_.clear();
	uint64_t later = UINT64_MAX;
	uint32_t r = context.in_front[i];
	for (int n = 0; r != kNoRequest && r != line->last && n <= kHolders; r = context.in_front[r]) {
		uint64_t since = OldestSince(context, r);
		chain_.push_back(r);
		n += since < to_ns && since < later;
		later = since;
		if (since <= from_ns)
			break;
	}
	if (chain_.empty())
		return;
	uint32_t before = context.in_front[chain_.back()];
	if (before != line->last || line->last == kNoRequest) {
		line->holders.clear();
		line->first = 0;
		line->disordered = false;
		line->whole = before == kNoRequest;
		line->Restart();
	}
	for (; !chain_.empty(); chain_.pop_back())
		Append(context, chain_.back(), line);
}

// The last 200 that began before to_ns, back to from_ns.
HeadOfLine::Count HeadOfLine::CountOf(const Line &line, uint64_t from_ns, uint64_t to_ns)
{
	auto begins_before = [&](uint64_t ns) {
		auto found = std::partition_point(line.holders.begin(), line.holders.end(),
						  [&](const Holder &h) { return h.from_ns < ns; });
		return static_cast<uint64_t>(found - line.holders.begin()) + line.first;
	};
	uint64_t low = begins_before(from_ns + 1), high = begins_before(to_ns);
	low -= low > line.first;
	if (high - line.first >= kHolders)
		return {std::max(low, high - kHolders), high, true};
	return {low, high, low < high && (line.whole || line.At(low).from_ns <= from_ns)};
}

SlidingSums *HeadOfLine::FreeOf(const ProxyPath *way, Line *line)
{
	for (auto &[of, sums] : line->free)
		if (of == way)
			return &sums;
	if (line->free.size() < kWays) {
		line->free.push_back({way, {}});
		return &line->free.back().second;
	}
	other_.Restart(0);
	return &other_;
}

uint64_t HeadOfLine::Add(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, HopTimes *s)
{
	size_t connection = context.run.requests.connection[i];
	if (from_ns >= to_ns)
		return 0;
	// Before they are sent, all requests with the same path wait for the same.
	if (connection >= kLines || to_ns > context.run.requests.sent_ns[i])
		return WalkHeadOfLine(context, i, from_ns, to_ns, s);
	if (lines_.size() <= connection)
		lines_.resize(connection + 1);
	Line &line = lines_[connection];
	TakeIn(context, i, from_ns, to_ns, &line);
	const Count count = CountOf(line, from_ns, to_ns);
	if (line.disordered || !count.known)
		return WalkHeadOfLine(context, i, from_ns, to_ns, s);

	// The first and the last of them may count in part, as may the free time after each.
	const Holder &last = line.At(count.high - 1), &first = line.At(count.low);
	const RequestPath path = PathOfRequest(context, i);
	auto add = [&](const Holder &holder, uint64_t until_ns) {
		uint64_t held_from = std::clamp(holder.from_ns, from_ns, until_ns),
			 held_to = std::clamp(holder.to_ns, held_from, until_ns);
		uint64_t idle_ns = AddOwn(path, held_to, until_ns, s);
		return idle_ns + AddOwn(PathOfRequest(context, holder.request), held_from, held_to, s);
	};
	uint64_t idle_ns = add(last, to_ns);
	if (count.low + 1 < count.high) {
		const Holder &second = line.At(count.low + 1);
		SlidingSums *free = FreeOf(path.proxy, &line);
		free->MoveTo(count.low + 2, count.high, &own_, [&](uint64_t number, HopTimes *times) {
			const Holder &holder = line.At(number);
			return AddOwn(path, line.At(number - 1).to_ns, holder.from_ns, times);
		});
		line.holder_sums.MoveTo(count.low + 1, count.high - 1, &own_,
					[&](uint64_t number, HopTimes *times) {
						const Holder &holder = line.At(number);
						return AddOwn(PathOfRequest(context, holder.request),
							      holder.from_ns, holder.to_ns, times);
					});
		idle_ns += SlidingSums::AddBoth(line.holder_sums, *free, s);
		idle_ns += add(first, second.from_ns);
	}
	idle_ns += AddOwn(path, from_ns, std::max(from_ns, first.from_ns), s);
	for (; line.first < count.low; line.first++) {
		line.holders.pop_front();
		line.whole = false;
	}
	return idle_ns;
}

} // namespace forktail::analysis
