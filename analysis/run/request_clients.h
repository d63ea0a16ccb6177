// SPDX-License-Identifier: MIT
// The clients that a kernel log names: one entry per TCP address or, on a Unix socket, per process.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "run.h"

namespace forktail::analysis
{

class RequestClients
{
public:
	// 1 + the index in Run::request_clients of a connection's client; 0: unknown, or there are too many.
	// `pid` is the process id in the run, `own_pid` on its host. `on_host`: follows a process in its
	// name.
	uint32_t Of(const ft_connection &c, uint32_t pid, uint32_t own_pid, const std::string &on_host,
		    Run *run);

private:
	std::unordered_map<std::string, uint32_t> by_name_;
};

} // namespace forktail::analysis
