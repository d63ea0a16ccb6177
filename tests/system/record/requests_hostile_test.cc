// SPDX-License-Identifier: MIT
// Requests seen in the server's kernel when clients are hostile, events are lost, or the helper process dies:
// memory is bounded, nothing is invented, and the rest of the recording is whole.
#include <arpa/inet.h>
#include <fstream>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"
#include "tests/system/record/requests.h"

using namespace forktail::test;

namespace
{

const std::string kHostile = FORKTAIL_SOURCE_DIR "/tests/system/record/clients/hostile.py";

std::string ReadFile(const std::string &path)
{
	std::ifstream in(path);
	return {std::istreambuf_iterator<char>(in), {}};
}

// The recorder's process that finds requests.
pid_t HelperOf(pid_t recorder)
{
	const auto child = [](pid_t of, const std::string &name) {
		const std::string task = std::to_string(of);
		std::istringstream children(ReadFile("/proc/" + task + "/task/" + task + "/children"));
		for (pid_t pid; children >> pid;)
			if (ReadFile("/proc/" + std::to_string(pid) + "/comm") == name + "\n")
				return pid;
		return 0;
	};
	return child(child(recorder, "forktail-spawn"), "forktail-reqs");
}

// Its own memory: without the ring, which is mapped.
size_t OwnBytes(pid_t pid)
{
	const std::string status = ReadFile("/proc/" + std::to_string(pid) + "/status");
	const size_t at = status.find("RssAnon:");
	return at == std::string::npos ? 0 : std::stoull(status.substr(at + 8)) * 1024;
}

uint64_t Calls(Redis &redis, const std::string &command)
{
	const std::string text = redis.command({"INFO", "commandstats"});
	const size_t at = text.find("cmdstat_" + command + ":calls=");
	return at == std::string::npos ? 0 : std::stoull(text.substr(at + command.size() + 15));
}

// A connection from an address of this host, with one answered PING.
void PingFrom(const std::string &address, int port)
{
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in from = {}, to = {};
	from.sin_family = to.sin_family = AF_INET;
	inet_pton(AF_INET, address.c_str(), &from.sin_addr);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons(static_cast<uint16_t>(port));
	REQUIRE(bind(fd, reinterpret_cast<sockaddr *>(&from), sizeof from) == 0);
	REQUIRE(connect(fd, reinterpret_cast<sockaddr *>(&to), sizeof to) == 0);
	const std::string ping = "*1\r\n$4\r\nPING\r\n";
	char answer[16];
	CHECK(write(fd, ping.data(), ping.size()) == static_cast<ssize_t>(ping.size()));
	CHECK(read(fd, answer, sizeof answer) > 0);
	close(fd);
}

// The addresses of clients over TCP, as they were recorded, in the order of connections.
std::vector<std::string> RecordedAddresses(const std::string &path, uint32_t flags)
{
	std::vector<std::string> all;
	for (const auto &[id, c] : read_log(path).connections)
		if (c.local_port) {
			CHECK(c.client_flags == flags);
			all.emplace_back(reinterpret_cast<const char *>(c.client_address),
					 sizeof c.client_address);
		}
	return all;
}

} // namespace

TEST_CASE("hostile clients neither grow the recorder nor invent requests")
{
	REQUIRE(root());
	constexpr size_t kGrowth = 64 << 20;
	Redis redis;
	Recorder recorder(redis.pid(), {"--requests=1/1"});
	const pid_t helper = HelperOf(recorder.process().pid());
	REQUIRE(helper > 0);
	const size_t before = OwnBytes(recorder.process().pid()), helper_before = OwnBytes(helper);
	REQUIRE(helper_before > 0);
	for (const std::string kind :
	     {"garbage", "halves", "announced", "large", "name", "unread", "connections"}) {
		const Result r = run({"/usr/bin/python3", kHostile, redis.socket(), kind});
		INFO(kind << "\n" << r.err);
		REQUIRE(r.status == 0);
		CHECK(OwnBytes(recorder.process().pid()) < before + kGrowth);
		CHECK(OwnBytes(helper) < helper_before + kGrowth);
	}
	const std::map<std::string, std::string> names = {
	    {"SET", "set"}, {"GET", "get"}, {"PING", "ping"}, {"DEL", "del"}};
	std::map<std::string, uint64_t> calls;
	for (const auto &[upper, lower] : names)
		calls[upper] = Calls(redis, lower);
	TempDir dir;
	REQUIRE(load({"-s", redis.socket(), "-n", "2000", "-t", "lpush", "-q", "--no-observer", "-o",
		      dir.file("load.forktail")})
		    .status == 0);
	recorder.stop();
	const Log kernel = read_log(recorder.path());
	INFO(requests_note(kernel).dump());
	CHECK(kernel.whole());
	auto seen = seen_commands(kernel);
	for (const auto &[name, count] : seen) {
		INFO(name << ": " << count << " seen, " << calls[name] << " executed");
		if (names.count(name))
			CHECK(count <= calls[name]);
	}
	CHECK(seen["SET"] > 0);
	CHECK(seen["GET"] >= 2);
	CHECK(seen["PING"] > 100);
	const Agreement a = compare_requests(read_log(dir.file("load.forktail")), kernel);
	INFO(a);
	CHECK(a.invented == 0);
	CHECK(a.missed() == 0);
}

