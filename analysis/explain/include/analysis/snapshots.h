// SPDX-License-Identifier: MIT
// A snapshot as one thing: the fork, the pages that were copied until its child ended, the requests that it
// slowed, and how much memory it left. BGSAVE, an AOF rewrite and a replica's full synchronization are
// snapshots.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/blame.h"
#include "analysis/run.h"
#include "analysis/source.h"

namespace forktail::analysis
{

struct Snapshot {
	std::string command;   // "BGSAVE", "BGREWRITEAOF", "a replica's full synchronization"
	uint32_t thread = 0;   // the child's main thread, an index into Run::threads
	uint32_t server = 0;   // process id of the server
	uint64_t start_ns = 0; // of the fork; of the child if the fork was too short to be recorded
	uint64_t end_ns = 0;   // of the child, or of the recording
	bool ended = false;    // the child ended in the recording
	uint64_t fork_ns = 0;  // 0: not recorded
	// With --since and --until, or of a ring: how long of it is explained, and whether that begins early
	// enough that a fork without a record was short.
	uint64_t explained_ns = 0;
	bool fork_explained = true;
	uint64_t copies = 0;	    // pages that the server's writes copied
	uint64_t child_copies = 0;  // pages that the child's own writes copied
	uint64_t copy_ns = 0;	    // what the server's copies took
	uint64_t written_bytes = 0; // by the child, to files
	// Resident memory of the server before the fork and at its most until the child ended, the least that
	// the host had available meanwhile, and the least that was left in a cgroup with a limit. Nothing:
	// not recorded.
	std::optional<uint64_t> rss_bytes, most_rss_bytes, available_bytes, cgroup_left_bytes;
	// Requests of the server due from the fork to the child's end. Without a request log all 0.
	uint64_t requests = 0;
	uint64_t slowed = 0; // slow ones of which the fork or copies took a part
	// Requests that change data; nothing if not all requests are in the log, or some are scripts.
	std::optional<uint64_t> writes;
	Latencies during; // of answered ones: p99, p99.9 and max, with an error below 1 %
	// Bytes that were copied since the fork, at instants up to the child's end.
	std::vector<std::pair<uint64_t, uint64_t>> curve;

	bool whole() const { return explained_ns >= end_ns - start_ns; }
	uint64_t copied_bytes() const { return copies * kPageBytes; }
	// The most that parent and child occupied together: pages that both share count once. Not in it: the
	// child's buffers and page tables. Nothing if a part is not explained: its copies are unknown.
	std::optional<uint64_t> peak_bytes() const
	{
		if (!most_rss_bytes || !whole())
			return {};
		return *most_rss_bytes + (copies + child_copies) * kPageBytes;
	}
	// Copied pages per request that changes data.
	std::optional<double> pages_per_write() const
	{
		if (!writes.value_or(0))
			return {};
		return static_cast<double>(copies) / static_cast<double>(*writes);
	}
};

struct Snapshots {
	std::vector<Snapshot> all;  // by start
	Latencies outside;	    // of requests due outside all of them: p99, p99.9 and max
	uint64_t outside_count = 0; // due outside; 0 if none of them was answered
};

// Further snapshots are not found, so that memory is bounded.
inline constexpr size_t kMostSnapshots = 1000;

// Adds up what belongs to each snapshot while passes go over the run.
class SnapshotFinder
{
public:
	// The run's threads, series and extent must be known: snapshots outside its extent are left out.
	explicit SnapshotFinder(const Run &run);
	bool empty() const { return all_.empty(); }
	// Adds what began in [from_ns, to_ns), which must be loaded.
	void Add(const Run &run, uint64_t from_ns, uint64_t to_ns);
	// Counts the requests of the log. `processes`: per Run::servers the server's process id; 0: unknown.
	void Count(const Run &run, Log *log, const std::vector<uint32_t> &processes);
	// A slow request with its parts.
	void AddSlow(const Run &run, const SlowRequest &r, const Part *parts,
		     const std::vector<uint32_t> &processes);
	Snapshots Result(const Run &run);

private:
	// The last snapshot of a process that overlaps these times, as an index into all_; -1: none. process
	// 0: of any.
	int Find(uint64_t from_ns, uint64_t to_ns, uint32_t process) const;

	std::vector<Snapshot> all_;
	struct CurveStep {
		uint64_t first_ns, pages;
	};
	std::vector<std::map<uint64_t, CurveStep>> copied_; // per snapshot, by the step's number
	Latencies outside_;
	uint64_t outside_count_ = 0;
};

// Adds the series target.snapshot_copied, the bytes that each snapshot copied so far, to the run's series.
void AddCopiedSeries(const Snapshots &snapshots, Run *run);

// "BGSAVE at +7.50 s: fork 21.4 ms; copied 205 MB (18 % of resident memory) in 7.10 s, 1.4 pages per write;
// slowed 217 requests, p99.9 during it 9.20 ms and 1.10 ms outside; parent and child together at most 1.33
// GB; 9.80 GB of memory, 2.10 GB of the cgroup were left; wrote 412 MB".
std::string SnapshotText(const Run &run, const Snapshots &snapshots, const Snapshot &one, uint64_t zero_ns);

} // namespace forktail::analysis
