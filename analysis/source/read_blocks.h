// SPDX-License-Identifier: MIT
// A recording's blocks, each taken over into the run. Ids are the file's own: what makes them the run's is
// kept with the file while it is read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/run/run.h"
#include "common/json/json_read.h"
#include "host_clocks.h"
#include "hosts.h"

namespace forktail::analysis
{

struct SegmentMerge;
struct Session;

struct CloseReader {
	void operator()(ft_reader *r) const { ft_reader_close(r); }
};

// A descriptor that keeps a file from going away, whoever unlinks it.
struct Hold {
	int fd = -1;
	Hold() = default;
	Hold(const Hold &) = delete;
	Hold &operator=(const Hold &) = delete;
	~Hold() { Let(); }
	void Let();
};

// A file being read: its reader, its manifest, and the tables that make its ids the run's.
struct OpenFile {
	std::unique_ptr<ft_reader, CloseReader> reader; // of a segment: opened when it is wanted (source.h)
	Hold hold;
	std::string path; // as it is, not for showing
	std::string name; // in messages: "load.forktail", "hosts/redis-a/server.forktail"
	RecordingFile about;
	common::Json manifest = common::Json::object();
	ClockMap clock; // from its times to the run's
	IdSpace space;
	bool segment = false;		    // of a ring
	bool written = false;		    // being written: that it has no end is no damage
	bool gone = false;		    // it was evicted while it was read
	std::shared_ptr<SegmentMerge> said; // what was said before: a ring's segments share theirs
	Session *session = nullptr;	    // in `said`

	uint32_t first_connection = 0, first_program = 0;
	std::vector<uint32_t> servers; // index into the manifest's "servers" -> into Run::servers
	std::vector<uint8_t> ops;      // op in the file -> index into Run::ops
	std::vector<uint8_t> behind;   // 1 + index into the manifest's "behind" -> 1 + index into Run::behind
	std::unordered_map<uint32_t, uint32_t> details, series, connections, stacks;
	std::vector<uint32_t> connection_table; // of `connections`, by id
	uint64_t malformed = 0;			// requests
	uint64_t lost = 0;    // blocks that were there when they were found, and are no more
	bool indexed = false; // where blocks lie was taken from the file's index
};

constexpr uint32_t kNoConnection = UINT32_MAX;

// The run's index of a connection of this file, or kNoConnection. Ids are small as a rule, and every request
// asks: a table answers faster than a map.
inline uint32_t ConnectionIndex(const OpenFile &f, uint32_t id)
{
	if (id < f.connection_table.size())
		return f.connection_table[id];
	auto found = f.connections.find(id);
	return found == f.connections.end() ? kNoConnection : found->second;
}
// The same; it is made up if the log uses it without having announced it.
uint32_t MakeConnectionIndex(OpenFile *f, Run *run, uint32_t id);

// Opens a file once more, for one more thread; null where that fails.
std::unique_ptr<ft_reader, CloseReader> OpenAgain(const OpenFile &f);

// Adds what a block says to the run, but of the request log (log_reader.h). Kinds of a newer writer are
// skipped.
void ReadBlock(OpenFile *f, Run *run, const ft_block &block);

// Makes ids of names in the run's records from these on, which are the file's, the run's; all names of the
// file have been read.
void TakeNames(OpenFile *f, size_t first_span, size_t first_cpu_sample, Run *run);

// The text of a block that holds JSON.
std::string PayloadText(const ft_block &block);

// What the server said about itself, as a note or an entry of run.json has it.
ServerReport ReportOf(const common::Json &j);

} // namespace forktail::analysis
