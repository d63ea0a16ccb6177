// SPDX-License-Identifier: MIT
// Requests by groups (clients, operations, connections, sizes), and which cause leads.
//
// The clients and connections that are seen first have groups of their own: which ones will be slow is not
// known then.
#include <algorithm>
#include <cstring>
#include <functional>

#include "analysis/passes.h"
#include "analysis/sender.h"

namespace forktail::analysis
{

namespace
{

// Classes of sizes: the most bytes of each but the last.
constexpr struct {
	uint32_t most;
	const char *name;
} kSizes[] = {{64, "to 64 B"},		 {1 << 10, "to 1 KiB"}, {16 << 10, "to 16 KiB"},
	      {256 << 10, "to 256 KiB"}, {4 << 20, "to 4 MiB"}, {UINT32_MAX, "over 4 MiB"}};
constexpr size_t kSizeClasses = std::size(kSizes);

size_t SizeClass(uint32_t bytes)
{
	return static_cast<size_t>(
	    std::ranges::find_if(kSizes, [&](const auto &size) { return bytes <= size.most; }) - kSizes);
}

std::string ClientName(const Run &run, uint32_t client)
{
	return client ? run.request_clients[client - 1].name : "unknown";
}

// The client's name, and what tells its connections apart.
std::string ConnectionName(const Run &run, const Connection &c)
{
	const std::string name = NameOfSender(run, c);
	if (c.local_port)
		return name.empty() ? "port " + std::to_string(c.local_port) : name;
	return (name.empty() ? "" : name + ", ") +
	       (c.inode ? "socket " + std::to_string(c.inode) : "unknown socket");
}

void SortGroups(std::vector<RequestGroup> *groups)
{
	std::stable_sort(groups->begin(), groups->end(), [](const RequestGroup &a, const RequestGroup &b) {
		const Latencies &x = a.latencies, &y = b.latencies;
		return x.p99_9 != y.p99_9 ? x.p99_9 > y.p99_9 : a.requests > b.requests;
	});
}

} // namespace

RequestGroups::Group *RequestGroups::GroupAt(GroupBy by, size_t number)
{
	constexpr size_t connections_per_client = 5;
	const size_t most = by == GroupBy::Client	? most_
			    : by == GroupBy::Connection ? most_ * connections_per_client
							: SIZE_MAX;
	Groups &groups = groups_[static_cast<size_t>(by)];
	if (number >= groups.all.size())
		groups.all.resize(number + 1);
	std::unique_ptr<Group> &group = groups.all[number];
	if (group)
		return group.get();
	if (groups.count < most) {
		groups.count++;
		group = std::make_unique<Group>();
		return group.get();
	}
	if (!groups.other)
		groups.other = std::make_unique<Group>();
	return groups.other.get();
}

// Calls each(group) for every group of a request.
template <typename Each>
void RequestGroups::ForGroups(const Run &run, uint8_t op, uint32_t connection, uint32_t request_bytes,
			      uint32_t answer_bytes, Each each)
{
	auto wanted = [&](GroupBy by) { return wanted_[static_cast<size_t>(by)]; };
	each(GroupAt(GroupBy::Command, op));
	if (wanted(GroupBy::Client))
		each(GroupAt(GroupBy::Client, run.connections[connection].client));
	if (wanted(GroupBy::Connection))
		each(GroupAt(GroupBy::Connection, connection));
	if (wanted(GroupBy::Size))
		each(GroupAt(GroupBy::Size,
			     SizeClass(request_bytes) * kSizeClasses + SizeClass(answer_bytes)));
}

void RequestGroups::Count(const Run &run, Log *log, std::optional<GroupBy> asked)
{
	wanted_[static_cast<size_t>(GroupBy::Client)] = !run.request_clients.empty();
	wanted_[static_cast<size_t>(GroupBy::Connection)] = asked == GroupBy::Connection;
	ForWindows(log, [&] {
		const Requests &q = run.requests;
		const bool sized = !q.request_bytes.empty();
		wanted_[static_cast<size_t>(GroupBy::Size)] = asked == GroupBy::Size && sized;
		for (size_t i = q.lead; i < q.size(); i++)
			ForGroups(run, q.op[i], q.connection[i], sized ? q.request_bytes[i] : 0,
				  sized ? q.answer_bytes[i] : 0, [&](Group *group) {
					  group->requests++;
					  if (IsError(q.status[i]))
						  group->errors++;
					  else
						  group->latencies.Add(q.Latency(i));
				  });
	});
}

void RequestGroups::AddSlow(const Run &run, const SlowRequest &r, const Part *parts)
{
	ForGroups(run, r.op, r.connection, r.request_bytes, r.answer_bytes, [&](Group *group) {
		group->slow++;
		group->slow_ns += r.latency_ns;
		for (size_t p = 0; p < r.part_count; p++)
			group->by_cause[static_cast<size_t>(Index(parts[p].cause))] += parts[p].total_ns();
	});
}

RequestGroup RequestGroups::ResultOf(const Group &group)
{
	RequestGroup result;
	result.requests = group.requests;
	result.errors = group.errors;
	result.latencies.p50 = group.latencies.Percentile(50);
	result.latencies.p99 = group.latencies.Percentile(99);
	result.latencies.p99_9 = group.latencies.Percentile(99.9);
	result.latencies.max = group.latencies.max();
	result.slow = group.slow;
	result.slow_ns = group.slow_ns;
	for (size_t c = 0; c < group.by_cause.size(); c++)
		if (group.by_cause[c])
			result.causes.push_back({static_cast<Cause>(c), group.by_cause[c]});
	std::stable_sort(result.causes.begin(), result.causes.end(),
			 [](const HopCause &a, const HopCause &b) { return a.time_ns > b.time_ns; });
	return result;
}

std::vector<RequestGroup> RequestGroups::Result(const Run &run, GroupBy by) const
{
	std::vector<RequestGroup> results;
	const Groups &groups = groups_[static_cast<size_t>(by)];
	for (size_t number = 0; number < groups.all.size(); number++) {
		if (!groups.all[number])
			continue;
		RequestGroup &result = results.emplace_back(ResultOf(*groups.all[number]));
		switch (by) {
		case GroupBy::Client:
			result.client = static_cast<uint32_t>(number);
			result.name = ClientName(run, result.client);
			break;
		case GroupBy::Command:
			result.name = number < run.ops.size() ? run.ops[number] : "unknown";
			break;
		case GroupBy::Connection:
			result.client = run.connections[number].client;
			result.name = ConnectionName(run, run.connections[number]);
			break;
		case GroupBy::Size:
			result.name = std::string("request ") + kSizes[number / kSizeClasses].name +
				      ", reply " + kSizes[number % kSizeClasses].name;
		}
	}
	if (groups.other) {
		results.push_back(ResultOf(*groups.other));
		results.back().name = "other";
	}
	SortGroups(&results);
	return results;
}

// docs/how-it-works/attribution.md has the rule in words.

namespace
{

// A percentile below this many medians is a usual latency: no spike.
constexpr uint64_t kUsualMedians = 5;
constexpr size_t kMostTogether = 4; // causes named together
// The load generator's delays are named from this share of the slow requests' time on.
constexpr double kMinLateShare = 0.25;

bool Noticeable(uint64_t without_ns, uint64_t now_ns)
{
	return static_cast<double>(without_ns) < static_cast<double>(now_ns) * (1 - kNoticeable);
}

const NamedLatency &RankedBy(const Blame &b, const NamedLatency &asked)
{
	const uint64_t usual_ns = b.latencies.p50 * kUsualMedians;
	const NamedLatency *figure = &asked;
	while (figure + 1 != std::end(kLatencies) && b.latencies.*figure->value < usual_ns &&
	       b.latencies.*(std::end(kLatencies) - 1)->value >= usual_ns)
		figure++;
	return *figure;
}

// Causes that can be ranked, by time.
std::vector<const CauseRow *> Ranked(const Blame &b)
{
	std::vector<const CauseRow *> rows;
	for (const CauseRow &row : b.causes)
		if (row.cause != Cause::Unknown && row.cause != Cause::ClientLate)
			rows.push_back(&row);
	return rows;
}

// The fewest of the causes with most time without which the percentile is noticeably lower; empty if there
// are none.
std::vector<Cause> Together(const Blame &b, const NamedLatency &figure,
			    const std::vector<const CauseRow *> &rows)
{
	const uint64_t now_ns = b.latencies.*figure.value;
	auto lower = [&](const std::vector<Cause> &causes) {
		return Noticeable(PercentileWithout(b, figure, causes), now_ns);
	};
	std::vector<Cause> causes;
	for (const CauseRow *row : rows) {
		if (causes.size() == kMostTogether)
			return {};
		causes.push_back(row->cause);
		if (lower(causes))
			break;
	}
	if (!lower(causes))
		return {};
	for (size_t i = causes.size(); i-- > 0 && causes.size() > 1;) {
		std::vector<Cause> fewer = causes;
		fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
		if (lower(fewer))
			causes = fewer;
	}
	return causes;
}

void FindCauses(const Blame &b, Lead *lead)
{
	const NamedLatency &figure = *lead->figure;
	const uint64_t now_ns = b.latencies.*figure.value;
	std::vector<const CauseRow *> rows = Ranked(b);
	if (rows.empty()) {
		lead->causes = {Cause::ClientLate};
		return;
	}
	std::vector<const CauseRow *> by_gain = rows;
	std::ranges::stable_sort(by_gain, std::less(),
				 [&](const CauseRow *r) { return r->without.*figure.value; });
	auto without = [&](size_t i) { return by_gain[i]->without.*figure.value; };
	if (Noticeable(without(0), now_ns)) {
		lead->causes = {by_gain[0]->cause};
		lead->without_ns = without(0);
		if (by_gain.size() > 1 && Noticeable(without(1), now_ns)) {
			lead->next = by_gain[1]->cause;
			lead->without_next_ns = without(1);
		}
		return;
	}
	lead->causes = Together(b, figure, rows);
	if (!lead->causes.empty())
		lead->without_ns = PercentileWithout(b, figure, lead->causes);
	else
		lead->causes = {rows[0]->cause};
}

} // namespace

bool Lead::Names(Cause cause) const
{
	return std::ranges::find(causes, cause) != causes.end() || (late && cause == Cause::ClientLate) ||
	       (kind == Kind::Unattributed && cause == Cause::Unknown);
}

const NamedLatency &UsualFigure()
{
	return *std::ranges::find_if(kLatencies,
				     [](const NamedLatency &n) { return strcmp(n.name, "p99.9") == 0; });
}

uint64_t PercentileWithout(const Blame &b, const NamedLatency &figure, const std::vector<Cause> &causes)
{
	const uint64_t now_ns = b.latencies.*figure.value, answered = b.count - b.errors,
		       floor_ns = std::min(std::max(b.threshold_ns, b.kept_from_ns), now_ns);
	if (!answered)
		return now_ns;
	std::vector<uint64_t> values;
	for (const SlowRequest &r : b.slow) {
		if (IsError(r.status))
			continue;
		uint64_t value = r.latency_ns;
		for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++)
			if (std::ranges::find(causes, b.parts[p].cause) != causes.end())
				value -= b.parts[p].total_ns();
		values.push_back(value);
	}
	const uint64_t above = answered - Rank(answered, figure.percentile);
	if (above >= values.size())
		return floor_ns;
	const auto at = values.begin() + static_cast<ptrdiff_t>(above);
	std::ranges::nth_element(values, at, std::greater());
	return std::max(*at, floor_ns);
}

