// SPDX-License-Identifier: MIT
// What writes a run in some format is told of it in pieces, so that memory stays flat however long the run
// is: of slow requests while the run is being explained, then of the explanation, then of what threads did
// and of the request log, a stretch and a window at a time.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/explain/explanation.h"

namespace forktail::analysis::exports
{

// What can fail: error() is one sentence for the user.
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
	// Which calls are wanted; what nobody wants is not read.
	struct Wants {
		bool blamed = false, stretches = false, windows = false;
	};

	virtual ~Exporter() = default;
	virtual Wants wants() const = 0;

	// Calls come in this order. After one that is false there are no more: error() says why ("can't write
	// requests.csv: No space left on device").
	//
	// A slow request with its parts, largest first: each, however many the explanation keeps, in the
	// order of the log. Of the run that is known which was when it was opened, and its windows of
	// requests.
	virtual bool Blamed(const Run &, const SlowRequest &, const Part *) { return true; }
	// The run is explained.
	virtual bool Begin(const Explanation &) { return true; }
	// What threads did in [from_ns, to_ns) is in explanation.run and .timelines, with what reaches into
	// it from before and after: who counts a span, a tally, a sample or a block request, counts it where
	// it begins, or cuts it at the bounds. Stretches follow each other and together are all of the run.
	virtual bool Stretch(const Explanation &, uint64_t from_ns, uint64_t to_ns)
	{
		(void)from_ns;
		(void)to_ns;
		return true;
	}
	// The next requests of the log are [lead, size()) of explanation.run.requests.
	virtual bool Window(const Explanation &) { return true; }
	// All has been told: what was written is whole and on disk once this is true.
	virtual bool End(const Explanation &) = 0;
};

} // namespace forktail::analysis::exports
