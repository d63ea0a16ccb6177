// SPDX-License-Identifier: MIT
// Options of other load generators: ours under their name, or refused with a sentence that names ours.
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "loadgen/options.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"

using namespace forktail::test;

namespace
{

Result load(std::vector<std::string> arguments)
{
	arguments.insert(arguments.begin(), program("forktail-load"));
	return run(arguments, Seconds(20));
}

std::string written(const foreign_option &f)
{
	return (f.name[1] ? "--" : "-") + std::string(f.name);
}

// The options that a text names.
std::set<std::string> options_in(const std::string &text)
{
	static const std::regex option("(^|[ ,`(])(--?[a-zA-Z0-9][a-z0-9-]*)");
	std::set<std::string> found;

	for (std::sregex_iterator i(text.begin(), text.end(), option), end; i != end; ++i)
		found.insert((*i)[2]);
	return found;
}

} // namespace

TEST_CASE("every option of another load generator is refused with its sentence, with and without a value")
{
	for (const foreign_option *f = foreign_options; f->name; f++) {
		const std::string message = "forktail-load: " + written(*f) + ": " + f->sentence + "\n";
		for (const auto &arguments : {std::vector<std::string>{written(*f)},
					      {written(*f), "5"},
					      {written(*f) + (f->name[1] ? "=5" : "5")}}) {
			const Result r = load(arguments);
			INFO(arguments[0]);
			CHECK(r.status == 2);
			CHECK(r.out.empty());
			CHECK(r.err == message);
		}
	}
}

TEST_CASE("each sentence names an option that exists, and no refused one")
{
	const std::string help = load({"--help"}).out;
	const std::set<std::string> ours = options_in(help);

	for (const foreign_option *f = foreign_options; f->name; f++) {
		const std::set<std::string> named = options_in(f->sentence);
		INFO(f->name << ": " << f->sentence);
		CHECK_FALSE(named.empty());
		for (const std::string &option : named) {
			INFO(option);
			CHECK(ours.count(option) == 1);
		}
		CHECK(ours.count(written(*f)) == 0);
	}
}

TEST_CASE("the reference has every option of other load generators")
{
	std::ifstream in(FORKTAIL_SOURCE_DIR "/docs/reference/load.md");
	const std::string page{std::istreambuf_iterator<char>(in), {}};
	const size_t begin = page.find("## Differences from other load generators");

	REQUIRE(begin != std::string::npos);
	const std::string section = page.substr(begin);
	for (const foreign_option *f = foreign_options; f->name; f++) {
		INFO(written(*f));
		CHECK((section.find("`" + written(*f) + "`") != std::string::npos ||
		       section.find("`" + written(*f) + " ") != std::string::npos));
	}
}

TEST_CASE("other names of the same options are accepted")
{
	const std::vector<std::vector<std::string>> cases = {
	    {"--rps", "1000"},
	    {"--cluster-mode"},
	    {"--tls", "--tls-skip-verify"},
	    {"--sequential", "-r", "100"},
	    {"--command", "ZADD z __rand_int__ element:__rand_1st__:__rand_9th__"},
	};
	for (std::vector<std::string> arguments : cases) {
		INFO(arguments[0]);
		arguments.push_back("--check");
		const Result r = load(arguments);
		INFO(r.err);
		CHECK(r.status == 0);
	}
	CHECK(load({"--command", "GET __rand_10th__", "--check"}).status == 2);
}

TEST_CASE("a password of memtier_benchmark is refused and not repeated")
{
	const Result r = load({"--authenticate", "hunter2"});

	CHECK(r.status == 2);
	CHECK(r.err.find("FORKTAIL_PASSWORD") != std::string::npos);
	CHECK(r.err.find("hunter2") == std::string::npos);
}
