// SPDX-License-Identifier: MIT
// The output of a run: tables, CSV, HdrHistogram's log, series, buckets, limits, repeats, a log of slow
// requests only, the server's own reports. Each figure is checked against the request log, which has every
// request, or against another program that reads the same format.
#include <arpa/inet.h>
#include <csignal>
#include <netinet/in.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/recorded.h"
#include "tests/support/servers/memcached.h"
#include "tests/system/live/http.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

namespace
{

std::vector<std::string> split(const std::string &text, char at)
{
	std::vector<std::string> parts;
	std::istringstream in(text);
	for (std::string part; std::getline(in, part, at);)
		parts.push_back(part);
	return parts;
}

struct Run {
	TempDir dir;
	Result result;
	Log log;
	Json json, figures, total;

	Run(const Redis &redis, const Arguments &more, int status = 0)
	{
		Arguments all = {"-s",	   redis.socket(),   "-o", dir.file("log"),
				 "--json", dir.file("json"), "-q"};
		all.insert(all.end(), more.begin(), more.end());
		result = load(all);
		INFO(result.err);
		REQUIRE(result.status == status);
		log = read_log(dir.file("log"));
		REQUIRE(log.error == "");
		json = parse_json(read_file(dir.file("json")));
		figures = json["runs"][0];
		total = figures["total"];
	}
	size_t notes(const std::string &kind) const
	{
		return static_cast<size_t>(std::count_if(log.notes.begin(), log.notes.end(),
							 [&](const Json &n) { return n["kind"] == kind; }));
	}
};

// The number of values in a line of HdrHistogram's log, by the format's description.
uint64_t hdr_count(const std::string &base64)
{
	static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	std::vector<uint8_t> bytes, plain(1 << 20);
	uint32_t bits = 0;
	int filled = 0;
	for (char c : base64.substr(0, base64.find('='))) {
		const size_t digit = digits.find(c);
		REQUIRE(digit != std::string::npos);
		bits = bits << 6 | static_cast<uint32_t>(digit);
		if ((filled += 6) >= 8)
			bytes.push_back(static_cast<uint8_t>(bits >> (filled -= 8)));
	}
	uLongf size = plain.size();
	REQUIRE(bytes.size() > 8);
	REQUIRE(uncompress(plain.data(), &size, bytes.data() + 8, bytes.size() - 8) == Z_OK);
	uint64_t sum = 0;
	for (size_t at = 40; at < size;) {
		uint64_t value = 0;
		for (unsigned shift = 0;; shift += 7) {
			REQUIRE(at < size);
			const uint8_t byte = plain[at++];
			value |= static_cast<uint64_t>(shift == 56 ? byte : byte & 0x7f) << shift;
			if (shift == 56 || !(byte & 0x80))
				break;
		}
		sum += value & 1 ? 0 : value >> 1; // negative: a run of zeros
	}
	return sum;
}

} // namespace

TEST_CASE("repeat: each run with its table, and best, worst, mean and spread of all runs")
{
	Redis redis;
	Run run(redis, {"--repeat", "3", "-n", "500", "-t", "set,get"});
	REQUIRE(run.json["runs"].size() == 6);
	REQUIRE(run.json["repeats"].size() == 2);
	CHECK(run.log.requests.size() == 3000);
	for (size_t test = 0; test < 2; test++) {
		const Json &repeats = run.json["repeats"][test];
		CHECK(repeats["name"] == (test ? "GET" : "SET"));
		CHECK(repeats["runs"] == 3);
		double best = 0, worst = 1e18, sum = 0;
		for (size_t i = 0; i < 3; i++) {
			const Json &one = run.json["runs"][3 * test + i];
			CHECK(one["name"] == repeats["name"]);
			CHECK(one["total"]["requests"] == 500);
			const double rps = one["total"]["requests_per_s"];
			best = std::max(best, rps);
			worst = std::min(worst, rps);
			sum += rps;
		}
		CHECK(repeats["requests_per_s"]["best"].get<double>() == Approx(best));
		CHECK(repeats["requests_per_s"]["worst"].get<double>() == Approx(worst));
		CHECK(repeats["requests_per_s"]["mean"].get<double>() == Approx(sum / 3));
		CHECK(repeats["requests_per_s"]["spread"].get<double>() >= 0);
		CHECK(repeats["p99_ns"]["best"].get<double>() <= repeats["p99_ns"]["worst"].get<double>());
	}
	CHECK(contains(run.result.out, "3 times"));
	CHECK(contains(run.result.out, "spread"));
}

