// SPDX-License-Identifier: MIT
// What recorded servers are doing now: follows a ring of segments (forktail-record --keep), or one recording,
// as it grows, and says what happened since it was last asked. Metrics, triggers and the live view are made
// of it.
//
// It reads files and nothing else, so that a recorder never waits for it. Only what came since is read, and
// what is kept does not grow: of what is over there are sums, of the last seconds what turns are made of.
//
// Time is accounted for in slots of a twentieth of a second, two seconds after it passed: by then the
// recorder has written what it knows of it. A slot's time by cause sums to the slot (of a thread that was
// there for all of it) and is never changed afterwards: counters don't step back. What a thread is in the
// middle of, the recorder says once a second (FT_BLOCK_OPEN); the span that it becomes is counted for the
// slots that are still to come. Events (turns, stalls, forks ...) come as they are read, about a second after
// they ended.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/timeline/timeline.h"
#include "recording/format.h"

namespace forktail::live
{

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kSlotNs = 50'000'000;
constexpr uint64_t kLagNs = 2 * kSecondNs; // accounts are that much behind

constexpr uint32_t kNone = UINT32_MAX;

// How often, by cause; short ones that were only counted (tallies) included.
using CauseCounts = std::array<uint64_t, analysis::kTimelineCauses>;

// A target, by what it is called when it is started again: "redis-server:6379" where it listens on a TCP port
// (the lowest), "redis-server:/run/redis.sock", else "redis-server"; "(container web)" or "#2" behind it
// where another one is called that.
struct Server {
	std::string name;
	std::string comm;
	std::vector<std::string> listens; // "tcp:6379", "unix:/path"
	uint32_t pid = 0;		  // the process of now
	bool alive = false;
	uint64_t began_ns = 0, ended_ns = 0; // as far as it was seen
};

// Threads of a server that do the same one after the other ("redis-server", "bio_aof_fsync", "snapshot
// child", "mc-worker/2"): at any instant at most one thread has the name.
struct ThreadTotals {
	uint32_t server = 0; // index into Follower::servers()
	std::string name;
	uint32_t tid = 0; // the thread of now, or the last
	bool alive = false;
	bool child = false;    // of a process that the server forked
	bool main = false;     // the main thread of its process
	bool has_loop = false; // turns of an event loop were seen
	// All that was accounted so far, since this follower began: ns by cause, and their sum.
	analysis::CauseTimes by_cause = {};
	uint64_t accounted_ns = 0;
	CauseCounts counts = {};
};

// One thread's part of a whole second of the recording's clock.
struct ThreadSecond {
	uint32_t thread = 0; // index into Follower::threads()
	analysis::CauseTimes by_cause = {};
	CauseCounts counts = {};
};
struct Second {
	uint64_t start_ns = 0; // a multiple of kSecondNs
	std::vector<ThreadSecond> threads;
};

// Of one cause: time; and, where intervals are counted, how often, and the longest one that was told by
// itself (0: none was), with its name or its stack.
struct CausePart {
	analysis::Cause cause = analysis::Cause::Unknown;
	uint64_t ns = 0, count = 0;
	uint64_t longest_ns = 0;
	std::string detail = {};
};

// A turn of an event loop of at least the recorder's min_span_ns: what clients waited for.
struct Iteration {
	uint64_t start_ns = 0, duration_ns = 0;
	uint32_t server = 0, thread = 0;
	uint32_t reads = 0, writes = 0; // calls in it; both 0: not counted
	bool sampled = false;		// seen by CPU samples only: at least that long, maybe several
	// What it was made of, largest first; they sum to duration_ns. Of turns of Options::parts_of_turns_ns
	// and longer; else empty. ServerBusy is its own code.
	std::vector<CausePart> parts;
	// Of those: the name (file, lock holder's function ...) of the longest stall in it, "" if there is
	// none; its kernel stack in short; who had the CPU longest while it was ready to run.
	std::string detail, stack, holder;
};

// An interval of a cause that is a stall (IsStall), of at least min_span_ns. Of a wait the blocked and the
// runnable part are two.
struct Stall {
	uint64_t start_ns = 0, duration_ns = 0;
	uint64_t own_ns = 0; // without what lies in it and is told by itself
	uint32_t server = 0, thread = 0;
	analysis::Cause cause = analysis::Cause::Unknown;
	bool open = false; // it is not over yet: told again once a second, and when it ended
	// The thread is one that serves: it has an event loop, or is the main one, and no child's. A helper's
	// wait for work is no stall of the server's.
	bool serves = false;
	std::string detail;  // the file ..., "" if there is none
	std::string stack;   // "submit_bio_wait < blkdev_issue_flush", "" if there is none
	std::string syscall; // "read", "" if none
};

struct Fork {
	uint64_t start_ns = 0, duration_ns = 0;
	uint32_t server = 0, thread = 0;
	int64_t result = 0; // the child's pid, or a negative errno
};

struct Fsync {
	uint64_t start_ns = 0, duration_ns = 0;
	uint32_t server = 0, thread = 0;
	std::string file;
};

// A process that a server forked.
struct Child {
	uint32_t server = 0;
	uint32_t pid = 0;
	std::string role; // "snapshot child", "AOF rewrite child", "child"
	uint64_t start_ns = 0;
	uint64_t end_ns = 0; // 0: it is still there
};

// Who had a CPU that a server's thread was ready to run on.
struct Taken {
	uint64_t t_ns = 0, ns = 0;
	uint32_t server = 0, thread = 0;
	std::string comm;
};

struct Disk {
	uint64_t start_ns = 0, duration_ns = 0;
	uint32_t dev = 0; // Follower::DeviceName
	uint32_t bytes = 0;
	uint8_t write = 0; // as ft_io's
	std::string comm;
};

// Something said once. Kinds: "trigger" (name: who asked), "target-began", "target-ended", "recorder-began"
// and "recorder-ended" (of this follower: another recorder goes on in the ring, none does), and all that the
// recorder notes (docs/reference/recording-format.md).
struct Note {
	uint64_t t_ns = 0;
	std::string kind;
	std::string name;	 // of a trigger
	uint32_t server = kNone; // where it is about one
	std::string text;	 // the whole object as JSON; made visible
};

// The recorder's own cost, as it said last.
struct RecorderCost {
	bool known = false;
	uint64_t t_ns = 0; // when it was read
	uint64_t cpu_ns = 0, bpf_ns = 0, rss_bytes = 0;
};

// What came by one Poll().
struct Batch {
	std::vector<Second> seconds; // whole ones that are accounted for, in order
	std::vector<Iteration> turns;
	std::vector<Stall> stalls;
	std::vector<Fork> forks;
	std::vector<Fsync> fsyncs;
	std::vector<Child> children; // began or ended
	std::vector<Taken> taken;
	std::vector<Disk> disk;
	std::vector<ft_drop> drops;
	std::vector<Note> notes;
	bool more = false; // there is more to read: ask again at once
};

struct Options {
	// From where: 0 is from now, that is the newest segment (of one recording: its beginning). Else the
	// segments that reach to this instant and later ones.
	uint64_t from_ns = 0;
	uint64_t parts_of_turns_ns = 1'000'000;
	bool disk = true;	     // false: Batch::disk stays empty
	size_t read_bytes = 8 << 20; // of records, by one Poll() at most
	uint64_t now_ns = 0;	     // for tests: the time of Poll(), rather than the clock's; 0: the clock's
};

class Follower
{
public:
	// A ring's directory or a recording. Whether it is there is seen by Poll().
	Follower(const std::string &path, const Options &options);
	~Follower();
	Follower(const Follower &) = delete;
	Follower &operator=(const Follower &) = delete;

