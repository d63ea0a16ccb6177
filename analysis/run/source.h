// SPDX-License-Identifier: MIT
// A run on disk. What there is little of is read when it is opened: threads, names, connections, notes,
// metrics. What there is much of (requests; spans and the like) is read when it is asked for, by blocks, of
// which is known where they lie and which time they cover.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "log_reader.h"
#include "read_blocks.h"
#include "run.h"

namespace forktail
{

class RunSource
{
public:
	// Reads what there is little of into *run. False: *error is one sentence for the user.
	bool Open(const std::string &path, Run *run, std::string *error);
	// Reads the server's side, all of it, and puts it in order (IndexRun).
	void LoadServers(Run *run);
	// The request log, in windows of about so many requests. It goes with the source.
	std::unique_ptr<LogReader> OpenLog(size_t window, Run *run);
	// Says in *run's warnings what was found out about the files; once, after the log was gone through.
	void Finish(Run *run);

private:
	struct ServerBlock {
		OpenFile *file;
		ft_place place;
	};
	bool OpenFiles(const std::vector<std::string> &paths, Run *run, std::string *error);
	bool ReadFile(OpenFile *f, Run *run, std::string *error);

	std::vector<std::unique_ptr<OpenFile>> files_;
	std::vector<ServerBlock> servers_;
	std::vector<LogBlock> log_;
	size_t warnings_at_ = 0; // where those of the files belong
};

} // namespace forktail
