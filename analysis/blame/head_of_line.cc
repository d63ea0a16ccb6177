// SPDX-License-Identifier: MIT
// If the sums do not cover a case (the connection was free in between, or answers were out of order), a walk
// over all holders replaces them.
#include "head_of_line.h"

#include <algorithm>

namespace forktail::analysis
{

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
