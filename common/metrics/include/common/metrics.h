// SPDX-License-Identifier: MIT
// Metrics for Prometheus: their text, and the server that gives it over HTTP.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/statistics.h"

namespace forktail::common
{

// Writes Prometheus text 0.0.4 and OpenMetrics 1.0. They differ in the names of counter families, in info and
// unit, and at the end.

enum class MetricsFormat { Text, OpenMetrics }; // 0.0.4 and 1.0

// The format for an Accept header, and the Content-Type of a format.
MetricsFormat FormatByAccept(const char *accept);
const char *ContentTypeOf(MetricsFormat format);

class MetricsWriter
{
public:
	explicit MetricsWriter(MetricsFormat format) : format_(format) {}

	using Labels = std::initializer_list<std::pair<const char *, std::string_view>>;

	// Starts a metric family; its samples follow. `name` without _total or _info; `unit` is "" or the
	// last word of the name.
	void Counter(const char *name, const char *unit, const char *help);
	void Gauge(const char *name, const char *unit, const char *help);
	void Histogram(const char *name, const char *unit, const char *help);
	void Info(const char *name, const char *help);

	void Sample(Labels labels, double value);
	void Count(Labels labels, uint64_t value);
	void Seconds(Labels labels, uint64_t ns);
	template <size_t kCount, unsigned kBits>
	void Buckets(Labels labels, const BucketCounts<kCount, kBits> &durations)
	{
		uint64_t below = 0;
		for (size_t i = 0; i <= kCount; i++) {
			below += durations.counts[i];
			Bucket(labels, i < kCount ? durations.BoundNs(i) : UINT64_MAX, below);
		}
		SumAndCount(labels, durations.sum_ns, durations.count);
	}

	std::string Finish();

private:
	void Begin(const char *name, const char *suffix, const char *type, const char *unit,
		   const char *help);
	// bound_ns UINT64_MAX: +Inf.
	void Bucket(Labels labels, uint64_t bound_ns, uint64_t count);
	void SumAndCount(Labels labels, uint64_t sum_ns, uint64_t count);
	void Line(const char *suffix, Labels labels, const char *le, const char *value);

	MetricsFormat format_;
	std::string text_, name_, suffix_;
};

} // namespace forktail::common

// Serves metrics over HTTP with libevent's evhttp on the caller's event loop: GET and HEAD of /metrics only.
// Clients are limited: 32 connections (a new one replaces the oldest), 8 KiB of headers, no body, and ten
// seconds.

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
