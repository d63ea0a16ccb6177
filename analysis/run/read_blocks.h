// SPDX-License-Identifier: MIT
// Spans that were still open. A span is written at its end, so a span that has not ended when the reading
// ends would be missing. A recorder that keeps a ring therefore writes once a second which spans are open.
// The last such record of a thread counts, unless the thread has a later record.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/run.h"
#include "common/json.h"
#include "host_clocks.h"

namespace forktail::analysis
{

class OpenSpans
{
public:
	// Adds an open span, as long as it was at that scan. In the order of scans; ids are the run's.
	void Add(const ft_span &span);
	// Adds a span that ended: of any thread, in any order.
	void Note(const ft_span &span);
	void Note(const ft_tally &tally);
	// The open spans without a known end.
	std::vector<ft_span> StillOpen() const;
	bool empty() const { return by_tid_.empty(); }

private:
	struct Open {
		ft_span span;
		bool ended;
	};
	struct OfThread {
		uint64_t seen_ns = 0; // the last scan
		std::vector<Open> open;
	};
	std::unordered_map<uint32_t, OfThread> by_tid_;
};

// Merges what every segment of a ring repeats: threads, names, series, quotas, the recorder's cost. The
// segments together are one recording, in which each of these occurs once. Any other recording has no earlier
// segment.

// One process of a recorder: it may have stopped and resumed in its ring. Its data begins with the first
// segment that still exists.
struct Session {
	uint64_t began_ns = 0; // when the recorder started; its first segments may have been evicted
	uint64_t first_ns = 0; // of the first segment that was read
	uint64_t last_ns = 0;  // of its last record
	OpenSpans open;
	ConnectionIds connections;
	uint32_t load = UINT32_MAX; // of its kernel log: index into Run::loads
	// After the recorder reduced its sample, by index into Run::connections: whether it no longer
	// followed this one. All requests of such connections are left out, so that the whole log has one
	// sample.
	bool reduced = false;
	std::vector<uint8_t> unsampled;

	bool LeavesOut(uint32_t connection) const
	{
		return reduced && connection < unsampled.size() && unsampled[connection];
	}

	bool cut() const { return began_ns && began_ns < first_ns; }
};

struct OpenFile;

struct SegmentMerge {
	// By text: the index in the run's list.
	std::unordered_map<std::string, uint32_t> details, stacks, series;
	std::map<std::pair<uint32_t, uint64_t>, size_t> threads; // (tid, start) -> index into Run::threads
	std::map<uint32_t, ft_loop> loops;			 // by tid, the last
	std::unordered_map<std::string, std::string> states;	 // notes that state a fact: subject -> fact
	std::unordered_set<std::string> notes;
	std::vector<std::string> programs;
	uint32_t first_program = 0;
	std::map<uint64_t, Session> sessions; // by began_ns
	size_t file = SIZE_MAX;		      // index into Run::files of the entry for all of them
	// The total damage, the number of damaged files, and the first one's name.
	ft_damage damage = {};
	size_t damaged = 0;
	std::string damaged_name;
	bool left_out = false;	     // its clock cannot be compared with the run's
	uint64_t lost = 0, gone = 0; // unreadable blocks; segments that were evicted while they were read

