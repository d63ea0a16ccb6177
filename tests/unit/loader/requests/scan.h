// SPDX-License-Identifier: MIT
// Shared by the tests of the request scanner: scans a stream in pieces, and builds requests.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "loader/requests.h"

namespace forktail::test
{

// A request that the scanner found.
struct Arrival {
	size_t end = 0; // in the stream
	uint64_t bytes = 0;
	uint64_t hash = 0;
	std::string command;
	unsigned flags = 0;
	unsigned text_as = TEXT_NONE;
	std::string text = {};

	bool operator==(const Arrival &) const = default;
};

struct Arrivals {
	std::vector<Arrival> all;
	size_t refused = std::string::npos; // the place of the byte that was refused

	bool operator==(const Arrivals &) const = default;
};

// A connection whose bytes arrive in pieces.
class ScannedConnection
{
public:
	explicit ScannedConnection(scan_protocol protocol)
	{
		scanner_.protocol = static_cast<uint8_t>(protocol);
	}

	// False: a byte was refused.
	bool bytes(const std::string &text)
	{
		// A piece of exactly its size on the heap: the sanitizer reports a read beyond it.
		const std::vector<uint8_t> piece(text.begin(), text.end());
		const uint8_t *at = piece.data(), *end = at + piece.size();
		while (at < end) {
			scanned found = {};
			const int result = scanner_bytes(&scanner_, &at, end, &found);
			if (result < 0) {
				arrivals_.refused = position_ + static_cast<size_t>(at - piece.data());
				return false;
			}
			if (result > 0)
				add(position_ + static_cast<size_t>(at - piece.data()), found);
		}
		position_ += text.size();
		return true;
	}
	int gap(uint64_t bytes)
	{
		scanned found = {};
		const int result = scanner_gap(&scanner_, bytes, &found);
		position_ += bytes;
		if (result > 0)
			add(position_, found);
		return result;
	}
	void lose() { scanner_lose(&scanner_); }
	bool at_rest() const
	{
		const scanner rest = {};
		return memcmp(&scanner_.state, &rest.state, sizeof rest - offsetof(scanner, state)) == 0;
	}
	const Arrivals &arrivals() const { return arrivals_; }

private:
	void add(size_t end, const scanned &found)
	{
		arrivals_.all.push_back({end, found.bytes, found.hash, commands_name(found.command),
					 found.flags, found.text_as,
					 std::string(reinterpret_cast<const char *>(found.text),
						     found.text_as ? found.text_bytes : 0)});
	}

	scanner scanner_ = {};
	size_t position_ = 0;
	Arrivals arrivals_;
};

// Scans a stream in pieces of a length; of the whole by default.
inline Arrivals scan(scan_protocol protocol, const std::string &stream, size_t piece = std::string::npos)
{
	ScannedConnection connection(protocol);
	for (size_t at = 0; at < stream.size(); at += std::min(piece, stream.size()))
		if (!connection.bytes(stream.substr(at, piece)))
			break;
	return connection.arrivals();
}

// Cut into two pieces.
inline Arrivals scan_cut(scan_protocol protocol, const std::string &stream, size_t cut)
{
	ScannedConnection connection(protocol);
	if (connection.bytes(stream.substr(0, cut)))
		connection.bytes(stream.substr(cut));
	return connection.arrivals();
}

inline Arrivals scan_redis(const std::string &stream)
{
	return scan(SCAN_REDIS, stream);
}
inline Arrivals scan_memcached(const std::string &stream)
{
	return scan(SCAN_MEMCACHED, stream);
}

// An array of strings.
inline std::string array(const std::vector<std::string> &arguments)
{
	std::string text = "*" + std::to_string(arguments.size()) + "\r\n";
	for (const std::string &a : arguments)
		text += "$" + std::to_string(a.size()) + "\r\n" + a + "\r\n";
	return text;
}

// A binary request of memcached.
inline std::string binary(uint8_t opcode, const std::string &extras, const std::string &key,
			  const std::string &value)
{
	std::string text(24, '\0');
	const size_t body = extras.size() + key.size() + value.size();
	text[0] = static_cast<char>(0x80);
	text[1] = static_cast<char>(opcode);
	text[2] = static_cast<char>(key.size() >> 8);
	text[3] = static_cast<char>(key.size());
	text[4] = static_cast<char>(extras.size());
	for (int i = 0; i < 4; i++)
		text[static_cast<size_t>(8 + i)] = static_cast<char>(body >> (24 - 8 * i));
	return text + extras + key + value;
}

// The commands of all requests, with their flags: "GET 0, WAIT 1". "refused" follows if a byte was.
inline std::string summary(const Arrivals &arrivals)
{
	std::string text;
	for (const Arrival &a : arrivals.all)
		text += (text.empty() ? "" : ", ") + a.command + " " + std::to_string(a.flags);
	if (arrivals.refused != std::string::npos)
		text += (text.empty() ? "" : ", ") + ("refused at " + std::to_string(arrivals.refused));
	return text;
}

} // namespace forktail::test
