// SPDX-License-Identifier: MIT
// The clients that are seen first have groups of their own: which ones will be slow is not known then.
#include "groups.h"

#include <algorithm>

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

} // namespace forktail::analysis
