// SPDX-License-Identifier: MIT
// The fork is over when the reply to the command arrives, so INFO directly after it describes this fork.
#include "forks.h"

#include <algorithm>

#include "actions.h"
#include "common/format.h"
#include "progress.h"
#include "recording/recording.h"

namespace forktail::lab
{

struct ForkJob {
	const char *command, *kind;
	const char *running, *status, *cow; // in INFO
};

namespace
{

constexpr ForkJob kJobs[] = {
    {"BGSAVE", "bgsave", "rdb_bgsave_in_progress", "rdb_last_bgsave_status", "rdb_last_cow_size"},
    {"BGREWRITEAOF", "bgrewriteaof", "aof_rewrite_in_progress", "aof_last_bgrewrite_status",
     "aof_last_cow_size"},
};
constexpr uint64_t kLookNs = 100'000'000; // rarely, so that INFO adds no load
constexpr int kJobSeconds = 30;		  // how long a child may run after the load

bool LookAtForks(PointRun *run, Forks *forks, RedisInfo *info, std::string *error)
{
	ForkReport &report = forks->reports.back();
	const ForkJob &job = *report.job;
	if (!ReadInfo(run->session, forks->server->redis.get(), info, error))
		return false;
	if (Number(*info, job.running) != 0)
		return true;
	const std::string &status = (*info)[job.status];
	if (status != "ok") {
		*error = std::string(job.command) + " failed (" + job.status + " is " + status + ")" +
			 LastWords(*forks->server->child);
		return false;
	}
	report.ended_ns = ft_now_ns();
	report.cow_bytes = Number(*info, job.cow);
	Say(std::string(job.command) + " done after " +
	    common::FormatDuration(report.ended_ns - report.asked_ns) + "; Redis reports " +
	    common::FormatBytes(report.cow_bytes) + " copied on write");
	forks->server = nullptr;
	return true;
}

} // namespace

bool AskForFork(PointRun *run, const Action &action, Forks *forks, std::string *error)
{
	Instance *server = OneInstance(*run->topology, action.server, error);
	if (!server)
		return false;
	const ForkJob *job = std::find_if(std::begin(kJobs), std::end(kJobs),
					  [&](const ForkJob &one) { return action.ask == one.command; });
	if (!server->redis || job == std::end(kJobs)) {
		*error = server->name + " does not support " + action.ask;
		return false;
	}
	ForkReport report;
	std::vector<std::string> reply;
	RedisInfo info;
	report.job = job;
	report.kind = job->kind;
	report.cow_field = job->cow;
	report.asked_ns = ft_now_ns();
	if (!Ask(run->session, server->redis.get(), {job->command}, &reply, error))
		return false;
	report.t_ns = ft_now_ns();
	if (!ReadInfo(run->session, server->redis.get(), &info, error))
		return false;
	report.fork_us = Number(info, "latest_fork_usec");
	report.used_memory = Number(info, "used_memory");
	report.used_memory_rss = Number(info, "used_memory_rss");
	Say(action.ask + " started; Redis reports that its fork took " +
	    common::FormatDuration(report.fork_us * 1000));
	forks->reports.push_back(report);
	forks->server = server;
	return true;
}

bool LookAtFork(PointRun *run, Forks *forks, std::string *error)
{
	if (!forks->server || ft_now_ns() - forks->looked_ns < kLookNs)
		return true;
	forks->looked_ns = ft_now_ns();
	RedisInfo info;
	return LookAtForks(run, forks, &info, error);
}

bool AwaitFork(PointRun *run, Forks *forks, std::string *error)
{
	if (!forks->server)
		return true;
	const std::string command = forks->reports.back().job->command;
	uint64_t start_ns = ft_now_ns(), shown_ns = start_ns;
	Say("waiting for " + command + " to end");
	while (forks->server && ft_now_ns() - start_ns < kJobSeconds * 1'000'000'000ULL) {
		RedisInfo info;
		if (!Step(run->session, 100, error) || !LookAtForks(run, forks, &info, error))
			return false;
		uint64_t total = Number(info, "current_save_keys_total");
		if (forks->server && total && ft_now_ns() - shown_ns >= 1'000'000'000) {
			shown_ns = ft_now_ns();
			SayMeanwhile(
			    std::to_string(100 * Number(info, "current_save_keys_processed") / total) +
			    " % of the keys written");
		}
	}
	if (forks->server)
		Say(command + " did not finish within " + std::to_string(kJobSeconds) + " s and is stopped");
	return true;
}

} // namespace forktail::lab
