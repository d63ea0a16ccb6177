// SPDX-License-Identifier: MIT
// A client's ports are not part of its name: each connection has another.
#include "request_clients.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdio>
#include <cstring>

#include "common/format/sanitize.h"

namespace forktail::analysis
{

namespace
{

constexpr size_t kMostClients = 100'000; // addresses are chosen by clients: memory is bounded

std::string AddressText(const ft_connection &c)
{
	static constexpr uint8_t none[16] = {}, mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	if (!memcmp(c.client_address, none, sizeof none))
		return "";
	char text[INET6_ADDRSTRLEN] = "";
	if (c.client_flags & FT_CLIENT_HASHED) {
		uint64_t hash = 0;
		memcpy(&hash, c.client_address, sizeof hash);
		snprintf(text, sizeof text, "client-%016llx", static_cast<unsigned long long>(hash));
	} else if (!memcmp(c.client_address, mapped, sizeof mapped)) {
		inet_ntop(AF_INET, c.client_address + sizeof mapped, text, sizeof text);
	} else {
		inet_ntop(AF_INET6, c.client_address, text, sizeof text);
	}
	return text;
}

} // namespace

uint32_t RequestClients::Of(const ft_connection &c, uint32_t pid, uint32_t own_pid,
			    const std::string &on_host, Run *run)
{
	RequestClient client;
	client.address = AddressText(c);
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
