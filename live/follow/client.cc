// SPDX-License-Identifier: MIT
// Names of clients.
#include "client.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "common/format/sanitize.h"

namespace forktail::live
{

namespace
{

std::string AddressName(const std::array<char, 16> &address)
{
	static const char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '\xff', '\xff'};
	char text[INET6_ADDRSTRLEN] = "";
	if (memcmp(address.data(), mapped, sizeof mapped) == 0)
		inet_ntop(AF_INET, address.data() + sizeof mapped, text, sizeof text);
	else
		inet_ntop(AF_INET6, address.data(), text, sizeof text);
	return text;
}

} // namespace

std::string Client::Name() const
{
	char text[32];
	uint64_t hash;
	switch (kind) {
	case Kind::Address:
		return AddressName(bytes);
	case Kind::Hashed:
		memcpy(&hash, bytes.data(), sizeof hash);
		snprintf(text, sizeof text, "client-%016" PRIx64, hash);
		return text;
	case Kind::Process:
		return bytes[0]
			   ? common::Visible(std::string(bytes.data(), strnlen(bytes.data(), bytes.size())))
			   : "unknown process";
	case Kind::Other:
		break;
	}
	return "other";
}

Client ClientOf(const ft_connection &connection)
{
	const auto &address = connection.client_address;
	Client client;
	if (std::all_of(std::begin(address), std::end(address), [](uint8_t byte) { return byte == 0; })) {
		client.kind = Client::Kind::Process;
		const size_t length = strnlen(connection.client_comm, sizeof connection.client_comm);
		memcpy(client.bytes.data(), connection.client_comm, length);
		return client;
	}
	client.kind =
	    connection.client_flags & FT_CLIENT_HASHED ? Client::Kind::Hashed : Client::Kind::Address;
	memcpy(client.bytes.data(), address, sizeof address);
	return client;
}

} // namespace forktail::live
