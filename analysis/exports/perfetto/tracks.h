// SPDX-License-Identifier: MIT
// Slices on tracks. Slices of one Perfetto track must nest. Overlapping slices go to sibling tracks of the
// same name, which the UI shows as one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trace_file.h"

namespace forktail::analysis::exports
{

// Slices in the order of their start, each complete.
class Lanes
{
public:
	Lanes() = default;
	Lanes(std::string name, uint64_t parent) : name_(std::move(name)), parent_(parent) {}
	void Put(Slice slice, uint64_t end_ns, TraceFile *to)
	{
		auto lane = std::find_if(lanes_.begin(), lanes_.end(),
					 [&](const Lane &l) { return l.end_ns <= slice.start_ns; });
		if (lane == lanes_.end())
			lane = lanes_.insert(lane, {to->Track(name_, parent_), 0});
		lane->end_ns = std::max(end_ns, slice.start_ns);
		slice.track = lane->track;
		to->Begin(slice);
		to->End(lane->track, lane->end_ns);
	}

private:
	struct Lane {
		uint64_t track, end_ns;
	};
	std::string name_;
	uint64_t parent_ = 0;
	std::vector<Lane> lanes_ = {};
};

// Nesting slices in the order of their start, outer ones first: a thread's spans. Slices that do not nest go
// to `other`.
class Nest
{
public:
	Nest() = default;
	Nest(uint64_t track, const std::string &name) : track_(track), other_(name, track) {}
	void Put(Slice slice, uint64_t end_ns, TraceFile *to)
	{
		while (!ends_.empty() && ends_.back() <= slice.start_ns)
			Pop(to);
		if (!ends_.empty() && end_ns > ends_.back()) {
			other_.Put(std::move(slice), end_ns, to);
			return;
		}
		slice.track = track_;
		to->Begin(slice);
		ends_.push_back(end_ns);
	}
	void Finish(TraceFile *to)
	{
		while (!ends_.empty())
			Pop(to);
	}

private:
	void Pop(TraceFile *to)
	{
		to->End(track_, ends_.back());
		ends_.pop_back();
	}
	uint64_t track_ = 0;
	Lanes other_;
	std::vector<uint64_t> ends_ = {};
};

} // namespace forktail::analysis::exports
