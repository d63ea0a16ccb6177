// SPDX-License-Identifier: MIT
// A load in the background, so that a test can disturb the server meanwhile; and the load's results.
#pragma once
#include <memory>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/load/load.h"

namespace forktail::test
{

struct BackgroundLoad {
	TempDir dir;
	std::unique_ptr<Process> process;
	Log log;
	Json json, figures, total;
	int status = -1;

	explicit BackgroundLoad(const Arguments &arguments)
	{
		Arguments all = {"-q", "--no-observer", "-o", dir.file("log"), "--json", dir.file("json")};
		all.insert(all.end(), arguments.begin(), arguments.end());
		process = std::make_unique<Process>(load_command(all));
	}
	// Some requests are in the log, so the load is running. Blocks are written after a second.
	void under_way()
	{
		REQUIRE(
		    eventually([&] { return read_log(dir.file("log")).requests.size() > 10; }, Seconds(30)));
	}
	void end()
	{
		const auto ended = process->wait(Seconds(120));
		INFO(process->err());
		INFO(process->out());
		REQUIRE(ended.has_value());
		status = *ended;
		log = read_log(dir.file("log"));
		CHECK(log.whole());
		CHECK(log.drops.empty());
		json = parse_json(read_file(dir.file("json")));
		REQUIRE(json["runs"].size() == 1);
		figures = json["runs"][0];
		total = figures["total"];
		CHECK(total["requests"] == log.requests.size());
	}
	std::string err() const { return process->err(); }
	std::string out() const { return process->out(); }
};

} // namespace forktail::test