TEST_CASE("fail-if: a broken limit gives exit status 1 and a sentence")
{
	Redis redis;
	Run kept(redis,
		 {"-n", "500", "--fail-if", "p99>100s", "--fail-if", "errors>0", "--fail-if", "rps<0.001"});
	CHECK(kept.result.err.empty());
	Run broken(redis, {"-n", "500", "--fail-if", "p99.5>1us", "--fail-if", "errors>0"}, 1);
	CHECK(lines(broken.result.err) == 1);
	CHECK(contains(broken.result.err, "p99.5"));
	CHECK(contains(broken.result.err, "limit"));
	CHECK(broken.json["exit_status"] == 1);
	// The percentile that a limit needs is computed without being requested.
	CHECK(broken.total["latency_ns"].contains("p99.5"));
	Run one(redis, {"-n", "500", "--fail-if", "GET.max>1us"}, 1);
	CHECK(contains(one.result.err, "GET"));
	Run misses(redis,
		   {"-t", "get", "-n", "100", "-r", "50", "--key-prefix", "none:", "--fail-if", "misses>99"},
		   1);
	redis.command({"DEL", "key:000000000000"});
	redis.command({"LPUSH", "key:000000000000", "x"});
	Run errors(redis, {"-t", "get", "-n", "100", "--fail-if", "errors>10%"}, 3);
	Run several(redis, {"-t", "set,get", "-n", "100", "--fail-if", "GET.errors>=0"}, 1);
	CHECK(lines(several.result.err) == 1);
	Run equal(redis, {"-n", "100", "--fail-if", "requests=100"}, 1);
	CHECK(contains(equal.result.err, "requests is 100, exactly the forbidden 100"));
	Run unequal(redis, {"-n", "100", "--fail-if", "requests!=100"});
	CHECK(load({"-s", redis.socket(), "--fail-if", "nonsense"}).status == 2);
}

TEST_CASE("csv has redis-benchmark's columns and test names, with our figures")
{
	Redis redis;
	const Result theirs =
	    run({"redis-benchmark", "-s", redis.socket(), "-t", "set,get", "-n", "100", "--csv"});
	const Result ours = load({"-s", redis.socket(), "-t", "set,get", "-n", "100", "--csv", "-q"});
	CHECK(ours.status == 0);
	if (theirs.status == 0) {
		CHECK(split(ours.out, '\n')[0] == split(theirs.out, '\n')[0]);
		for (size_t line : {1, 2})
			CHECK(split(split(ours.out, '\n')[line], ',')[0] ==
			      split(split(theirs.out, '\n')[line], ',')[0]);
	}
	CHECK(lines(ours.out) == 3);

	Run file(redis,
		 {"-t", "get", "-n", "1000", "--csv=/nonexistent/csv", "--csv", "--percentiles", "50,99.9"});
	CHECK(lines(file.result.out) == 2); // the last --csv counts and replaces the table

	TempDir dir;
	Run both(redis, {"-t", "get", "-n", "1000", "--csv=" + dir.file("csv"), "--percentiles", "99.9"});
	CHECK(contains(both.result.out, "standard deviation"));
	const auto row = split(split(read_file(dir.file("csv")), '\n')[1], ',');
	REQUIRE(row.size() == 8);
	const auto sorted = both.log.latencies();
	auto ms = [](uint64_t ns) {
		char text[32];
		snprintf(text, sizeof(text), "\"%.3f\"", static_cast<double>(ns) * 1e-6);
		return std::string(text);
	};
	CHECK(row[0] == "\"GET\"");
	CHECK(row[3] == ms(sorted.front()));
	CHECK(row[4] == ms(percentile(sorted, 50)));
	CHECK(row[5] == ms(percentile(sorted, 95)));
	CHECK(row[6] == ms(percentile(sorted, 99)));
	CHECK(row[7] == ms(sorted.back()));
}

