// SPDX-License-Identifier: MIT
// The data of one screen of `forktail watch`: the server, the second and the strip around it. layout.h
// converts it to lines.
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
	std::string server; // "": none yet
	uint32_t pid = 0;
	bool alive = false;
	size_t server_index = 0, servers = 0;

	bool has_second = false;
	Figures second;
	uint64_t age_ns = 0; // from the end of the second to the creation of the frame
	bool frozen = false;

	// The longest iteration of the minute that ends with the second; duration 0: none.
	WorstIteration worst;
	uint64_t worst_realtime_ns = 0; // of its second
	uint64_t worst_age_ns = 0;	// from that second to the one shown

	// Longest iteration per second, oldest first; kNoIteration without data. strip[chosen] is the shown
	// second.
	std::vector<uint64_t> strip;
	size_t chosen = 0;

	std::vector<Child> children;	    // that ran in the second
	std::vector<ClientFigures> clients; // the slowest of that minute, if Choice::clients
	bool show_clients = false;
	Health health;
	History::Event event; // the latest recent note of the recorder
	std::string message;  // of this program: the result of a key
	std::string waiting;  // why there is no data, one sentence; else ""
};

// The selected server and second.
struct Choice {
	size_t server = 0;
	bool frozen = false;
	uint64_t second_ns = 0; // the frozen second
	bool clients = false;	// the slowest clients, too
};

// `strip`: its number of seconds.
Frame MakeFrame(const History &history, const Choice &choice, size_t strip);

} // namespace forktail::live::watch
