// SPDX-License-Identifier: MIT
// Every wrong use of the command line gives one message and exit status 2, and does nothing. No server is
// needed.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;

namespace
{

Result load(std::vector<std::string> arguments, const ProcessOptions &options = {})
{
	arguments.insert(arguments.begin(), program("forktail-load"));
	return run(arguments, Seconds(20), options);
}

} // namespace

TEST_CASE("wrong values are refused with a sentence that names the option")
{
	const struct {
		std::vector<std::string> arguments;
		const char *says;
	} cases[] = {
	    {{"-c", "0"}, "-c is a whole number from 1"},
	    {{"-c", "many"}, "-c is a whole number"},
	    {{"-n", "0"}, "-n is"},
	    {{"-n", "-5"}, "-n is"},
	    {{"-p", "65536"}, "-p is"},
	    {{"-P", "0"}, "-P is"},
	    {{"-d", "0"}, "a value's size is BYTES"},
	    {{"-d", "1000000000"}, "1 to 67108864 bytes"},
	    {{"-d", "20-10"}, "a value's size is BYTES"},
	    {{"-d", "10:1,20"}, "a value's size is BYTES"},
	    {{"-d", "lognormal:100"}, "a value's size is BYTES"},
	    {{"-r", "0"}, "-r is"},
	    {{"-r", "1000000000001"}, "-r is"},
	    {{"--threads", "0"}, "--threads is"},
	    {{"--threads", "4", "-c", "3"}, "4 threads need at least as many connections"},
	    {{"--busy-poll", "--threads", "1024", "-c", "1024"}, "needs one more"},
	    {{"--busy-poll", "--blocking"}, "--blocking sleeps in read()"},
	    {{"--busy-poll", "--intrinsic"}, "--intrinsic measures how a thread is woken"},
	    {{"--arrival-times", "-s", "/tmp/x"}, "--arrival-times needs TCP"},
	    {{"--arrival-times", "--server", "h:1", "--server", "unix:///tmp/x"},
	     "--arrival-times needs TCP"},
	    {{"--arrival-times", "--tls"}, "TLS hides which bytes came when"},
	    {{"--dbnum", "x"}, "--dbnum is"},
	    {{"--rate", "0"}, "--rate is a number"},
	    {{"--rate", "fast"}, "--rate is a number"},
	    {{"--arrival", "bursty"}, "--arrival is constant or poisson"},
	    {{"--arrival", "poisson"}, "--arrival belongs to an open loop"},
	    {{"--duration", "0"}, "--duration is a time"},
	    {{"--duration", "1 week"}, "--duration is a time"},
	    {{"--ratio", "0:0"}, "--ratio is SETS:GETS"},
	    {{"--seed", "abc"}, "--seed is"},
	    {{"-t", "get,lpushx"}, "there is no test \"lpushx\""},
	    {{"-t", "lpush", "--protocol", "memcache_text"}, "there is no test \"lpush\" for memcached"},
	    {{"--protocol", "http"}, "--protocol is redis, memcache_text, memcache_binary or memcache_meta"},
	    {{"--command", "SET \"x"}, "this is no command"},
	    {{"--command", "LPUSH x", "--protocol", "memcache_text"}, "LPUSH is no command"},
	    {{"--command", "get", "--protocol", "memcache_binary"}, "GET is written as GET KEY"},
	    {{"--command-ratio", "2"}, "the --command before it"},
	    {{"--command", "PING", "--command-ratio", "0"}, "--command-ratio is"},
	    {{"--command", "PING", "-t", "get"}, "choose one"},
	    {{"--ycsb", "G"}, "--ycsb is A, B, C, D, E, F or load"},
	    {{"--ycsb", "A", "--protocol", "memcache_text"}, "memcached has no hashes"},
	    {{"--ycsb", "E", "-P", "2"}, "needs -P 1"},
	    {{"--ycsb", "A", "--verify"}, "YCSB's records are hashes"},
	    {{"--ycsb", "A", "--expiry", "5"}, "don't expire"},
	    {{"--ycsb", "A", "-t", "get"}, "choose one"},
	    {{"--key-pattern", "normal"}, "is no key pattern"},
	    {{"--key-pattern", "zipf:0"}, "the exponent"},
	    {{"--key-pattern", "hot:90"}, "hot takes two percentages"},
	    {{"--key-length", "0"}, "--key-length is BYTES"},
	    {{"--key-length", "65537"}, "--key-length is BYTES"},
	    {{"--key-length", "10-9"}, "--key-length is BYTES"},
	    {{"--key-length", "5", "-r", "100"}, "don't hold the prefix and the 2 digits"},
	    {{"--key-length", "251", "--protocol", "memcache_text"}, "250 bytes at most"},
	    {{"--key-length", "10-251", "--protocol", "memcache_text"}, "250 bytes at most"},
	    {{"--key-prefix", std::string(240, 'x'), "--protocol", "memcache_binary"}, "250 bytes at most"},
	    {{"--key-prefix", std::string(65536, 'x')}, "--key-prefix is longer"},
	    {{"--compressible", "101"}, "--compressible is a share"},
	    {{"--fields", "0"}, "--fields is"},
	    {{"--expiry", "0"}, "--expiry is SECONDS"},
	    {{"--expiry", "9-3"}, "--expiry is SECONDS"},
	    {{"--percentiles", "50,101"}, "--percentiles is a list"},
	    {{"--buckets=2ms,1ms"}, "--buckets is a list"},
	    {{"--fail-if", "p99"}, "p99"},
	    {{"--fail-if", "unknown>5%"}, "\"unknown>5%\" is for a recording"},
	    {{"--fail-if", "p99 no worse than BASE"}, "forktail gate"},
	    {{"--log", "some", "-o", "x"}, "--log is all or slow:TIME"},
	    {{"--log", "slow:1ms"}, "name its file with -o"},
	    {{"--on-error", "panic"}, "--on-error is continue, reconnect or stop"},
	    {{"--cpus", "0-"}, "--cpus is a list"},
	    {{"-k", "2"}, "-k is"},
	    {{"-l", "-n", "5"}, "-l goes on until Ctrl-C"},
	    {{"--batch", "2"}, "--batch is at most the pipeline"},
	    {{"--rate", "5", "--batch", "1"}, "--batch belongs to a closed loop"},
	    {{"--rate", "5", "--think", "1ms"}, "--think belongs to a closed loop"},
	    {{"--rate", "5", "--profile", "ramp:1-2x3s"}, "choose one"},
	    {{"--profile", "sine:1,2,3s"}, "goes on for ever"},
	    {{"--latency", "-t", "get"}, "choose one"},
	    {{"-t", ""}, "there is no test"},
	    {{"-t", "get", "--ratio", "1:1"}, "choose one"},
	    {{"--fill", "0"}, "--fill is"},
	    {{"--fill", "10", "--rate", "5"}, "--fill sets N keys and ends"},
	    {{"--fill", "10", "-n", "5"}, "--fill sets N keys and ends"},
	    {{"-P", "100000", "-d", "100000"}, "lower -P or -d"},
	    {{"-s", std::string(200, 'x')}, "-s is longer"},
	    {{"--user", "alice"}, "--user needs a password"},
	    {{"run"}, "what is \"run\"?"},
	    {{"--drain", "-1"}, "--drain is a time"},
	    {{"--loading-wait", "soon"}, "--loading-wait is a time"},
	};
	for (const auto &c : cases) {
		const Result r = load(c.arguments);
		INFO(c.arguments[0] << ": " << r.err);
		CHECK(r.status == 2);
		CHECK(r.out.empty());
		CHECK(r.err.find(c.says) != std::string::npos);
		CHECK(r.err.rfind("forktail-load: ", 0) == 0);
		CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
	}
}