	// Reads what is new and empties *batch into what came. False: it can't be read (not there, not
	// allowed to, no recording), *error is one sentence; asking again may help. A ring that is empty is
	// no error.
	bool Poll(Batch *batch, std::string *error);

	// For tests: what the next Poll() takes for now.
	void SetNow(uint64_t now_ns);

	// Only grow; indices stay what they are. Names of servers and threads that are gone are given again
	// to those who are called the same.
	const std::vector<Server> &servers() const;
	const std::vector<ThreadTotals> &threads() const;

	// Accounts go to here; 0: nothing yet.
	uint64_t accounted_to_ns() const;
	// The latest instant that a record spoke of.
	uint64_t newest_ns() const;
	// Whether something came within the last three seconds.
	bool recording() const;
	uint64_t min_span_ns() const;
	RecorderCost cost() const;
	uint64_t dropped() const; // records, since this follower began
	uint64_t damaged() const; // blocks that were lost or damaged, likewise

	// What is on disk: the ring's span of time and its bytes (of one recording its own), and segments.
	struct Buffer {
		uint64_t oldest_ns = 0, newest_ns = 0, bytes = 0;
		uint32_t segments = 0;
	};
	Buffer buffer() const;

	// ns since 1970 by the recorder's readings of both clocks; 0 if there is none.
	uint64_t RealtimeNs(uint64_t t_ns) const;
	// And the other way.
	uint64_t MonotonicNs(uint64_t realtime_ns) const;
	std::string DeviceName(uint32_t dev) const; // "vda", else "254:0"

private:
	struct State;
	std::unique_ptr<State> state_;
};

// The buckets of histograms of durations, x 4 from 1 us to 4.2 s, upper bounds included; what is longer is in
// the last one only.
constexpr size_t kBuckets = 12;
constexpr uint64_t BucketNs(size_t i)
{
	return uint64_t{1000} << (2 * i);
}
struct Durations {
	std::array<uint64_t, kBuckets + 1> counts = {}; // each its own, not cumulated; [kBuckets] is +Inf
	uint64_t count = 0, sum_ns = 0;

	void Add(uint64_t ns);
};

} // namespace forktail::live
