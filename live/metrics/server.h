// SPDX-License-Identifier: MIT
// Serves metrics over HTTP, by libevent's evhttp on the caller's loop: GET and HEAD of /metrics and nothing
// else. Whoever connects can take little: few connections at once (the oldest makes room), a few kilobytes of
// headers, no body, and a few seconds, however slowly it sends.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "metrics.h"

struct event_base;

namespace forktail::live::metrics
{

constexpr char kMetricsAddress[] = "127.0.0.1:9742"; // unless told

class MetricsServer
{
public:
	// `address`: "ADDR:PORT" (a number; "[::1]:9742" for IPv6), "PORT" on 127.0.0.1, or "/PATH" of a Unix
	// socket, which its user may connect to (0600). SIGPIPE is ignored from here on. `text` is asked for
	// each answer. nullptr: *error is one sentence.
	static std::unique_ptr<MetricsServer> Open(event_base *base, const std::string &address,
						   std::function<std::string(MetricsFormat)> text,
						   std::string *error);
	~MetricsServer();
	MetricsServer(const MetricsServer &) = delete;
	MetricsServer &operator=(const MetricsServer &) = delete;

	// Where it listens: "127.0.0.1:9742", with the port that it got if 0 was asked for.
	const std::string &where() const;

	struct State;

private:
	explicit MetricsServer(std::unique_ptr<State> state);
	std::unique_ptr<State> state_;
};

} // namespace forktail::live::metrics