TEST_CASE("an unknown flag and a flag without its value are named")
{
	Result r = load({"--frequency", "5"});
	CHECK(r.status == 2);
	CHECK(r.err.find("--frequency") != std::string::npos);
	r = load({"-c"});
	CHECK(r.status == 2);
	CHECK(r.err.find("'c'") != std::string::npos);
}

TEST_CASE("a password in argv is refused and not repeated")
{
	for (const char *flag : {"-a", "--password"}) {
		const Result r = load({flag, "hunter2"});
		CHECK(r.status == 2);
		CHECK(r.err.find("FORKTAIL_PASSWORD") != std::string::npos);
		CHECK(r.err.find("hunter2") == std::string::npos);
		CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
	}
}

TEST_CASE("an unreadable password file is an environment error")
{
	Result r = load({"--password-file", "/nonexistent/password"});
	CHECK(r.status == 3);
	CHECK(r.err.find("/nonexistent/password") != std::string::npos);
	TempDir dir;
	write_file(dir.file("empty"), "");
	r = load({"--password-file", dir.file("empty")});
	CHECK(r.status == 3);
	CHECK(r.err.find("empty") != std::string::npos);
}

TEST_CASE("help and version")
{
	Result r = load({"--help"});
	CHECK(r.status == 0);
	for (const char *option :
	     {"--ratio", "--rate", "--arrival", "--fill", "--seed", "--json", "--password-file"})
		CHECK(r.out.find(option) != std::string::npos);
	r = load({"--version"});
	CHECK(r.status == 0);
	CHECK(r.out.find("forktail-load") == 0);
}
