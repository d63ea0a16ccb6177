// SPDX-License-Identifier: MIT
// The observer of a server that has never existed, and of addresses that cannot be used: forktail-load itself
// fails for these before it starts an observer. tests/system/load/test_observer.py has real servers.
#include "loadgen/observer.h"

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "recording/recording.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;

namespace
{

std::vector<std::string> observer_notes(ft_writer *writer, const std::string &path)
{
	std::vector<std::string> notes;
	ft_reader *reader = nullptr;
	char error[256];
	ft_writer_flush(writer);
	REQUIRE(ft_reader_open(&reader, path.c_str(), error, sizeof(error)) == 0);
	for (ft_block block; ft_reader_next(reader, &block) == 1;)
		if (block.kind == FT_BLOCK_NOTE)
			notes.emplace_back(static_cast<const char *>(block.payload), block.bytes);
	ft_reader_close(reader);
	return notes;
}

} // namespace

TEST_CASE("an observer whose server has never existed notes it once, and does not delay a stop", "[observer]")
{
	const TempDir dir;
	const std::string path = dir.file("recording");
	ft_writer *writer = nullptr;
	REQUIRE(ft_writer_open(&writer, path.c_str(), "{}") == 0);
	observer_server server = {};
	server.socket = "/nonexistent/redis.sock";
	observer *o = nullptr;
	REQUIRE(observer_start(&o, &server, writer) == 0);
	CHECK(eventually([&] { return observer_notes(writer, path).size() == 1; }));
	sleep_for(Seconds(1)); // in a pause between attempts
	const auto start = std::chrono::steady_clock::now();
	observer_stop(o);
	// Well below the ten seconds that it waits for an answer.
	CHECK(std::chrono::steady_clock::now() - start < Seconds(5));
	const std::vector<std::string> notes = observer_notes(writer, path);
	REQUIRE(notes.size() == 1);
	const auto lost = parse_json(notes[0]);
	CHECK(lost["kind"] == "observer-lost");
	CHECK(lost["why"] == "No such file or directory");
	CHECK(ft_writer_close(writer, nullptr) == 0);
}

TEST_CASE("a host without an address and a path that is too long are errors at once", "[observer]")
{
	const TempDir dir;
	ft_writer *writer = nullptr;
	REQUIRE(ft_writer_open(&writer, dir.file("recording").c_str(), "{}") == 0);
	observer *o = nullptr;
	observer_server server = {};
	server.host = "no-such-host.invalid";
	server.port = 6379;
	CHECK(observer_start(&o, &server, writer) == -EHOSTUNREACH);
	CHECK(o == nullptr);
	const std::string path(200, 'p');
	server.socket = path.c_str();
	CHECK(observer_start(&o, &server, writer) == -ENAMETOOLONG);
	CHECK(o == nullptr);
	observer_stop(nullptr);
	CHECK(ft_writer_close(writer, nullptr) == 0);
}
