// SPDX-License-Identifier: MIT
// When a trigger fires: its condition held long enough, and its pause is over.
#include "jobs.h"

#include <algorithm>
#include <cstdio>

#include "common/format.h"

namespace forktail::live::guard
{
namespace
{

using live::kSecondNs;

const std::string kNobody;

std::string PerSecond(uint64_t count, const Rule &rule)
{
	const std::string cause = rule.text.substr(5, rule.text.find(')') - 5);
	return cause + " " + common::FormatCount(count) + " times in a second";
}

} // namespace

bool TriggerMatcher::Concerns(const Trigger &trigger, uint32_t server) const
{
	return server < servers_->size() && (trigger.server.empty() || NameOf(server) == trigger.server);
}

const std::string &TriggerMatcher::NameOf(uint32_t server) const
{
	return server < servers_->size() ? (*servers_)[server].name : kNobody;
}

bool TriggerMatcher::IsChilds(uint32_t thread) const
{
	return thread < threads_->size() && (*threads_)[thread].child;
}

bool TriggerMatcher::IsNew(const Trigger &trigger, uint32_t thread, Interval interval)
{
	const auto [at, inserted] = last_.try_emplace({trigger.name, thread}, interval);
	if (inserted)
		return true;
	Interval &last = at->second;
	if (interval.start_ns < last.end_ns && interval.end_ns > last.start_ns) {
		last.end_ns = std::max(last.end_ns, interval.end_ns);
		return false;
	}
	last = interval;
	return true;
}

void TriggerMatcher::SeeIterations(const Trigger &trigger, const live::Batch &batch,
				   std::vector<Firing> *fired)
{
	for (const live::Iteration &t : batch.iterations) {
		if (t.duration_ns <= trigger.rule.limit_ns || !Concerns(trigger, t.server) ||
		    IsChilds(t.thread) || !IsNew(trigger, t.thread, {t.start_ns, t.start_ns + t.duration_ns}))
			continue;
		std::string what = "an event-loop iteration of " + common::FormatDuration(t.duration_ns);
		if (!t.parts.empty())
			what += std::string(", ") + analysis::CauseName(t.parts[0].cause) + " for " +
				common::FormatDuration(t.parts[0].ns);
		fired->push_back(
		    {trigger.name, NameOf(t.server), what, t.start_ns, t.start_ns + t.duration_ns});
	}
	// An unfinished iteration is not recorded yet, but the stall in it is.
	for (const live::Stall &s : batch.stalls) {
		if (!s.open || !s.serves || s.duration_ns <= trigger.rule.limit_ns ||
		    !Concerns(trigger, s.server) ||
		    !IsNew(trigger, s.thread, {s.start_ns, s.start_ns + s.duration_ns}))
			continue;
		fired->push_back({trigger.name, NameOf(s.server),
				  "an event-loop iteration stalled by " +
				      std::string(analysis::CauseName(s.cause)) + " for " +
				      common::FormatDuration(s.duration_ns) + " so far",
				  s.start_ns, s.start_ns + s.duration_ns});
	}
}

void TriggerMatcher::SeeStalls(const Trigger &trigger, const live::Batch &batch, std::vector<Firing> *fired)
{
	for (const live::Stall &s : batch.stalls) {
		if (!trigger.rule.causes[analysis::Index(s.cause)] || !s.serves ||
		    s.duration_ns <= trigger.rule.limit_ns || !Concerns(trigger, s.server) ||
		    !IsNew(trigger, s.thread, {s.start_ns, s.start_ns + s.duration_ns}))
			continue;
		fired->push_back({trigger.name, NameOf(s.server),
				  std::string(analysis::CauseName(s.cause)) + " for " +
				      common::FormatDuration(s.duration_ns) + (s.open ? " so far" : ""),
				  s.start_ns, s.start_ns + s.duration_ns});
	}
}

void TriggerMatcher::SeeRates(const Trigger &trigger, const live::Batch &batch, std::vector<Firing> *fired)
{
	for (const live::Second &second : batch.seconds) {
		std::map<uint32_t, uint64_t> by_server;
		for (const live::ThreadSecond &t : second.threads)
			for (int i = 0; t.thread < threads_->size() && i < analysis::kTimelineCauses; i++)
				if (trigger.rule.causes[i] && !(*threads_)[t.thread].child)
					by_server[(*threads_)[t.thread].server] += t.counts[i];
		for (const auto &[server, count] : by_server)
			if (static_cast<double>(count) > trigger.rule.limit && Concerns(trigger, server))
				fired->push_back({trigger.name, NameOf(server),
						  PerSecond(count, trigger.rule), second.start_ns,
						  second.start_ns + kSecondNs});
	}
}

void TriggerMatcher::SeeDrops(const Trigger &trigger, const live::Batch &batch, std::vector<Firing> *fired)
{
	Firing drops{trigger.name, "", "", UINT64_MAX, 0};
	uint64_t count = 0;
	for (const ft_drop &d : batch.drops) {
		count += d.count;
		drops.start_ns = std::min(drops.start_ns, d.start_ns);
		drops.end_ns = std::max(drops.end_ns, d.end_ns);
	}
	if (!count || static_cast<double>(count) <= trigger.rule.limit)
		return;
	drops.what = common::Plural(count, "record was lost", "records were lost");
	fired->push_back(drops);
}

void TriggerMatcher::See(const live::Batch &batch, const std::vector<live::Server> &servers,
			 const std::vector<live::ThreadTotals> &threads, std::vector<Firing> *fired)
{
	servers_ = &servers;
	threads_ = &threads;
	for (const Trigger &t : triggers_)
		switch (t.rule.what) {
		case What::Iteration:
			SeeIterations(t, batch, fired);
			break;
		case What::Stall:
			SeeStalls(t, batch, fired);
			break;
		case What::Rate:
			SeeRates(t, batch, fired);
			break;
		case What::Drops:
			SeeDrops(t, batch, fired);
			break;
		case What::Named:
			break;
		}
	// Requested by SIGUSR1 to the recorder, which only its owner can send.
	for (const live::Note &n : batch.notes)
		if (n.kind == "trigger")
			fired->push_back({n.name.empty() ? "signal" : n.name, NameOf(n.server),
					  "requested by " + (n.name.empty() ? "a signal" : n.name), n.t_ns,
					  n.t_ns});
}

} // namespace forktail::live::guard
