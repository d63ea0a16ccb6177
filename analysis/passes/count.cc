// SPDX-License-Identifier: MIT
// Each worker counts its range of a window. Results that depend on the order of requests are joined in that
// order.
#include "count.h"

#include <algorithm>
#include <utility>

#include "parallel.h"

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kSample = 1'000'000;

// The connections to a proxy.
std::vector<bool> ThroughProxy(const Run &run)
{
	std::vector<bool> through(run.connections.size());
	for (const Load &load : run.loads)
		for (uint32_t c = 0; load.behind && c < load.connection_count; c++)
			if (load.first_connection + c < through.size())
				through[load.first_connection + c] = true;
	return through;
}

void CountArrival(const Requests &q, size_t i, LogFacts *facts)
{
	uint64_t ns = q.arrival_ns[i] - q.due_ns[i];
	facts->arrivals.Add(ns);
	facts->arrivals_ns += ns;
	facts->unread_ns += q.Unread(i);
	facts->longest_unread_ns = std::max(facts->longest_unread_ns, q.Unread(i));
}

// A request with one of these statuses was answered by a server.
bool IsAnswered(uint8_t status)
{
	return status <= FT_STATUS_ERROR_REPLY || status == FT_STATUS_WRONG;
}

void CountOperation(const Requests &q, size_t i, OperationCount *count)
{
	count->requests++;
	const uint64_t read_ns = q.read_ns.empty() ? 0 : q.read_ns[i],
		       answered_ns = q.answered_ns.empty() ? q.end_ns[i] : q.answered_ns[i];
	if (!read_ns || answered_ns < read_ns)
		return;
	count->served++;
	count->service_ns += answered_ns - read_ns;
}

void CountRange(const Run &run, const std::vector<bool> &through, size_t begin, size_t end, uint64_t step,
		const TimeSpan &period, LogFacts *facts)
{
	const Requests &q = run.requests;
	facts->first_due_of.resize(run.connections.size(), UINT64_MAX);
	facts->last_use_of.resize(run.connections.size());
	for (size_t i = begin; i < end; i++) {
		uint32_t c = q.connection[i];
		facts->by_status[q.status[i]]++;
		facts->first_due_ns = std::min(facts->first_due_ns, q.due_ns[i]);
		facts->last_due_ns = std::max(facts->last_due_ns, q.due_ns[i]);
		facts->last_end_ns = std::max(facts->last_end_ns, q.end_ns[i]);
		facts->curve.At(q.due_ns[i]).due++;
		LoadCounts &ended = facts->curve.At(q.end_ns[i]);
		(IsAnswered(q.status[i]) ? ended.answered : ended.failed)++;
		if (facts->first_due_of[c] == UINT64_MAX)
			facts->first_due_of[c] = q.due_ns[i];
		if (q.status[i] != FT_STATUS_UNSENT)
			facts->last_use_of[c] = {q.sent_ns[i], q.Arrived(i)};
		facts->behind |= q.Behind(i) != 0;
		facts->joined += q.Joined(i);
		if (q.Behind(i) == 0 && through[c] && q.status[i] != FT_STATUS_UNSENT)
			facts->behind_unknown++;
		if (q.end_ns[i] > period.since_ns && q.end_ns[i] <= period.until_ns &&
		    IsAnswered(q.status[i]))
			CountOperation(q, i, &facts->by_op[q.op[i]]);
		if (IsError(q.status[i]))
			continue;
		uint64_t latency = q.Latency(i);
		facts->latencies.Add(latency);
		facts->latencies_ns += latency;
		facts->peaks.Add(q.due_ns[i], latency);
		if (!q.arrival_ns.empty() && q.arrival_ns[i])
			CountArrival(q, i, facts);
		if (q.Number(i) % step == 0)
			facts->sample.push_back({q.due_ns[i], q.sent_ns[i], q.Arrived(i), latency, c, q.op[i],
						 static_cast<uint8_t>(q.Behind(i))});
	}
	facts->count += end - begin;
}

void MergeOrdered(LogFacts *worker, LogFacts *all)
{
	all->first_due_of.resize(std::max(all->first_due_of.size(), worker->first_due_of.size()), UINT64_MAX);
	for (size_t c = 0; c < worker->first_due_of.size(); c++)
		if (all->first_due_of[c] == UINT64_MAX)
			all->first_due_of[c] = worker->first_due_of[c];
	all->last_use_of.resize(std::max(all->last_use_of.size(), worker->last_use_of.size()));
	for (size_t c = 0; c < worker->last_use_of.size(); c++)
		if (worker->last_use_of[c].arrived_ns)
			all->last_use_of[c] = std::exchange(worker->last_use_of[c], {});
	all->sample.insert(all->sample.end(), worker->sample.begin(), worker->sample.end());
	worker->sample.clear();
}

void MergeSums(const LogFacts &worker, LogFacts *all)
{
	all->count += worker.count;
	for (size_t s = 0; s < all->by_status.size(); s++)
		all->by_status[s] += worker.by_status[s];
	all->first_due_ns = std::min(all->first_due_ns, worker.first_due_ns);
	all->last_due_ns = std::max(all->last_due_ns, worker.last_due_ns);
	all->last_end_ns = std::max(all->last_end_ns, worker.last_end_ns);
	all->latencies.Merge(worker.latencies);
	all->latencies_ns += worker.latencies_ns;
	all->peaks.Merge(worker.peaks);
	all->curve.Merge(worker.curve);
	all->behind_unknown += worker.behind_unknown;
	all->behind |= worker.behind;
	all->joined += worker.joined;
	for (size_t op = 0; op < all->by_op.size(); op++)
		all->by_op[op].Add(worker.by_op[op]);
	all->arrivals.Merge(worker.arrivals);
	all->arrivals_ns += worker.arrivals_ns;
	all->unread_ns += worker.unread_ns;
	all->longest_unread_ns = std::max(all->longest_unread_ns, worker.longest_unread_ns);
}

} // namespace

void AddEarlier(LogFacts earlier, LogFacts *facts)
{
	MergeOrdered(facts, &earlier);
	facts->first_due_of = std::move(earlier.first_due_of);
	facts->last_use_of = std::move(earlier.last_use_of);
	facts->sample = std::move(earlier.sample);
}

LogFacts CountRequests(const Run &run, Log *log, const TimeSpan &period)
{
	LogFacts all;
	std::vector<LogFacts> workers(MaxWorkers());
	uint64_t step = log->Count() / kSample + 1;
	all.sample.reserve(std::min(log->Count() / step + 1, kSample));
	ForWindows(log, [&] {
		const std::vector<bool> through = ThroughProxy(run);
		const Requests &q = run.requests;
		ForRanges(q.lead, q.size(), [&](size_t begin, size_t end, size_t w) {
			CountRange(run, through, begin, end, step, period, &workers[w]);
		});
		for (size_t w = 0; w < Workers(q.size() - q.lead); w++)
			MergeOrdered(&workers[w], &all);
	});
	for (const LogFacts &worker : workers)
		MergeSums(worker, &all);
	return all;
}

} // namespace forktail::analysis