Lead FindLead(const Blame &b, const NamedLatency &asked, bool exactly)
{
	Lead lead;
	if (b.slow.empty() || b.causes.empty() || b.count == b.errors)
		return lead;
	lead.figure = exactly ? &asked : &RankedBy(b, asked);
	const double unknown = b.RowOf(Cause::Unknown).share;
	const CauseRow &late = b.RowOf(Cause::ClientLate);
	const auto most = std::ranges::max_element(
	    b.causes, {}, [](const CauseRow &row) { return row.cause == Cause::Unknown ? 0 : row.share; });
	if (unknown > 0.5 || unknown > most->share) {
		lead.kind = Lead::Kind::Unattributed;
		return lead;
	}
	lead.kind = Lead::Kind::Causes;
	FindCauses(b, &lead);
	const uint64_t now_ns = b.latencies.*lead.figure->value,
		       without_late_ns = late.without.*lead.figure->value;
	const bool alone = lead.causes.size() == 1 && lead.causes[0] == Cause::ClientLate;
	if (late.requests && !alone) {
		// An error of measurement does not come before what took far more of the time.
		const double share = b.RowOf(lead.causes[0]).share;
		lead.late_first =
		    Noticeable(without_late_ns, now_ns)
			? late.share > share / 2 && (!lead.without_ns || without_late_ns < lead.without_ns)
			: !lead.without_ns && late.share > share;
		lead.late = lead.late_first || late.share >= kMinLateShare;
	}
	return lead;
}

} // namespace forktail::analysis
