// SPDX-License-Identifier: MIT
// Seconds from before the start of `forktail watch`: read from the ring when the user scrolls back, in
// pieces, so that keys are still answered.
#pragma once

#include <cstdint>
#include <string>

#include "history.h"

namespace forktail::live::watch
{

class Backlog
{
public:
	// Reads the seconds from from_ns to to_ns; later ones are known already.
	Backlog(const std::string &path, uint64_t from_ns, uint64_t to_ns);

	// Reads the next piece. True: finished, or the ring cannot be read.
	bool Step();
	// Progress, 0 to 1.
	double done() const;
	const History &history() const { return history_; }

private:
	uint64_t from_ns_, to_ns_;
	live::Follower follower_;
	live::Batch batch_;
	History history_;
};

} // namespace forktail::live::watch
