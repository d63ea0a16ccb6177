// SPDX-License-Identifier: MIT
// The request log, read by windows, so that memory is bounded for a log of hours. Whatever needs all requests
// goes through all windows in order, as often as necessary.
#pragma once

#include <cstdint>

#include "run.h"

namespace forktail::analysis
{

class Log
{
public:
	virtual ~Log() = default;
	// The number of requests. In a damaged log some of them may be impossible and dropped.
	virtual uint64_t Count() const = 0;
	// Goes back to the beginning.
	virtual void Rewind() = 0;
	// Puts the next window into Run::requests. False: there is none.
	virtual bool Next() = 0;
	// The content of Run::requests was replaced by another log's window.
	virtual void Forget() {}
	// From the next window on, each one begins with up to this many requests of the window before
	// (Requests::lead).
	virtual void KeepLead(size_t) {}
};

// Calls see() with each window of the log in Run::requests. The last one stays there.
template <typename See> void ForWindows(Log *log, See see)
{
	for (log->Rewind(); log->Next();)
		see();
}

// The log of a run whose requests are all in memory.
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
