// SPDX-License-Identifier: MIT
// Head-of-line blocking: what requests that waited for their connection waited for. At each instant it is
// what the oldest unanswered request on the connection waited for.
//
// Successive requests of one connection waited for mostly the same requests, up to 200 of them. So the time
// of each of those while it was the oldest is computed once and stored, by connection. From one request to
// the next only the difference is added and subtracted. The sums are whole nanoseconds, equal to those of a
// walk over all of them.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "hop_shares.h"

namespace forktail::analysis
{

// The maximum number of intervals, each with another oldest request of a connection, that are examined.
constexpr int kHolders = 200;

// Sums of the times of numbered intervals, over a sliding range of them.
class SlidingSums
{
public:
	void Restart(uint64_t begin);
	uint64_t end() const { return end_; }
	// Moves the range to [begin, end). add(number, *times) adds one interval and returns its idle time.
	template <typename Add> void MoveTo(uint64_t begin, uint64_t end, HopTimes *scratch, Add add);
	// Adds two sums to *s. Its hops are in the order of a walk over all intervals from the last one back;
	// for equal numbers those of `a` come first. Returns the idle time.
	static uint64_t AddBoth(const SlidingSums &a, const SlidingSums &b, HopTimes *s);

private:
	struct Part {
		uint32_t ns;
		uint16_t sum; // index into sums_
		uint8_t cause;
		bool idle; // idle at all hops
	};
	struct HopSum {
		uint16_t hop;
		uint16_t place;	   // its position among the hops of its last interval
		uint64_t last = 0; // number of that interval
		CauseTimes direct = {};
	};
	void TakeAway();
	void Keep(const HopTimes &times, uint64_t idle_ns);
	void KeepPart(uint64_t ns, Part part);

	uint64_t begin_ = 0, end_ = 0, idle_ns_ = 0;
	std::vector<HopSum> sums_;
	std::deque<uint32_t> counts_; // number of parts of each interval
	std::deque<Part> parts_;
};

class HeadOfLine
{
public:
	// Adds [from, to), in which request i waited for its connection, and returns the part in which all
	// hops were idle. It is fast for requests in the order of the log.
	uint64_t Add(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, HopTimes *s);

private:
	// A request, and the time in which it was the oldest unanswered one.
	struct Holder {
		uint64_t from_ns, to_ns;
		uint32_t request;
	};
	// Holders of one connection are numbered in their order; their times do not overlap.
	struct Line {
		std::deque<Holder> holders;
		uint64_t first = 0;	    // number of holders.front()
		bool whole = false;	    // no request blocked the connection before that one
		bool disordered = false;    // answers were out of order: nothing is stored
		uint32_t last = kNoRequest; // the last request that was added
		SlidingSums holder_sums;    // sums over holders
		// Times before holders in which the connection was free, by the path of the waiting request.
		std::vector<std::pair<const ProxyPath *, SlidingSums>> free;

		const Holder &At(uint64_t number) const { return holders[number - first]; }
		void Restart();
	};
	// The holders that count for a wait: [low, high), by number.
	struct Count {
		uint64_t low, high;
		bool known; // the line has all of them
	};

	static void Append(const Context &context, uint32_t request, Line *line);
	void TakeIn(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, Line *line);
	static Count CountOf(const Line &line, uint64_t from_ns, uint64_t to_ns);
	SlidingSums *FreeOf(const ProxyPath *way, Line *line);

	std::vector<Line> lines_; // by connection
	std::vector<uint32_t> chain_;
	SlidingSums other_;
	HopTimes own_;
};

// The same by a walk over all of them.
uint64_t WalkHeadOfLine(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, HopTimes *s);

} // namespace forktail::analysis
