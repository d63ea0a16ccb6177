// SPDX-License-Identifier: MIT
// A delay in one direction between two hosts whose clocks are a day apart. The load generator is in a time
// namespace, and a relay between it and the server delays one direction. Explain must find it in that
// direction, or report that it cannot decide.
#include <arpa/inet.h>
#include <atomic>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <thread>

#include "support.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

constexpr int kDelay_ms = 5;

int Socket(const char *address, int port, bool listen_there)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	sockaddr_in at = {};
	at.sin_family = AF_INET;
	at.sin_port = htons(static_cast<uint16_t>(port));
	inet_pton(AF_INET, address, &at.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	const auto *name = reinterpret_cast<sockaddr *>(&at);
	const bool ok = listen_there ? bind(fd, name, sizeof at) == 0 && listen(fd, 64) == 0
				     : connect(fd, name, sizeof at) == 0;
	if (!ok)
		throw std::runtime_error("no socket for the forwarder");
	return fd;
}

// Relays TCP between the load generator's host and the server's, from this host, which is neither.
class Forwarder
{
public:
	Forwarder(const std::string &server, int there_ms, int back_ms)
	    : server_(server), there_ms_(there_ms), back_ms_(back_ms),
	      listens_(Socket("10.77.0.254", kPort, true)), accepts_([this] { Accept(); })
	{
	}
	~Forwarder()
	{
		ended_ = true;
		shutdown(listens_, SHUT_RDWR);
		accepts_.join();
		for (int fd : all_)
			shutdown(fd, SHUT_RDWR);
		for (std::thread &t : ways_)
			t.join();
		for (int fd : all_)
			close(fd);
		close(listens_);
	}
	static constexpr int kPort = 6400;

private:
	void Accept()
	{
		while (!ended_) {
			const int client = accept(listens_, nullptr, nullptr), on = 1;
			if (client < 0)
				continue;
			setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
			const int server = Socket(server_.c_str(), 6379, false);
			all_.insert(all_.end(), {client, server});
			ways_.emplace_back(Pass, client, server, there_ms_);
			ways_.emplace_back(Pass, server, client, back_ms_);
		}
	}
	static void Pass(int from, int to, int delay_ms)
	{
		char bytes[4096];
		for (ssize_t n; (n = read(from, bytes, sizeof bytes)) > 0;) {
			std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
			if (write(to, bytes, static_cast<size_t>(n)) != n)
				break;
		}
		shutdown(to, SHUT_WR);
	}

	const std::string server_;
	const int there_ms_, back_ms_;
	const int listens_;
	std::atomic<bool> ended_ = false;
	std::vector<int> all_;
	std::vector<std::thread> ways_;
	std::thread accepts_;
};

struct Two : Hosts {
	Two() : Hosts({"redis-a", "client-a"}) { serve_redis("redis-a"); }
	std::vector<std::string> A_day_ahead(std::vector<std::string> argv) const
	{
		argv.insert(argv.begin(),
			    {"unshare", "-T", "--monotonic", "86400", "--fork", "--kill-child"});
		return on("client-a", argv);
	}
};

void Ended(Process *process, bool asked)
{
	if (asked)
		process->signal(SIGINT);
	INFO(process->err());
	REQUIRE(process->wait(Seconds(30)) == 0);
}

void Says(Process *process, const std::string &text)
{
	REQUIRE(eventually([&] { return process->err().find(text) != std::string::npos; }, Seconds(60)));
}

// Records three seconds with 50 requests per second on one connection. Returns the explanation.
Json Explained(const Two &hosts, int there_ms, int back_ms)
{
	Forwarder between(hosts.address("redis-a"), there_ms, back_ms);
	TempDir dir;
	const std::string forktail = program("forktail"), at = hosts.address("redis-a");
	Process serve(hosts.on("redis-a", {forktail, "clock", "serve", "--listen", at + ":7380"}));
	Says(&serve, "answering on");
	Process recorder(
	    hosts.on("redis-a", {forktail, "record", "--port", "6379", "-o", dir.file("server.forktail")}));
	Says(&recorder, "recording ");
	Process probe(
	    hosts.A_day_ahead({forktail, "clock", "probe", at + ":7380", "-o", dir.file("clock.forktail"),
			       "--interval", "20ms", "--duration", "6s"}));
	Says(&probe, "comparing clocks with");
	Process load(hosts.A_day_ahead(
	    {forktail, "load", "-q", "--server", "10.77.0.254:" + std::to_string(Forwarder::kPort), "-o",
	     dir.file("load.forktail"), "--rate", "50", "-c", "1", "--duration", "3", "--arrival-times"}));
	Ended(&load, false);
	Ended(&probe, false); // unshare does not forward signals to it
	Ended(&recorder, true);
	Ended(&serve, true);
	const Result r = run({forktail, "explain", "--json", "--requests", "--slow", "3ms", dir.path()});
	INFO(r.err);
	REQUIRE(r.status == 0);
	const Json json = parse_json(r.out);
	REQUIRE(json["slow_requests"].size() > 100);
	const std::string id = std::to_string(json["slow_requests"][50]["id"].get<uint64_t>());
	const Result one = run({forktail, "explain", "--slow", "3ms", "--request", id, dir.path()});
	INFO(one.out << one.err);
	CHECK(one.out.find("Legs between the hosts (clocks known to within ") != std::string::npos);
	CHECK(one.out.find("request on the network") != std::string::npos);
	return json;
}

struct Sums {
	double there = 0, back = 0, server = 0, unknown = 0, latency = 0, bound = 0;
};

Sums SumsOf(const Json &json)
{
	Sums sums;
	for (const Json &r : json["slow_requests"]) {
		const Json &legs = r["legs"];
		uint64_t all = 0;
		for (const char *leg :
		     {"late_ns", "to_server_ns", "at_server_ns", "from_server_ns", "unread_ns", "unknown_ns"})
			all += legs[leg].get<uint64_t>();
		REQUIRE(all == r["latency_ns"].get<uint64_t>());
		sums.there += legs["to_server_ns"].get<double>();
		sums.back += legs["from_server_ns"].get<double>();
		sums.server += legs["at_server_ns"].get<double>();
		sums.unknown += legs["unknown_ns"].get<double>();
		sums.latency += r["latency_ns"].get<double>();
		sums.bound = std::max(sums.bound, legs["bound_ns"].get<double>());
	}
	INFO("there " << sums.there << ", back " << sums.back << ", server " << sums.server << ", unknown "
		      << sums.unknown << " of " << sums.latency << ", within " << sums.bound);
	CHECK(sums.bound > 0);
	CHECK(sums.server < 0.2 * sums.latency); // it did nothing unusual
	return sums;
}

} // namespace

TEST_CASE("A delay in one direction is on that leg, or the clocks cannot decide")
{
	if (const std::string why = why_no_hosts(); !why.empty()) {
		WARN("SKIPPED: " << why);
		return;
	}
	Two hosts;
	if (run(hosts.A_day_ahead({"true"})).status != 0) {
		WARN("SKIPPED: needs time namespaces");
		return;
	}
	for (const bool there : {true, false}) {
		INFO((there ? "requests" : "answers") << " are delayed");
		const Sums sums = SumsOf(Explained(hosts, there ? kDelay_ms : 0, there ? 0 : kDelay_ms));
		const double wrong = there ? sums.back : sums.there, right = there ? sums.there : sums.back;
		CHECK(wrong < 0.2 * sums.latency);
		CHECK(right + sums.unknown > 0.6 * sums.latency);
		if (sums.bound < 1e6) // nothing prevented a decision
			CHECK(right > 0.5 * sums.latency);
	}
}
