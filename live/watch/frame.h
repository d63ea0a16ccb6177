// SPDX-License-Identifier: MIT
// All that one screen of `forktail watch` shows, picked from the history: which server, which second, the
// strip around it. layout.h makes lines of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "history.h"
#include "second_figures.h"

namespace forktail::live::watch
{

struct Frame {
	std::string path;
	std::string server; // "": none is known yet
	uint32_t pid = 0;
	bool alive = false;
	size_t server_index = 0, servers = 0;

	bool has_second = false;
	Figures second;
	uint64_t age_ns = 0; // of the second's end, when this was made
	bool frozen = false;

	// The longest turn of the minute that ends with the second; duration 0: none.
	WorstTurn worst;
	uint64_t worst_realtime_ns = 0; // of its second
	uint64_t worst_age_ns = 0;	// from that second to the one shown

	// Longest turn per second, oldest first; kNoTurn where nothing is known of it. The second shown is
	// strip[chosen]; its neighbours' times go by seconds.
	std::vector<uint64_t> strip;
	size_t chosen = 0;

	std::vector<Child> children; // that lived in the second
	Health health;
	History::Event event; // what the recorder noted last, if that is not long ago
	std::string message;  // of this program's own: what a key did
	std::string waiting;  // why there is nothing to show, one sentence; "" if there is
};

// What of the history is looked at.
struct Choice {
	size_t server = 0;
	bool frozen = false;
	uint64_t second_ns = 0; // where it is frozen
};

// `strip`: seconds in it.
Frame MakeFrame(const History &history, const Choice &choice, size_t strip);

} // namespace forktail::live::watch
