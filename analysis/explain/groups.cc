// SPDX-License-Identifier: MIT
// Requests by groups (clients, operations), and which cause leads.
//
// The clients that are seen first have groups of their own: which ones will be slow is not known then.
#include <algorithm>
#include <cstring>
#include <functional>

#include "analysis/passes.h"

namespace forktail::analysis
{

// The group of a connection's client.
RequestGroups::Group *RequestGroups::ClientOf(const Run &run, uint32_t connection)
{
	const uint32_t client = run.connections[connection].client;
	if (client >= clients_.size())
		clients_.resize(run.request_clients.size() + 1);
	std::unique_ptr<Group> &group = clients_[client];
	if (group)
		return group.get();
	if (count_ < most_) {
		count_++;
		group = std::make_unique<Group>();
		return group.get();
	}
	if (!other_)
		other_ = std::make_unique<Group>();
	return other_.get();
}

void RequestGroups::Count(const Run &run, Log *log)
{
	ForWindows(log, [&] {
		const bool by_client = !run.request_clients.empty();
		const Requests &q = run.requests;
		for (size_t i = q.lead; i < q.size(); i++) {
			std::unique_ptr<Group> &command = commands_[q.op[i]];
			if (!command)
				command = std::make_unique<Group>();
			for (Group *group :
			     {command.get(), by_client ? ClientOf(run, q.connection[i]) : nullptr}) {
				if (!group)
					continue;
				group->requests++;
				if (IsError(q.status[i]))
					group->errors++;
				else
					group->latencies.Add(q.Latency(i));
			}
		}
	});
}

void RequestGroups::AddSlowTo(const SlowRequest &r, const Part *parts, Group *group)
{
	group->slow++;
	group->slow_ns += r.latency_ns;
	for (size_t p = 0; p < r.part_count; p++)
		group->by_cause[static_cast<size_t>(Index(parts[p].cause))] += parts[p].total_ns();
}

void RequestGroups::AddSlow(const Run &run, const SlowRequest &r, const Part *parts)
{
	if (commands_[r.op])
		AddSlowTo(r, parts, commands_[r.op].get());
	if (!run.request_clients.empty())
		AddSlowTo(r, parts, ClientOf(run, r.connection));
}

RequestGroup RequestGroups::Result(const Group &group)
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

namespace
{

void SortGroups(std::vector<RequestGroup> *groups)
{
	std::stable_sort(groups->begin(), groups->end(), [](const RequestGroup &a, const RequestGroup &b) {
		const Latencies &x = a.latencies, &y = b.latencies;
		return x.p99_9 != y.p99_9 ? x.p99_9 > y.p99_9 : a.requests > b.requests;
	});
}

} // namespace

std::vector<RequestGroup> RequestGroups::Clients(const Run &run) const
{
	std::vector<RequestGroup> groups;
	auto add = [&](const Group &group, const std::string &name, uint32_t client) {
		groups.push_back(Result(group));
		groups.back().name = name;
		groups.back().client = client;
	};
	for (uint32_t c = 0; c < clients_.size(); c++)
		if (clients_[c])
			add(*clients_[c], c ? run.request_clients[c - 1].name : "unknown", c);
	if (other_)
		add(*other_, "other", 0);
	SortGroups(&groups);
	return groups;
}

std::vector<RequestGroup> RequestGroups::Commands(const Run &run) const
{
	std::vector<RequestGroup> groups;
	for (size_t op = 0; op < commands_.size(); op++) {
		if (!commands_[op])
			continue;
		groups.push_back(Result(*commands_[op]));
		groups.back().name = op < run.ops.size() ? run.ops[op] : "unknown";
	}
	SortGroups(&groups);
	return groups;
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
