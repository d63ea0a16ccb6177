// SPDX-License-Identifier: MIT
// The request log, gone through a window at a time: of hours of it no more is in memory than fits. What
// wants to see all requests goes through all windows, in order, as often as it needs to.
#pragma once

#include <cstdint>

#include "run.h"

namespace forktail::analysis
{

class Log
{
public:
	virtual ~Log() = default;
	// How many requests there are; some of a damaged log may turn out to make no sense.
	virtual uint64_t Count() const = 0;
	// Goes back to the beginning.
	virtual void Rewind() = 0;
	// Puts the next window into Run::requests. False: there is none.
	virtual bool Next() = 0;
	// What is in Run::requests has been replaced by somebody else's.
	virtual void Forget() {}
	// From the next window on, each has so many requests of the window before in front (Requests::lead),
	// if there were as many.
	virtual void KeepLead(size_t) {}
};

// Calls see() with each window of the log in Run::requests, which the last one stays in.
template <typename See> void ForWindows(Log *log, See see)
{
	for (log->Rewind(); log->Next();)
		see();
}

// Of a run whose requests are all in memory.
class WholeLog : public Log
{
public:
	explicit WholeLog(const Run &run) : run_(run) {}
	uint64_t Count() const override { return run_.requests.size(); }
	void Rewind() override { given_ = false; }
	bool Next() override { return !std::exchange(given_, true) && run_.requests.size() > 0; }

private:
	const Run &run_;
	bool given_ = false;
};

} // namespace forktail::analysis
