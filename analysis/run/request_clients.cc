// SPDX-License-Identifier: MIT
// A client's ports are not part of its name: each connection has another.
#include "request_clients.h"

#include "common/format/address.h"
#include "common/format/sanitize.h"

namespace forktail::analysis
{

namespace
{

constexpr size_t kMostClients = 100'000; // addresses are chosen by clients: memory is bounded

} // namespace

uint32_t RequestClients::Of(const ft_connection &c, uint32_t pid, uint32_t own_pid,
			    const std::string &on_host, Run *run)
{
	RequestClient client;
	client.address = common::ClientAddress(c.client_address, c.client_flags & FT_CLIENT_HASHED);
	client.hashed = c.client_flags & FT_CLIENT_HASHED;
	client.name = client.address;
	if (client.address.empty()) {
		if (!own_pid)
			return 0;
		client.pid = pid;
		client.comm = common::VisibleName(c.client_comm);
		client.name = client.comm + " (" + std::to_string(own_pid) + ")" + on_host;
	}
	if (auto known = by_name_.find(client.name); known != by_name_.end())
		return known->second;
	if (run->request_clients.size() == kMostClients)
		return 0;
	run->request_clients.push_back(client);
	return by_name_[client.name] = static_cast<uint32_t>(run->request_clients.size());
}

} // namespace forktail::analysis
