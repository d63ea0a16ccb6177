// SPDX-License-Identifier: MIT
// What takes time is waited for in small steps, so that a signal, or a server's end, is noticed meanwhile.
#include "actions.h"

#include <algorithm>
#include <cstdlib>

#include "counters.h"
#include "lab/host/steering.h"
#include "lab/scenario/scenario_check.h"
#include "lab/scenario/words.h"
#include "progress.h"
#include "recording/recording.h"

namespace forktail::lab
{
namespace
{

constexpr double kAwaitSeconds = 300;
constexpr int kPollMs = 50;

bool AnyOf(const PointRun &run, const std::string &server, std::string *error)
{
	if (!InstancesOf(*run.topology, server).empty())
		return true;
	*error = "the server " + server + " is not running";
	return false;
}

bool Ask(PointRun *run, const Action &action, std::string *error)
{
	std::string text;
	std::vector<std::string> words, reply;
	if (!Expand(action.ask, run->point->values, &text, error))
		return false;
	if (!SplitWords(text, &words) || words.empty()) {
		*error = "\"" + text + "\" is not a command";
		return false;
	}
	if (!AnyOf(*run, action.server, error))
		return false;
	Say(action.server + ": " + text);
	for (Instance *instance : InstancesOf(*run->topology, action.server)) {
		if (!instance->redis) {
			*error = instance->name + " does not accept Redis commands";
			return false;
		}
		if (!Ask(run->session, instance->redis.get(), words, &reply, error))
			return false;
	}
	return true;
}

// The replicas that a primary counts, all in step with it.
bool ReplicasInStep(const RedisInfo &info)
{
	uint64_t replicas = Number(info, "connected_slaves"), offset = Number(info, "master_repl_offset");
	for (uint64_t i = 0; i < replicas; i++) {
		auto replica = info.find("slave" + std::to_string(i));
		if (replica == info.end() || replica->second.find("state=online") == std::string::npos)
			return false;
		size_t at = replica->second.find("offset=");
		if (at == std::string::npos ||
		    strtoull(replica->second.c_str() + at + 7, nullptr, 10) < offset)
			return false;
	}
	return replicas > 0;
}

bool Over(const std::string &what, const RedisInfo &info)
{
	if (what == "replicas")
		return ReplicasInStep(info);
	if (what == "snapshot")
		return Number(info, "rdb_bgsave_in_progress") == 0;
	return Number(info, "aof_rewrite_in_progress") == 0 && Number(info, "aof_rewrite_scheduled") == 0;
}

bool Await(PointRun *run, const Action &action, std::string *error)
{
	if (!AnyOf(*run, action.server, error))
		return false;
	Say("waiting for the " + action.await + " of " + action.server);
	uint64_t start_ns = ft_now_ns();
	for (Instance *instance : InstancesOf(*run->topology, action.server))
		for (RedisInfo info;;) {
			if (!instance->redis) {
				*error = instance->name + " has no " + action.await;
				return false;
			}
			if (!ReadInfo(run->session, instance->redis.get(), &info, error))
				return false;
			if (Over(action.await, info))
				break;
			if (static_cast<double>(ft_now_ns() - start_ns) / 1e9 > kAwaitSeconds) {
				*error = "the " + action.await + " of " + instance->name +
					 " did not finish within " +
					 std::to_string(static_cast<int>(kAwaitSeconds)) + " s";
				return false;
			}
			if (!Step(run->session, kPollMs, error))
				return false;
		}
	return true;
}

bool StartLater(PointRun *run, const std::string &name, std::string *error)
{
	for (const ServerSpec &spec : run->scenario->servers) {
		if (spec.name != name)
			continue;
		ServerPlan plan;
		Say("starting " + name);
		plan.by_program = run->plain;
		return MakePlan(spec, run->point->values, &plan, error) &&
		       StartServers(run->session, plan, run->logs, run->topology, error);
	}
	*error = "unknown server " + name;
	return false;
}

bool Move(PointRun *run, const Action &action, std::string *error)
{
	std::string slots;
	Instance *from = OneInstance(*run->topology, action.server, error),
		 *to = from ? OneInstance(*run->topology, action.to, error) : nullptr;
	if (!to || !Expand(action.move_slots, run->point->values, &slots, error))
		return false;
	Say("moving " + slots + " slots from " + action.server + " to " + action.to);
	uint64_t start_ns = ft_now_ns();
	if (!MoveSlots(run->session, run->topology, from, to, atoi(slots.c_str()), error))
		return false;
	run->point->numbers[run->step + ".move_time"] = static_cast<double>(ft_now_ns() - start_ns);
	return true;
}

bool Spread(PointRun *run, bool on)
{
	std::string error;
	if (!SpreadSoftirqs(run->session, "lo", on, &error) && on &&
	    std::find(run->notes->begin(), run->notes->end(), error) == run->notes->end())
		run->notes->push_back(error);
	return true;
}

bool Wait(PointRun *run, const std::string &time, std::string *error)
{
	Due due;
	ParseDue(time, &due);
	for (uint64_t start_ns = ft_now_ns();
	     static_cast<double>(ft_now_ns() - start_ns) / 1e9 < due.seconds;)
		if (!Step(run->session, kPollMs, error))
			return false;
	return true;
}

bool Note(PointRun *run, const std::string &name, std::string *error)
{
	Counters now;
	if (!ReadCounters(run->session, *run->topology, &now, error))
		return false;
	AddMoment(name, *run->topology, now, run->point);
	return true;
}

bool Do(PointRun *run, const Action &action, std::string *error)
{
	if (!action.ask.empty())
		return Ask(run, action, error);
	if (!action.start.empty())
		return StartLater(run, action.start, error);
	if (!action.kill.empty()) {
		Instance *victim = OneInstance(*run->topology, action.kill, error);
		if (victim)
			Say("killing " + victim->name);
		return victim && KillInstance(run->session, victim, error);
	}
	if (!action.move_slots.empty())
		return Move(run, action, error);
	if (!action.await.empty())
		return Await(run, action, error);
	if (!action.spread.empty())
		return Spread(run, action.spread == "on");
	if (!action.wait.empty())
		return Wait(run, action.wait, error);
	return Note(run, action.note, error);
}

} // namespace

Instance *OneInstance(const Topology &topology, const std::string &name, std::string *error)
{
	std::vector<Instance *> instances = InstancesOf(topology, name);
	if (instances.size() == 1)
		return instances[0];
	*error = instances.empty() ? "unknown server " + name
				   : name + " has several instances: name one, such as " + name + "1";
	return nullptr;
}

bool Tell(const PointRun &run, const std::string &say, std::string *error)
{
	auto figure = [&](const std::string &name) -> std::optional<double> {
		auto number = run.point->numbers.find(name);
		if (number == run.point->numbers.end())
			return {};
		return number->second;
	};
	std::string told;
	if (!Told(say, run.point->values, figure, &told, error))
		return false;
	Say(told);
	return true;
}

bool RunAction(PointRun *run, const Action &action, std::string *error)
{
	if (!Matches(action.only, run->point->values))
		return true;
	return Do(run, action, error) && (action.say.empty() || Tell(*run, action.say, error));
}

} // namespace forktail::lab