TEST_CASE("hlog and series: all seconds together equal the total")
{
	Redis redis;
	TempDir dir;
	Run run(redis, {"--duration", "2500ms", "--rate", "2000", "--warmup", "300ms", "--hlog",
			dir.file("hlog"), "--series", dir.file("series")});
	std::map<std::string, uint64_t> hdr, series;
	std::map<std::string, int> rows;
	for (const std::string &line : split(read_file(dir.file("hlog")), '\n')) {
		const auto fields = split(line, ',');
		if (line.rfind("Tag=", 0) == 0 && fields.size() == 5) {
			hdr[fields[0].substr(4)] += hdr_count(fields[4]);
			rows[fields[0].substr(4)]++;
		}
	}
	const auto table = split(read_file(dir.file("series")), '\n');
	const auto head = split(table[0], ',');
	double seconds = 0;
	for (size_t i = 1; i < table.size(); i++) {
		const auto fields = split(table[i], ',');
		REQUIRE(fields.size() == head.size());
		series[fields[3]] += std::stoull(fields[4]);
		if (fields[3] == "GET")
			seconds += std::stod(fields[1]);
		CHECK(fields[5] == "0");
	}
	CHECK(head[3] == "operation");
	for (const char *operation : {"GET", "SET"}) {
		const uint64_t requests = run.figures["operations"][operation]["requests"];
		CHECK(requests > 0);
		CHECK(hdr[operation] == requests);
		CHECK(series[operation] == requests);
		CHECK(rows[operation] >= 3);
	}
	CHECK(run.total["requests"] == 5000);
	CHECK(seconds >= 2.79);
	CHECK(load({"-s", redis.socket(), "--hlog", "/nonexistent/x", "-n", "1"}).status == 3);
	CHECK(load({"-s", redis.socket(), "--series", "/nonexistent/x", "-n", "1"}).status == 3);
}

TEST_CASE("percentiles, buckets and distribution: of any kind, exact")
{
	Redis redis;
	Run run(redis, {"-n", "5000", "--percentiles", "0.1,25,50,99.99,100", "--buckets=50us,100us,1ms",
			"--distribution"});
	const auto sorted = run.log.latencies();
	for (const auto &[name, p] : std::map<std::string, double>{
		 {"p0.1", 0.1}, {"p25", 25}, {"p50", 50}, {"p99.99", 99.99}, {"p100", 100}}) {
		INFO(name);
		CHECK(run.total["latency_ns"][name] == percentile(sorted, p));
		CHECK(contains(run.result.out, "  " + name + " "));
	}
	CHECK_FALSE(run.total["latency_ns"].contains("p99"));
	const std::vector<uint64_t> borders = {50000, 100000, 1000000, UINT64_MAX};
	uint64_t below = 0, all = 0;
	for (size_t i = 0; i < borders.size(); i++) {
		const auto upto = static_cast<uint64_t>(
		    std::upper_bound(sorted.begin(), sorted.end(), borders[i]) - sorted.begin());
		CHECK(run.total["buckets"][i]["requests"] == upto - below);
		all += run.total["buckets"][i]["requests"].get<uint64_t>();
		below = upto;
	}
	CHECK(all == 5000);
	CHECK(contains(run.result.out, "> 1 ms"));
	CHECK(contains(run.result.out, "latency distribution"));
	CHECK(contains(run.result.out, "100.000 % <="));
	Run eight(redis, {"-n", "100", "--buckets"});
	CHECK(eight.total["buckets"].size() == 8);
	CHECK(eight.total["buckets"][0]["up_to_ns"] == 25000000);
	CHECK(eight.total["buckets"][7]["over_ns"] == 500000000);
}

TEST_CASE("log slow: slow and failed requests only, and a histogram of all")
{
	Redis redis;
	TempDir dir;
	Process p(
	    load_command({"-s", redis.socket(), "--rate", "1000", "--duration", "2", "-c", "5", "-q", "--log",
			  "slow:100ms", "-o", dir.file("log"), "--json", dir.file("json"), "--no-observer"}));
	sleep_for(Seconds(0.7));
	redis.process().signal(SIGSTOP);
	sleep_for(Seconds(0.4));
	redis.process().signal(SIGCONT);
	REQUIRE(p.wait(Seconds(30)) == 0);
	const Log log = read_log(dir.file("log"));
	CHECK(log.whole());
	CHECK(log.requests.size() >= 250);
	CHECK(log.requests.size() < 2000);
	for (const ft_request &q : log.requests)
		REQUIRE(q.end_ns - q.intended_ns >= 100000000);
	const Json figures = parse_json(read_file(dir.file("json")))["runs"][0];
	CHECK(figures["total"]["requests"] == 2000);
	CHECK(figures["exact"] == false);
	CHECK(figures["percentile_error"] == 0.001);
	CHECK(contains(p.out(), "from the histogram"));
	// Every request is in the log's histograms.
	std::map<std::string, uint64_t> counted;
	ft_reader *reader = nullptr;
	char error[256];
	REQUIRE(ft_reader_open(&reader, dir.file("log").c_str(), error, sizeof(error)) == 0);
	for (ft_block block; ft_reader_next(reader, &block);)
		if (block.kind == FT_BLOCK_HISTOGRAM) {
			const Json h =
			    parse_json(std::string(static_cast<const char *>(block.payload), block.bytes));
			uint64_t sum = 0;
			for (const Json &slot : h["slots"])
				sum += slot[1].get<uint64_t>();
			CHECK(h["count"] == sum);
			counted[h["operation"]] += sum;
		}
	ft_reader_close(reader);
	for (const char *operation : {"GET", "SET"})
		CHECK(figures["operations"][operation]["requests"] == counted[operation]);

	// Failed ones are logged however fast they were.
	redis.command({"DEL", "key:000000000000"});
	redis.command({"LPUSH", "key:000000000000", "x"});
	Run failed(redis, {"-t", "get", "-n", "300", "--log", "slow:10s"}, 3);
	CHECK(failed.log.requests.size() == 300);
	CHECK(failed.log.with_status(FT_STATUS_ERROR_REPLY) == 300);
}

