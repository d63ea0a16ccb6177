// SPDX-License-Identifier: MIT
// Names of clients.
#include "client.h"

#include <algorithm>
#include <cstring>

#include "common/format/address.h"
#include "common/format/sanitize.h"

namespace forktail::live
{

std::string Client::Name() const
{
	ft_comm comm;
	memcpy(comm.raw, bytes, sizeof comm.raw);
	switch (kind) {
	case Kind::Address:
	case Kind::Hashed:
		return common::ClientAddress(bytes, kind == Kind::Hashed);
	case Kind::Process:
		return *comm.raw ? common::VisibleName(comm) : "unknown process";
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
		memcpy(client.bytes, connection.client_comm.raw,
		       strnlen(connection.client_comm.raw, sizeof connection.client_comm.raw));
		return client;
	}
	client.kind =
	    connection.client_flags & FT_CLIENT_HASHED ? Client::Kind::Hashed : Client::Kind::Address;
	memcpy(client.bytes, address, sizeof address);
	return client;
}

} // namespace forktail::live
