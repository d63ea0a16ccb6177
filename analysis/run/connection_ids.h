// SPDX-License-Identifier: MIT
// Maps the ids of connections in a file to the run's connections. All segments of a ring that one recorder
// wrote share the ids of a kernel log, so they share one table: the same connection is not a second one in
// the next segment.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "run.h"

namespace forktail::analysis
{

constexpr uint32_t kNoConnection = UINT32_MAX;

class ConnectionIds
{
public:
	// The index in Run::connections, or kNoConnection. Ids are usually small and every request needs one:
	// a table is faster than a map.
	uint32_t Index(uint32_t id) const
	{
		if (id < table_.size())
			return table_[id];
		auto found = all_.find(id);
		return found == all_.end() ? kNoConnection : found->second;
	}
	// The same; the connection is added if it is new.
	uint32_t Make(uint32_t id, Run *run);
	// The index of the connection that was added first, or kNoConnection.
	uint32_t First() const { return first_; }

private:
	std::unordered_map<uint32_t, uint32_t> all_;
	std::vector<uint32_t> table_; // of `all_`, by id
	uint32_t first_ = kNoConnection;
};

} // namespace forktail::analysis
