// SPDX-License-Identifier: MIT
// For tests of the observer: one that runs, and its recording, which can be read meanwhile.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "loadgen/observer.h"
#include "tests/support/catch.h"
#include "tests/support/recorded.h"
#include "tests/system/load/load.h"

namespace forktail::test
{

// Every round sends commands.
constexpr char kRound[] = "redis.total_commands_processed";

class Observation
{
public:
	explicit Observation(const observer_server &server)
	{
		REQUIRE(ft_writer_open(&writer_, path().c_str(), R"({"program":"test"})") == 0);
		REQUIRE(observer_start(&observer_, &server, writer_) == 0);
	}
	explicit Observation(const std::string &socket) : Observation(on(socket)) {}
	~Observation()
	{
		observer_stop(observer_);
		if (writer_)
			ft_writer_close(writer_, nullptr);
	}
	static observer_server on(const std::string &socket)
	{
		observer_server server = {};
		server.socket = socket.c_str();
		return server;
	}
	std::string path() const { return dir_.file("recording"); }
	Recorded so_far()
	{
		if (writer_)
			ft_writer_flush(writer_);
		return read_recording(path());
	}
	std::vector<Json> notes(const std::string &kind)
	{
		std::vector<Json> found;
		for (const std::string &text : so_far().notes)
			if (Json j = parse_json(text); j["kind"] == kind)
				found.push_back(j);
		return found;
	}
	size_t count(const std::string &kind) { return notes(kind).size(); }
	// Values of the series of this name.
	std::vector<double> values(const std::string &name)
	{
		const Recorded r = so_far();
		std::vector<double> found;
		for (const auto &[id, text] : r.series)
			if (parse_json(text)["name"] == name)
				for (const ft_sample &s : r.samples)
					if (s.series == id)
						found.push_back(s.value);
		return found;
	}
	// Waits for a round that began after this call: uptime and other values change every second.
	bool another_round(const std::string &series, size_t rounds = 1)
	{
		const size_t before = values(series).size();
		return eventually([&] { return values(series).size() >= before + rounds; }, Seconds(30));
	}
	// Ends both. The recording is complete.
	Recorded end()
	{
		observer_stop(observer_);
		observer_ = nullptr;
		CHECK(ft_writer_close(writer_, "{}") == 0);
		writer_ = nullptr;
		return read_recording(path());
	}
	// Stops while the server does not answer. Returns how long that took.
	Seconds stop()
	{
		const auto start = std::chrono::steady_clock::now();
		observer_stop(observer_);
		observer_ = nullptr;
		return std::chrono::steady_clock::now() - start;
	}

private:
	TempDir dir_;
	ft_writer *writer_ = nullptr;
	observer *observer_ = nullptr;
};

} // namespace forktail::test