	// Adds the cost from a file: since it was begun, up to then. *sum: the total.
	void AddCost(const OpenFile *of, const Cost &cost, Cost *sum);

private:
	const OpenFile *cost_of_ = nullptr; // the file of `cost_`
	Cost costs_, cost_;		    // the total of files before it
};

// Maps records of another host's clock to the reference clock. The times within a span are scaled like the
// span, so that sums stay equal.

// Scales a part of something that was `was_ns` long and is now `is_ns` long.
inline uint64_t InMeasure(uint64_t part_ns, uint64_t was_ns, uint64_t is_ns)
{
	if (was_ns == is_ns || was_ns == 0)
		return part_ns;
	double moved = static_cast<double>(part_ns) *
		       (static_cast<double>(is_ns) - static_cast<double>(was_ns)) /
		       static_cast<double>(was_ns);
	double whole = static_cast<double>(part_ns) + moved;
	return std::min(is_ns, static_cast<uint64_t>(std::max(whole, 0.0)));
}

inline void MapTime(const ClockMap &map, uint64_t *t_ns)
{
	*t_ns = map.Map(*t_ns);
}

template <typename T> void MapLasting(const ClockMap &map, T *record)
{
	uint64_t end_ns = map.Map(record->start_ns + record->duration_ns);
	record->start_ns = map.Map(record->start_ns);
	record->duration_ns = end_ns - std::min(end_ns, record->start_ns);
}

inline void MapTimes(const ClockMap &map, ft_span *s)
{
	uint64_t was_ns = s->duration_ns;
	MapLasting(map, s);
	s->blocked_ns = InMeasure(s->blocked_ns, was_ns, s->duration_ns);
	if (s->off_cpu)
		s->runnable_ns = s->duration_ns - s->blocked_ns;
	else
		s->runnable_ns = InMeasure(s->runnable_ns, was_ns, s->duration_ns);
	s->on_cpu_ns = InMeasure(s->on_cpu_ns, was_ns, s->duration_ns);
}

inline void MapTimes(const ClockMap &map, ft_tally *t)
{
	uint64_t was_ns = t->end_ns - t->start_ns;
	MapTime(map, &t->start_ns);
	MapTime(map, &t->end_ns);
	t->total_ns = InMeasure(t->total_ns, was_ns, t->end_ns - t->start_ns);
	t->max_ns = std::min(t->max_ns, t->total_ns);
}

inline void MapTimes(const ClockMap &map, ft_io *io)
{
	MapLasting(map, io);
}

template <typename T>
requires requires(T r)
{
	r.start_ns + r.end_ns;
}
void MapTimes(const ClockMap &map, T *record)
{
	MapTime(map, &record->start_ns);
	MapTime(map, &record->end_ns);
}

template <typename T>
requires requires(T r)
{
	r.t_ns;
}
void MapTimes(const ClockMap &map, T *record)
{
	MapTime(map, &record->t_ns);
}

inline void MapTimes(const ClockMap &map, ft_socket *s)
{
	MapTime(map, &s->before_ns);
	MapTime(map, &s->seen_ns);
}

inline void MapTimes(const ClockMap &map, ft_tcp_state *s)
{
	MapTime(map, &s->before_ns);
	MapTime(map, &s->t_ns);
}

inline void MapTimes(const ClockMap &map, ft_load_tcp *t)
{
	MapTime(map, &t->before_ns);
	MapTime(map, &t->t_ns);
}

inline void MapTimes(const ClockMap &map, ft_connection *c)
{
	MapTime(map, &c->opened_ns);
	MapTime(map, &c->closed_ns);
	MapTime(map, &c->reader_ns);
}

// The wall clock of another host is a different clock, so its readings are not used (read_blocks.cc).
inline void MapTimes(const ClockMap &, ft_clock *) {}

// Copies a recording's blocks to the run. Ids are the file's own; the tables that map them to the run's are
// stored with the file while it is read.

struct SegmentMerge;
struct Session;

struct CloseReader {
	void operator()(ft_reader *r) const { ft_reader_close(r); }
};

// A descriptor that keeps a file readable after it is unlinked.
struct Hold {
	int fd = -1;
	Hold() = default;
	Hold(const Hold &) = delete;
	Hold &operator=(const Hold &) = delete;
	~Hold() { Close(); }
	void Close();
};

// A file being read: its reader, its manifest, and the tables that map its ids to the run's.
struct OpenFile {
	std::unique_ptr<ft_reader, CloseReader> reader; // a segment's is opened on demand (source.h)
	Hold hold;
	std::string path; // the real path, not sanitized
	std::string name; // in messages: "load.forktail", "hosts/redis-a/server.forktail"
	RecordingFile about;
	common::Json manifest = common::Json::object();
	ClockMap clock; // maps its times to the run's
	IdSpace space;
	bool segment = false;		      // it is a ring segment
	bool written = false;		      // being written: a missing end is no damage
	bool gone = false;		      // it was evicted while it was read
	std::shared_ptr<SegmentMerge> merge;  // what was read before: a ring's segments share it
	Session *session = nullptr;	      // in `merge`
	ConnectionIds *connections = nullptr; // in `session`
	RequestClients *clients = nullptr;    // of the whole run
	bool joined = false;		      // it is a kernel log, used only to complete a load generator's
	Run *of_log = nullptr;		      // has its requests, connections and servers

	uint32_t first_program = 0;
	std::vector<uint32_t> servers; // index into the manifest's "servers" -> into Run::servers
	std::vector<uint8_t> ops;      // op in the file -> index into Run::ops
	std::vector<uint8_t> behind;   // 1 + index into the manifest's "behind" -> 1 + index into Run::behind
	std::unordered_map<uint32_t, uint32_t> details, series, stacks;
	uint64_t malformed = 0; // requests
	uint64_t lost = 0;	// blocks that were found but can no longer be read
	bool indexed = false;	// the places of blocks came from the file's index
};

// Opens a file again, for another thread; null on failure.
std::unique_ptr<ft_reader, CloseReader> OpenAgain(const OpenFile &f);

// Adds a block's content to the run, except requests (log_reader.h). Unknown kinds are skipped.
void ReadBlock(OpenFile *f, Run *run, const ft_block &block);

// Maps the file's name ids in the run's records from these indexes on. All names of the file must have been
// read.
void TakeNames(OpenFile *f, size_t first_span, size_t first_cpu_sample, Run *run);

// Adds the servers of a manifest, or of a note that repeats its list with further ones at the end.
void UseServers(const common::Json &list, OpenFile *f, Run *run);

// Whether it has requests that the server's kernel saw.
bool IsKernelLog(const OpenFile &f);

// The text of a block that holds JSON.
common::Raw PayloadText(const ft_block &block);

// What the server reported about itself, in a note or an entry of run.json.
ServerReport ReportOf(const common::Json &j);

// The first block of a recording: the program, its settings, and the host.

// Reads what describes the file.
void ReadManifest(OpenFile *f, const common::Raw &text);
// The sample of a kernel log: requests are of one in this many connections.
uint32_t SampleOf(const common::Json &j);
// Adds what is not in the recording, unless it was added before.
void AddMissing(const common::Json &j, Run *run);
// Copies what describes the run as a whole. The file is the next one of the run. Its `of_log` gets what
// describes its requests.
void UseManifest(OpenFile *f, Run *run);

} // namespace forktail::analysis
