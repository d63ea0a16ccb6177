// SPDX-License-Identifier: MIT
// Copies a recording's blocks to the run. Ids are the file's own; the tables that map them to the run's are
// stored with the file while it is read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/run/connection_ids.h"
#include "analysis/run/hosts.h"
#include "analysis/run/request_clients.h"
#include "analysis/run/run.h"
#include "common/json/json_read.h"
#include "host_clocks.h"

namespace forktail::analysis
{

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

} // namespace forktail::analysis
