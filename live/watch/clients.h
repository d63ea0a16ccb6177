// SPDX-License-Identifier: MIT
// The clients of a server for `forktail watch`: their requests in a second, and the slowest ones of a minute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "live/follow/live.h"

namespace forktail::live::watch
{

using OfClient = live::RequestSecond::OfClient;

// Requests that ended in one second. Counts and sums are multiplied by the sample.
struct RequestFigures {
	uint64_t count = 0, p50_ns = 0, p99_ns = 0, max_ns = 0;
	std::vector<OfClient> clients; // sorted by client
};

// Adds requests, each counted `sample` times. At most kMostClients clients remain, and one for others.
void AddClients(const std::vector<OfClient> &more, uint64_t sample, std::vector<OfClient> *to);

struct ClientFigures {
	std::string name;
	double per_second = 0;
	uint64_t count = 0, mean_ns = 0, max_ns = 0;
	double share = 0; // of the service time of all requests
};

// The `most` clients with the longest requests, the slowest first, and last the others together.
std::vector<ClientFigures> SlowestClients(std::vector<OfClient> all, double seconds, size_t most);

} // namespace forktail::live::watch
