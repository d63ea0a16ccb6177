// SPDX-License-Identifier: MIT
// Seconds from before `forktail watch` was started: read from the ring when somebody scrolls back to them, a
// piece at a time so that keys are still answered, and then no more.
#pragma once

#include <cstdint>
#include <string>

#include "history.h"

namespace forktail::live::watch
{

class Backlog
{
public:
	// Seconds from from_ns up to to_ns, which is known already.
	Backlog(const std::string &path, uint64_t from_ns, uint64_t to_ns);

	// Reads on. True: that was all of it, or what there is can't be read.
	bool Step();
	// 0..1, by time.
	double done() const;
	const History &history() const { return history_; }

private:
	uint64_t from_ns_, to_ns_;
	live::Follower follower_;
	live::Batch batch_;
	History history_;
};

} // namespace forktail::live::watch
