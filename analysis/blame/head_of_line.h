// SPDX-License-Identifier: MIT
// What requests that waited for their connection waited for: at each instant what the oldest one on it that
// had no answer did.
//
// Requests of one connection that follow each other waited for the same ones, up to 200 of them, but for a
// few. So what each of those did while it was the oldest is added up once and kept, by connection, and from
// one request to the next only the difference is added and taken away. Sums are whole nanoseconds: they are
// what a walk over all of them would be.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "hop_shares.h"

namespace forktail::analysis
{

// How many intervals in which another one was the oldest on a connection are looked at.
constexpr int kHolders = 200;

// Sums of what numbered intervals were spent on, over a range of them that moves on.
class SlidingSums
{
public:
	void Restart(uint64_t begin);
	uint64_t end() const { return end_; }
	// Makes the sums those of [begin, end). add(number, *spent) adds one interval and returns how much of
	// it was idleness.
	template <typename Add> void MoveTo(uint64_t begin, uint64_t end, Spent *scratch, Add add);
	// Adds two of them to *s, its hops in the order of who comes by all intervals from the last one back,
	// those of `a` before those of `b` of the same number. Returns the idleness.
	static uint64_t AddBoth(const SlidingSums &a, const SlidingSums &b, Spent *s);

private:
	struct Part {
		uint32_t ns;
		uint16_t sum; // index into sums_
		uint8_t cause;
		bool idle; // of all hops: neither of the two
	};
	struct HopSum {
		uint16_t hop;
		uint16_t place;	   // among those that its last interval came by
		uint64_t last = 0; // number of that one
		CauseTimes direct = {};
	};
	void TakeAway();
	void Keep(const Spent &spent, uint64_t idle_ns);
	void KeepPart(uint64_t ns, Part part);

	uint64_t begin_ = 0, end_ = 0, idle_ns_ = 0;
	std::vector<HopSum> sums_;
	std::deque<uint32_t> counts_; // of each interval: how many of the parts
	std::deque<Part> parts_;
};

class Held
{
public:
	// Adds [from, to), in which request i waited for its connection, and returns how much of it was
	// idleness of all hops. It is quick for requests that come in their order.
	uint64_t Add(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, Spent *s);

private:
	// A request, and when it was the oldest without an answer.
	struct Holder {
		uint64_t from_ns, to_ns;
		uint32_t request;
	};
	// Holders of one connection are numbered in their order; their times do not overlap.
	struct Line {
		std::deque<Holder> holders;
		uint64_t first = 0;	    // number of the first one there
		bool whole = false;	    // nobody held the connection before that one
		bool disordered = false;    // answers out of order: there is nothing to keep
		uint32_t last = kNoRequest; // the last request that was taken in
		SlidingSums held;	    // of holders
		// Of the times before holders in which the connection was free, by the way of who waited.
		std::vector<std::pair<const Through *, SlidingSums>> free;

		const Holder &At(uint64_t number) const { return holders[number - first]; }
		void Restart();
	};
	// The holders that count for a wait: [low, high), by number.
	struct Count {
		uint64_t low, high;
		bool known; // they all are in the line
	};

	static void Append(const Context &context, uint32_t request, Line *line);
	void TakeIn(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, Line *line);
	static Count CountOf(const Line &line, uint64_t from_ns, uint64_t to_ns);
	SlidingSums *FreeOf(const Through *way, Line *line);

	std::vector<Line> lines_; // by connection
	std::vector<uint32_t> chain_;
	SlidingSums other_;
	Spent own_;
};

// The same, walking over all of them.
uint64_t AddHeldWalking(const Context &context, size_t i, uint64_t from_ns, uint64_t to_ns, Spent *s);

} // namespace forktail::analysis
