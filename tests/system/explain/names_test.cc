// SPDX-License-Identifier: MIT
// A real server whose names are meant to control the user's terminal. Its program's file, its name and its
// command line set a clipboard, clear the screen, begin a line, reverse text and are no UTF-8. It is recorded
// normally, and none of that reaches a terminal, a script or a browser.
#include <filesystem>
#include <fstream>

#include "common/text.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

// The kernel keeps 15 bytes of it as the thread's name.
const std::string kName = "\x1b]52;c;QQ==\a\n\xff\xc2\x9b\xe2\x80\xaeredis";
const std::string kComm = R"(\x1b]52;c;QQ==\x07\x0a\xff\xc2)";

std::string found(const std::string &name)
{
	const Result r = run({"which", name});
	REQUIRE(r.status == 0);
	return std::filesystem::canonical(r.out.substr(0, r.out.find('\n')));
}

// Everything but newlines is what visible_text prints.
bool harmless(const std::string &text)
{
	std::string line;
	std::istringstream lines(text);
	while (std::getline(lines, line))
		if (visible_text(nullptr, 0, line.data(), line.size()) != line.size()) {
			UNSCOPED_INFO(line);
			return false;
		}
	return true;
}

} // namespace

TEST_CASE("a server whose name has terminal control sequences is recorded, and its name is printable")
{
	REQUIRE(root());
	TempDir dir;
	const std::string program_file = dir.file(kName);
	std::filesystem::copy_file(found("redis-server"), program_file);
	// Servers are started with JSON, which has only UTF-8: with a script that becomes the program.
	const std::string script = dir.file("script");
	std::ofstream(script) << "#!/bin/sh\nexec '" << dir.path() << "'/*redis \"$@\"\n";
	std::filesystem::permissions(script, std::filesystem::perms::owner_all);
	Redis redis({.tcp = false, .config = {"--enable-debug-command", "yes"}, .program = script});
	Recorder recorder(redis.pid());
	INFO(recorder.process().err());
	CHECK(recorder.process().err().find("recording " + kComm + " (") == 0);
	redis.command({"DEBUG", "POPULATE", "200000"});
	for (int i = 0; i < 10; i++)
		redis.command({"KEYS", "*"}); // has own code, so its program's file is in stacks
	redis.command({"DEBUG", "SLEEP", "0.05"});
	const std::string path = recorder.path();
	const Recorded recorded = recorder.stop();
	CHECK(harmless(recorder.process().err()));

	const Json manifest = parse_json(recorded.manifest);
	REQUIRE(manifest["targets"].size() == 1);
	CHECK(manifest["targets"][0]["pid"] == redis.pid());
	CHECK(manifest["targets"][0]["listens"].size() == 1);

	const Result text = run({program("forktail"), "explain", path, "--all"});
	INFO(text.out);
	INFO(text.err);
	REQUIRE(text.status == 0);
	CHECK(harmless(text.out));
	CHECK(text.out.find(kComm) != std::string::npos);

	const Result json = run({program("forktail"), "explain", path, "--json"});
	REQUIRE(json.status == 0);
	CHECK(harmless(json.out));
	CHECK(parse_json(json.out)["account"]["threads"][0]["comm"] == kComm);

	const std::string page = dir.file("page.html");
	REQUIRE(run({program("forktail"), "report", path, "-o", page}).status == 0);
	std::string html = read_file(page);
	CHECK(html.find("\x1b") == std::string::npos);
	CHECK(html.find("\xff") == std::string::npos);
	CHECK(html.find("\xe2\x80\xae") == std::string::npos);
	const size_t begin = html.find('>', html.find("id=\"run\"")) + 1;
	const std::string inner = html.substr(begin, html.find("</script", begin) - begin);
	CHECK(harmless(inner));
	CHECK(parse_json(inner).dump().find("52;c;QQ==") != std::string::npos);
}