TEST_CASE("latency only probes, intrinsic asks this host")
{
	Redis redis;
	Run probe(redis, {"--latency", "--duration", "1"});
	CHECK(probe.log.requests.size() == 100);
	CHECK(probe.figures["operations"].contains("PING"));
	CHECK(probe.log.connections.size() == 1);
	Memcached memcached;
	for (const char *protocol : {"memcache_text", "memcache_binary"}) {
		const Result r =
		    load({"-s", memcached.socket(), "--protocol", protocol, "--latency", "-n", "20", "-q"});
		INFO(r.err);
		CHECK(r.status == 0);
	}

	TempDir dir;
	const Result r = load({"--intrinsic", "--period", "2ms", "--duration", "1", "--threads", "2", "-q",
			       "-o", dir.file("log"), "--json", dir.file("json")});
	INFO(r.err);
	REQUIRE(r.status == 0);
	const Log log = read_log(dir.file("log"));
	CHECK(log.whole());
	const Json total = parse_json(read_file(dir.file("json")))["runs"][0]["total"];
	CHECK(total["requests"] == log.requests.size());
	CHECK(log.requests.size() <= 1000);
	CHECK(log.requests.size() > 10);
	const auto sorted = log.latencies();
	CHECK(total["latency_ns"]["p99"] == percentile(sorted, 99));
	CHECK(total["latency_ns"]["max"] == sorted.back());
	for (const ft_request &q : log.requests)
		REQUIRE(q.end_ns >= q.intended_ns);
	CHECK(contains(r.out, "wake-up"));
	Process p(load_command({"--intrinsic", "-q"}));
	sleep_for(Seconds(0.3));
	p.signal(SIGINT);
	CHECK(p.wait(Seconds(10)) == 0);
	CHECK(contains(p.out(), "standard deviation"));
}

TEST_CASE("the server's own reports are in the log, unless disabled")
{
	Redis redis({.tcp = false, .config = {"--slowlog-log-slower-than", "0"}});
	Run with(redis, {"--duration", "2500ms", "--rate", "200"});
	Run without(redis, {"--duration", "1500ms", "--rate", "200", "--no-observer"});
	CHECK(with.notes("load-start") == 1);
	CHECK(without.log.notes.size() == 1);
	CHECK(with.log.notes.size() > 1);
	const Recorded told = read_recording(with.dir.file("log")),
		       untold = read_recording(without.dir.file("log"));
	CHECK(told.series.size() > 5);
	CHECK(told.samples.size() > 5);
	CHECK(untold.series.empty());
	CHECK(with.total["requests"] == 500);
	CHECK(with.total["errors"] == 0);
	// Without a log there is no observer.
	CHECK(load({"-s", redis.socket(), "-n", "10", "-q"}).err.empty());
}

TEST_CASE("progress is one line on a terminal, none otherwise or with -q, one per second on request")
{
	Redis redis;
	const Arguments some = {"-s", redis.socket(), "--duration", "1300ms", "--rate", "100"};
	CHECK(load(some).err.empty());
	Arguments asked = some;
	asked.emplace_back("--progress");
	const Result piped = load(asked);
	CHECK(lines(piped.err) == 1);
	CHECK_FALSE(contains(piped.err, "\r"));
	CHECK_FALSE(contains(piped.err, "\033"));
	// script(1) runs it on a new terminal. Both streams become one.
	for (const bool quiet : {false, true}) {
		std::string words;
		for (const std::string &word : load_command(some))
			words += word + " ";
		const Result terminal = run({"script", "-qec", words + (quiet ? "-q" : ""), "/dev/null"});
		if (terminal.status == 127) {
			WARN("SKIPPED: script is not installed");
			return;
		}
		CHECK(terminal.status == 0);
		CHECK(contains(terminal.out, "\r\033[K") == !quiet);
		CHECK(contains(terminal.out, "ETA") == !quiet);
	}
}

