// SPDX-License-Identifier: MIT
// Counters and histograms of recorded servers for monitoring, from the events of a follower, in the text
// formats of Prometheus. docs/reference/watch-and-metrics.md lists them.
//
// The number of labels is bounded: servers by address, threads by role, CPU holders by ten names and "other".
// A counter exists as long as this object.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "common/metrics.h"
#include "live/follow.h"

namespace forktail::live::metrics
{

using common::MetricsFormat;
using common::MetricsWriter;

class Metrics
{
public:
	// Adds the events of a poll.
	void Take(const live::Follower &follower, const live::Batch &batch);
	// Counts a snapshot of a trigger, taken or failed.
	void Snapshot(const std::string &trigger, bool made);
	// All metrics as text.
	std::string Text(const live::Follower &follower, MetricsFormat format) const;

private:
	// A child that writes a snapshot, and what the server copied while it ran.
	struct RunningChild {
		std::string role;
		uint64_t start_ns = 0, end_ns = 0, fork_ns = 0;
		uint64_t copies = 0; // of the server: before it, then while it ran
	};
	struct OfServer {
		std::array<uint64_t, analysis::kStallCauses> stalls = {};
		std::array<live::Durations, analysis::kStallCauses> stall_ns = {};
		std::array<uint64_t, analysis::kTimelineCauses> episodes = {};
		live::Durations iterations, forks, fsyncs;
		std::map<std::string, uint64_t> taken_ns;   // including "other"
		std::map<std::string, uint64_t> waiting_ns; // names without their own label yet
		std::map<uint32_t, RunningChild> children;  // by process
		std::map<uint32_t, uint64_t> fork_ns;	    // the latest forks, by their child
		std::vector<RunningChild> ended;	    // before their last second was accounted
		std::map<std::string, RunningChild> last;   // by role
		uint64_t episode_end_ns = 0;
	};
	OfServer &Of(uint32_t server);
	template <typename Say> void Each(const live::Follower &follower, Say say) const
	{
		for (size_t i = 0; i < servers_.size() && i < follower.servers().size(); i++)
			say(follower.servers()[i].name, servers_[i]);
	}
	void SayStalls(const live::Follower &follower, MetricsWriter *w) const;
	void SayServers(const live::Follower &follower, MetricsWriter *w) const;
	void TakeIteration(const live::Iteration &iteration);
	void TakeTaken(const live::Taken &taken);
	void TakeChild(const live::Follower &follower, const live::Child &child);
	void FinishChildren(const live::Follower &follower);
	void SayChildren(const live::Follower &follower, MetricsWriter *w) const;
	static uint64_t Copies(const live::Follower &follower, uint32_t server);

	std::vector<OfServer> servers_;					 // by Follower::servers()
	std::map<std::string, std::pair<uint64_t, uint64_t>> snapshots_; // made, failed
};

// Writes the text as DIR/forktail.prom, for node_exporter's textfile collector. The file is always complete.
// False: *error is one sentence.
bool WriteMetricsTextfile(const std::string &dir, const std::string &text, std::string *error);

} // namespace forktail::live::metrics
