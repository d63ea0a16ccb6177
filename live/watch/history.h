// SPDX-License-Identifier: MIT
// Figures of every server for the last ten minutes, per second, from live/follow. Older seconds are dropped,
// so memory is bounded.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "common/statistics/histogram.h"
#include "live/follow/live.h"
#include "second_figures.h"

namespace forktail::live::watch
{

constexpr uint64_t kHistorySeconds = 600;
constexpr size_t kMostServers = 64;	       // further servers are ignored
constexpr size_t kMostChildren = 64;	       // per server
constexpr size_t kMostClientEntries = 600'000; // of all seconds: clients of the oldest ones are dropped
constexpr size_t kMostDurations = 200'000;     // of a second's iterations, for its percentiles

struct ServerHistory {
	std::string name;
	uint32_t pid = 0;
	bool alive = false;
	std::map<uint64_t, Figures> seconds; // by start_ns
	std::deque<Child> children;	     // by start
};

// State of the recorder and the ring.
struct Health {
	bool recording = false; // data arrived within the last seconds
	uint64_t quiet_ns = 0;	// time without data
	bool cost_known = false;
	double cpu = 0, bpf = 0; // share of one CPU since the previous reading
	uint64_t rss_bytes = 0;
	uint64_t dropped = 0, damaged = 0;
	uint64_t span_ns = 0, bytes = 0; // on disk
	uint32_t segments = 0;
	uint32_t request_sample = 0; // of one in this many connections; 0: no requests are recorded
};

class History
{
public:
	// A note of the recorder, or a mark.
	struct Event {
		uint64_t t_ns = 0, realtime_ns = 0;
		std::string text = {};
	};

	// `seconds`: how many seconds are retained.
	explicit History(uint64_t seconds = kHistorySeconds) : seconds_(seconds) {}

	// Adds the result of a Poll().
	void Take(const live::Batch &batch, const live::Follower &follower);
	// Reads the marks of the ring or recording (analysis/source/include/analysis/source.h), if there are others than
	// before.
	void TakeMarks(const std::string &path, const live::Follower &follower);
	// Adds the seconds of `older` before the first one here.
	void PutBefore(const History &older);

	const std::vector<ServerHistory> &servers() const { return servers_; }
	// Accounted seconds; 0: none.
	uint64_t first_ns() const;
	uint64_t last_ns() const;
	const Figures *Second(size_t server, uint64_t start_ns) const;
	// The second with the longest iteration among the `seconds` up to last_ns; nullptr: none.
	const Figures *Worst(size_t server, uint64_t last_ns, uint64_t seconds) const;
	// Clients in the `seconds` up to last_ns. *complete is the number of those with complete figures, in
	// which requests were recorded.
	std::vector<OfClient> Clients(size_t server, uint64_t last_ns, uint64_t seconds,
				      size_t *complete) const;
	// The last note or mark of the minute before the end of that second, or (`latest`) also after it;
	// without text without one.
	Event EventAt(uint64_t second_ns, bool latest) const;

	Health health; // as of the last Take(); the caller may change it

private:
	size_t ServerOf(uint32_t live_index, const live::Follower &follower);
	Figures *At(uint32_t live_index, uint64_t t_ns, const live::Follower &follower);
	void TakeIterations(const live::Batch &batch, const live::Follower &follower);
	void TakeRequests(const live::Batch &batch, const live::Follower &follower);
	void TakeStalls(const live::Batch &batch, const live::Follower &follower);
	void TakeEvents(const live::Batch &batch, const live::Follower &follower);
	void TakeChildren(const live::Batch &batch, const live::Follower &follower);
	void TakeSeconds(const live::Batch &batch, const live::Follower &follower);
	void TakeNotes(const live::Batch &batch, const live::Follower &follower);
	void TakeHealth(const live::Batch &batch, const live::Follower &follower);
	void Forget();
	void ForgetClients();

	uint64_t seconds_;
	std::vector<ServerHistory> servers_;
	std::map<std::pair<size_t, uint64_t>, std::vector<uint64_t>> durations_; // server, second
	std::map<std::pair<size_t, uint64_t>, common::Histogram> service_times_; // likewise
	std::map<uint64_t, uint64_t> dropped_;					 // by second
	std::deque<Event> events_;
	std::vector<Event> marks_;		       // by time
	std::string marks_text_;		       // the file's, as of the last TakeMarks()
	std::deque<std::pair<uint64_t, bool>> slices_; // from when on requests are recorded, or not
	bool RequestsRecorded(uint64_t second_ns) const;
	uint64_t last_ns_ = 0, first_ns_ = 0;
	live::RecorderCost cost_before_;
};

} // namespace forktail::live::watch