TEST_CASE("each second's figures are sent as statsd lines")
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sockaddr_in address = {};
	socklen_t length = sizeof address;
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	REQUIRE(bind(fd, reinterpret_cast<sockaddr *>(&address), length) == 0);
	REQUIRE(getsockname(fd, reinterpret_cast<sockaddr *>(&address), &length) == 0);
	Redis redis;
	Run run(redis, {"--statsd", "127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + ",my.load",
			"--rate", "1000", "--duration", "3", "--ratio", "1:1"});
	std::map<std::string, double> sums;
	char text[2000];
	for (ssize_t n; (n = recv(fd, text, sizeof text, MSG_DONTWAIT)) > 0;)
		for (const std::string &line : split(std::string(text, static_cast<size_t>(n)), '\n')) {
			const size_t colon = line.find(':'), bar = line.find('|');
			CAPTURE(line);
			REQUIRE(colon < bar);
			sums[line.substr(0, colon)] += std::stod(line.substr(colon + 1));
			CHECK((line.substr(bar) == "|c" || line.substr(bar) == "|g"));
		}
	close(fd);
	CHECK(sums["my.load.requests"] == 3000);
	CHECK(sums["my.load.errors"] == 0);
	CHECK(sums["my.load.GET.requests"] + sums["my.load.SET.requests"] == 3000);
	CHECK(sums["my.load.GET.requests"] == run.figures["operations"]["GET"]["requests"].get<double>());
	CHECK(sums["my.load.GET.p99_9"] > 0);
	CHECK(sums["my.load.max"] >= run.total["latency_ns"]["max"].get<double>() * 0.998e-6);
	CHECK(run.figures["by_second"]["reached_by_all"] <=
	      run.figures["by_second"]["reached_by_50_percent"]);
	CHECK(run.figures["by_second"]["seconds"] <= 3);
	for (const char *wrong : {"", ",x", "host:0", "host:70000", "host,", "/run/socket"})
		CHECK(load({"-s", redis.socket(), "--statsd", wrong}).status == 2);
}

namespace
{

// The sum of all samples of a metric, whatever their labels.
double sum_of(const std::string &text, const std::string &metric)
{
	double sum = 0;
	for (const std::string &line : split(text, '\n'))
		if (line.rfind(metric, 0) == 0 && (line[metric.size()] == '{' || line[metric.size()] == ' '))
			sum += std::stod(line.substr(line.rfind(' ')));
	return sum;
}

} // namespace

TEST_CASE("a running load serves its figures as metrics")
{
	Redis redis;
	TempDir dir;
	const std::string path = dir.file("metrics");
	Process p(load_command({"-s", redis.socket(), "--metrics", path, "--rate", "1000", "--duration", "20",
				"--ratio", "1:1", "-q"}));
	std::string text;
	REQUIRE(eventually([&] {
		text = Get(path);
		return sum_of(text, "forktail_load_requests_total") > 1500;
	}));
	CAPTURE(text);
	CHECK(contains(text, "HTTP/1.1 200 OK"));
	CHECK(contains(text, "forktail_load_requests_total{operation=\"GET\",result=\""));
	CHECK(sum_of(text, "forktail_load_latency_seconds_count") ==
	      sum_of(text, "forktail_load_requests_total"));
	CHECK(sum_of(text, "forktail_load_sent_total") >= sum_of(text, "forktail_load_requests_total"));
	CHECK(sum_of(text, "forktail_load_due_per_second") == 1000);
	CHECK(sum_of(text, "forktail_load_latency_seconds_sum") > 0);
	CHECK(contains(Get(path, "/metrics", "Accept: application/openmetrics-text\r\n"), "# EOF\n"));
	p.signal(SIGINT);
	CHECK(p.wait(Seconds(30)) == 0);
	CHECK(access(path.c_str(), F_OK) != 0); // the socket is removed
	const Result r = load({"-s", redis.socket(), "--metrics", "nowhere:x"});
	CHECK(r.status == 2);
	CHECK(contains(r.err, "'nowhere:x' is not an address for metrics"));
}
