// SPDX-License-Identifier: MIT
// Serves metrics over HTTP with libevent's evhttp on the caller's event loop: GET and HEAD of /metrics only.
// Clients are limited: 32 connections (a new one replaces the oldest), 8 KiB of headers, no body, and ten
// seconds.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "writer.h"

struct event_base;

namespace forktail::common
{

constexpr char kMetricsAddress[] = "127.0.0.1:9742"; // the default

// Whether Open accepts the form of the address. False: *error is one sentence.
bool CheckMetricsAddress(const std::string &address, std::string *error);

class MetricsServer
{
public:
	// `address`: "ADDR:PORT" with a numeric address ("[::1]:9742" for IPv6), "PORT" on 127.0.0.1, or
	// "/PATH" of a Unix socket with mode 0600. Ignores SIGPIPE. `text` is called for each answer.
	// nullptr: *error is one sentence.
	static std::unique_ptr<MetricsServer> Open(event_base *base, const std::string &address,
						   std::function<std::string(MetricsFormat)> text,
						   std::string *error);
	~MetricsServer();
	MetricsServer(const MetricsServer &) = delete;
	MetricsServer &operator=(const MetricsServer &) = delete;

	// The address it listens on: "127.0.0.1:9742", with the actual port if 0 was requested.
	const std::string &where() const;

	struct State;

private:
	explicit MetricsServer(std::unique_ptr<State> state);
	std::unique_ptr<State> state_;
};

} // namespace forktail::common