TEST_CASE("a helper that stands still loses requests, but confuses none")
{
	REQUIRE(root());
	const bool tcp = GENERATE(false, true);
	INFO((tcp ? "TCP" : "Unix, pipeline of 16"));
	Redis redis({.tcp = tcp});
	TempDir dir;
	Recorder recorder(redis.pid(), {"--requests=1/1"});
	const pid_t helper = HelperOf(recorder.process().pid());
	REQUIRE(helper > 0);
	Arguments arguments = {
	    "-c",     "20",	"-t", "get",	       "--duration", "3s",
	    "--rate", "100000", "-q", "--no-observer", "-o",	     dir.file("load.forktail")};
	const Arguments at =
	    tcp ? Arguments{"-p", std::to_string(redis.port())} : Arguments{"-s", redis.socket(), "-P", "16"};
	arguments.insert(arguments.end(), at.begin(), at.end());
	Process load(load_command(arguments));
	sleep_for(Seconds(0.5));
	kill(helper, SIGSTOP);
	sleep_for(Seconds(2));
	kill(helper, SIGCONT);
	const uint64_t continued_ns = ft_now_ns();
	REQUIRE(load.wait(Seconds(60)) == 0);
	const Recorded recorded = recorder.stop();
	const Log kernel = read_log(recorder.path());
	const Json note = requests_note(kernel);
	const Agreement a = compare_requests(read_log(dir.file("load.forktail")), kernel);
	INFO(a << "\n" << note.dump());
	CHECK(note["dropped_events"] > 0);
	CHECK(recorded.dropped() >= note["dropped_events"].get<uint64_t>());
	CHECK(a.missed() > 0);
	CHECK(a.invented == 0);
	CHECK(a.late <= (tcp ? 0 : a.sent / 200));
	size_t later = 0;
	for (const ft_request &q : kernel.requests)
		later += q.start_ns > continued_ns;
	CHECK(later > 1000);
}

TEST_CASE("a helper that ended is started again, and requests are recorded from then on")
{
	REQUIRE(root());
	Redis redis;
	Recorder recorder(redis.pid(), {"--requests=1/1"});
	const pid_t helper = HelperOf(recorder.process().pid());
	REQUIRE(helper > 0);
	Process load(load_command(
	    {"-s", redis.socket(), "-c", "20", "-t", "set", "--duration", "3s", "-q", "--no-observer"}));
	sleep_for(Seconds(0.7));
	kill(helper, SIGKILL);
	const uint64_t killed_ns = ft_now_ns();
	REQUIRE(eventually([&] {
		const pid_t now = HelperOf(recorder.process().pid());
		return now > 0 && now != helper;
	}));
	const uint64_t again_ns = ft_now_ns();
	REQUIRE(load.wait(Seconds(60)) == 0);
	const Recorded recorded = recorder.stop();
	const std::string said = recorder.process().err();
	INFO(said);
	const std::string sentence = "the helper process that finds requests ended. It is started again";
	REQUIRE(contains(said, sentence));
	CHECK(said.find(sentence) == said.rfind(sentence));
	const Log kernel = read_log(recorder.path());
	CHECK(kernel.whole());
	const auto count = [&](uint64_t from_ns, uint64_t to_ns) {
		return std::ranges::count_if(kernel.requests, [&](const ft_request &q) {
			return q.start_ns > from_ns && q.start_ns < to_ns;
		});
	};
	CHECK(count(0, killed_ns) > 500);
	CHECK(count(again_ns + 500'000'000, UINT64_MAX) > 500);
	for (const bool on : {false, true})
		CHECK(std::ranges::count_if(kernel.notes, [&](const Json &n) {
			      return n.value("kind", "") == "requests-slice" && n.value("on", !on) == on;
		      }) == 1);
	CHECK(std::ranges::any_of(recorded.spans,
				  [&](const ft_span &s) { return s.start_ns > killed_ns + 500'000'000; }));
}

TEST_CASE("addresses of clients can be hashed")
{
	REQUIRE(root());
	// Else it refuses clients of other addresses than 127.0.0.1.
	Redis redis({.tcp = true, .config = {"--protected-mode", "no"}});
	std::vector<std::vector<std::string>> all;
	for (const Arguments &options :
	     {Arguments{"--requests=1/1", "--hash-clients"}, Arguments{"--requests=1/1", "--hash-clients"},
	      Arguments{"--requests=1/1"}}) {
		Recorder recorder(redis.pid(), options);
		for (const std::string address : {"127.0.0.1", "127.0.0.2", "127.0.0.1"})
			PingFrom(address, redis.port());
		recorder.stop();
		const bool hashed = options.size() == 2;
		all.push_back(RecordedAddresses(recorder.path(), hashed ? FT_CLIENT_HASHED : 0));
		REQUIRE(all.back().size() == 3);
		CHECK(all.back()[0] == all.back()[2]);
		CHECK(all.back()[0] != all.back()[1]);
	}
	CHECK(all[0][0] != all[1][0]);
	CHECK(all[0][1] != all[1][1]);
	const std::string plain = all[2][0];
	CHECK(plain.substr(12) == std::string("\x7f\0\0\1", 4));
	for (size_t i = 0; i < 2; i++)
		for (const std::string &hash : all[i]) {
			CHECK(hash != plain);
			CHECK(hash.find(plain.substr(12)) == std::string::npos);
		}
}
