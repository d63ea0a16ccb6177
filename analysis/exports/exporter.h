// SPDX-License-Identifier: MIT
// An exporter writes a run in some format. It gets the run in pieces, so that memory is bounded for any
// length of run: slow requests while the run is explained, then the explanation, then what threads did and
// the request log, by stretches and windows.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/explain/explanation.h"

namespace forktail::analysis::exports
{

// An object with an error: error() is one sentence for the user.
class Failing
{
public:
	const std::string &error() const { return error_; }

protected:
	// For `return Fail(...)`.
	bool Fail(std::string why)
	{
		error_ = std::move(why);
		return false;
	}

private:
	std::string error_;
};

class Exporter : public Failing
{
public:
	// The calls that this exporter needs; other data is not read.
	struct Wants {
		bool blamed = false, stretches = false, windows = false;
	};

	virtual ~Exporter() = default;
	virtual Wants wants() const = 0;

	// Calls come in this order. The first one that returns false is the last: error() has the reason
	// ("cannot write requests.csv: No space left on device").
	//
	// A slow request with its parts, largest first. All of them, in the order of the log, however many
	// the explanation stores. The run is as it was opened, with its current window of requests.
	virtual bool Blamed(const Run &, const SlowRequest &, const Part *) { return true; }
	// The run is explained.
	virtual bool Begin(const Explanation &) { return true; }
	// explanation.run and .timelines have what threads did in [from_ns, to_ns), and what overlaps its
	// ends. Count a span, tally, sample or block request in the stretch in which it begins, or cut it at
	// the bounds. The stretches together are the whole run, in order.
	virtual bool Stretch(const Explanation &, uint64_t from_ns, uint64_t to_ns)
	{
		(void)from_ns;
		(void)to_ns;
		return true;
	}
	// The next requests of the log are [lead, size()) of explanation.run.requests.
	virtual bool Window(const Explanation &) { return true; }
	// After the last piece. True: the output is complete and on disk.
	virtual bool End(const Explanation &) = 0;
};

} // namespace forktail::analysis::exports
