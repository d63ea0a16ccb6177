// SPDX-License-Identifier: MIT
// What monitoring gets to know of recorded servers: counters and histograms, made of what a follower tells,
// as text that Prometheus and whoever speaks its formats read. docs/reference/watch-and-metrics.md has all of them.
//
// Labels are bounded: servers by what they listen on, threads by what they do, who took the CPU by ten names
// and "other". A counter that is there once goes on as long as this object does.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "live/follow/live.h"
#include "writer.h"

namespace forktail::live::metrics
{

class Metrics
{
public:
	// What a poll told.
	void Take(const live::Follower &follower, const live::Batch &batch);
	// A trigger had a snapshot made, or would have had if it could.
	void Snapshot(const std::string &trigger, bool made);
	// All there is to say.
	std::string Text(const live::Follower &follower, MetricsFormat format) const;

private:
	struct OfServer {
		std::array<uint64_t, analysis::kStallCauses> stalls = {};
		std::array<live::Durations, analysis::kStallCauses> stall_ns = {};
		std::array<uint64_t, analysis::kTimelineCauses> episodes = {};
		live::Durations turns, forks, fsyncs;
		std::map<std::string, uint64_t> taken_ns;   // "other" included
		std::map<std::string, uint64_t> waiting_ns; // names that have no place of their own yet
		std::map<uint32_t, uint64_t> children;	    // by process, since when
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
	void TakeTurn(const live::Iteration &turn);
	void TakeTaken(const live::Taken &taken);

	std::vector<OfServer> servers_;					 // by Follower::servers()
	std::map<std::string, std::pair<uint64_t, uint64_t>> snapshots_; // made, failed
};

// Writes the text as DIR/forktail.prom, for node_exporter's textfile collector: a file that is there is
// always whole. False: *error is one sentence.
bool WriteMetricsTextfile(const std::string &dir, const std::string &text, std::string *error);

} // namespace forktail::live::metrics
