// SPDX-License-Identifier: MIT
// Broken clusters: redirects in a circle, to dead addresses, to invalid addresses, without end, and CLUSTER
// SLOTS that is cut or invented. The load ends, reports what happened, and loses no request.
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/load/fake.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

namespace
{

bool asks(const std::string &request, const char *word)
{
	return contains(request, word);
}

// One node that serves all slots at `port`.
std::string all_slots(int port)
{
	return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + std::to_string(port) + "\r\n";
}

int port_of(const FakeServer &s)
{
	return std::stoi(s.where().at(1));
}

// A node that answers like a real one, and `act` to everything else. Its own port is known once it listens.
struct Node {
	std::atomic<int> port = 0;
	std::atomic<int> pause_ms = 0; // before it reads what a new connection sends
	std::function<std::string(const std::string &)> act;
	std::atomic<const char *> slots = nullptr; // else it has all of them
	FakeServer server;

	explicit Node(std::function<std::string(const std::string &)> then)
	    : act(std::move(then)), server([this](Peer &peer) { talk(peer); }, false)
	{
		port = port_of(server);
	}
	std::string address() const { return "127.0.0.1:" + std::to_string(port); }

private:
	void talk(Peer &peer)
	{
		std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
		after_greeting([this](Peer &who, const std::string &request) {
			std::string answer;
			// One read may return several commands.
			for (size_t at = request.find('*'), next; at != std::string::npos; at = next) {
				next = request.find('*', at + 1);
				answer += answer_to(request.substr(at, next - at));
			}
			return who.say(answer);
		})(peer);
	}
	std::string answer_to(const std::string &one)
	{
		const char *made_up = slots;
		if (asks(one, "SLOTS"))
			return made_up ? made_up : all_slots(port);
		if (asks(one, "COMMAND"))
			return "-ERR unknown command\r\n";
		return asks(one, "SETNAME") || asks(one, "ASKING") ? "+OK\r\n" : act(one);
	}
};

struct Outcome {
	Result result;
	Json total, run;
	Log log;
};

Outcome load_on(const Node &n, const Arguments &more)
{
	TempDir dir;
	Outcome o;
	Arguments all = {"--cluster", "--server", n.address(),	   "-q",     "--no-observer",  "-t",
			 "get",	      "-o",	  dir.file("log"), "--json", dir.file("json"), "--drain",
			 "1s"};
	all.insert(all.end(), more.begin(), more.end());
	o.result = load(all, {}, Seconds(60));
	INFO(o.result.err);
	REQUIRE(!o.result.timed_out);
	o.log = read_log(dir.file("log"));
	o.run = parse_json(read_file(dir.file("json")))["runs"][0];
	o.total = o.run["total"];
	CHECK(o.total["requests"] == o.log.requests.size());
	return o;
}

} // namespace

TEST_CASE("redirects in a circle end as errors")
{
	for (const char *kind : {"MOVED", "ASK"}) {
		INFO(kind);
		std::atomic<int> other = 0;
		Node a([&](const std::string &) {
			return "-" + std::string(kind) + " 1 127.0.0.1:" + std::to_string(other) + "\r\n";
		});
		Node b([&](const std::string &) {
			return "-" + std::string(kind) + " 1 127.0.0.1:" + std::to_string(a.port) + "\r\n";
		});
		other = b.port.load();
		const Outcome o = load_on(a, {"-n", "20", "-c", "1"});
		CHECK(o.total["requests"] == 20);
		CHECK(o.log.with_status(FT_STATUS_ERROR_REPLY) == 20);
		CHECK(o.run["error_replies"][kind] == 20);
	}
}

TEST_CASE("a redirect to a dead address waits for --retry and no longer")
{
	const int nobody = free_port();
	Node a([&](const std::string &) { return "-MOVED 1 127.0.0.1:" + std::to_string(nobody) + "\r\n"; });
	const Outcome o = load_on(a, {"-n", "5", "-c", "1", "--retry", "500ms"});
	CHECK(o.total["requests"] == 5);
	CHECK(o.log.with_status(FT_STATUS_OK) == 0);
	for (const ft_request &q : o.log.requests)
		CHECK(q.end_ns - q.intended_ns >= 100000000);
}

TEST_CASE("an invalid redirect is an error reply, whatever it resembles")
{
	for (const char *text :
	     {"-MOVED\r\n", "-MOVED 1\r\n", "-MOVED x 127.0.0.1:1\r\n", "-MOVED 99999 127.0.0.1:1\r\n",
	      "-MOVED 1 127.0.0.1\r\n", "-MOVED 1 127.0.0.1:0\r\n", "-MOVED 1 127.0.0.1:65536\r\n",
	      "-MOVED 1 :::::\r\n", "-ASK 1 \r\n"}) {
		INFO(text);
		Node a([&](const std::string &) { return std::string(text); });
		const Outcome o = load_on(a, {"-n", "10", "-c", "2"});
		CHECK(o.log.with_status(FT_STATUS_ERROR_REPLY) == 10);
	}
	// As long as a line may be.
	Node a([&](const std::string &) { return "-MOVED 1 " + std::string(100000, 'h') + ":1\r\n"; });
	CHECK(load_on(a, {"-n", "4", "-c", "1"}).log.with_status(FT_STATUS_ERROR_REPLY) == 4);
}

TEST_CASE("a cluster that stays down: requests end after --retry")
{
	Node a([&](const std::string &) { return std::string("-CLUSTERDOWN The cluster is down\r\n"); });
	const Outcome o = load_on(a, {"-n", "6", "-c", "2", "--retry", "300ms"});
	CHECK(o.total["requests"] == 6);
	CHECK(o.log.with_status(FT_STATUS_OK) == 0);
	CHECK(o.run["redirects"]["later"].get<uint64_t>() > 6);
	REQUIRE(o.run["nodes"].size() == 1);
	CHECK(o.run["nodes"][0]["requests"] == 6); // the server did not say where keys are, and they have one
	REQUIRE(o.run["outages"].size() == 1);
	CHECK(o.run["outages"][0]["failed"] == 6);
	CHECK(o.run["outages"][0]["first_ok_ns"] == 0);
}

TEST_CASE("a redirect after a long wait is followed as at once")
{
	for (const char *kind : {"MOVED", "ASK"}) {
		INFO(kind);
		Node b([](const std::string &) { return std::string("$1\r\nx\r\n"); });
		std::atomic<int> asked = 0;
		Node a([&](const std::string &) {
			return asked++ < 30 ? "-CLUSTERDOWN The cluster is down\r\n"
					    : "-" + std::string(kind) + " 1 " + b.address() + "\r\n";
		});
		const Outcome o = load_on(a, {"-n", "1", "-c", "1", "--retry", "30s"});
		CHECK(o.run["redirects"]["later"] == 30);
		CHECK(o.log.with_status(FT_STATUS_OK) == 1);
		CHECK(o.total["errors"] == 0);
	}
}

TEST_CASE("an ASK to a dead address: the key's own server is tried again once that is known")
{
	const int nobody = free_port();
	std::atomic<int> asked = 0;
	Node a([&](const std::string &) {
		return asked++ == 0 ? "-ASK 1 127.0.0.1:" + std::to_string(nobody) + "\r\n"
				    : std::string("$1\r\nx\r\n");
	});
	const Outcome o = load_on(a, {"-n", "5", "-c", "1", "--retry", "30s"});
	CHECK(o.log.with_status(FT_STATUS_OK) == 5);
	CHECK(o.run["redirects"]["ask"] == 1);
}

TEST_CASE("redirected requests of a connection's last answers are sent, although it is lost")
{
	Node b([](const std::string &) {
		// Until no request waits that would be checked from time to time.
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
		return std::string("$1\r\nx\r\n");
	});
	std::atomic<int> asked = 0;
	Node a([&](const std::string &) {
		const std::string ask = "-ASK 1 " + b.address() + "\r\n";
		switch (asked++) {
		case 0:
			return ask;
		case 1:
			return std::string("$1\r\nx\r\n");
		case 2:
			return std::string(); // together with the next one's
		default:
			return ask + "this is no reply\r\n";
		}
	});
	const Outcome o = load_on(a, {"-n", "4", "-c", "1", "-P", "2", "--on-error", "continue"});
	CHECK(o.log.with_status(FT_STATUS_OK) == 3);
	CHECK(o.log.with_status(FT_STATUS_WRONG) == 1);
}

TEST_CASE("a later test waits as long for a slow server as the first, whatever else is checked")
{
	TempDir dir;
	Node a([&](const std::string &request) {
		a.pause_ms = 800; // longer than the topology's own questions wait
		return asks(request, "LPUSH")	 ? std::string(":600\r\n")
		       : asks(request, "LRANGE") ? std::string("*1\r\n$1\r\nx\r\n")
						 : std::string("$1\r\nx\r\n");
	});
	const Result r =
	    load({"--cluster", "--server", a.address(), "-q", "--no-observer", "-t", "get,lrange_100",
		  "--rate", "4", "-n", "8", "-c", "1", "--json", dir.file("json")});
	INFO(r.err);
	CHECK(r.status == 0);
	const Json runs = parse_json(read_file(dir.file("json")))["runs"];
	REQUIRE(runs.size() == 2);
	for (const Json &run : runs)
		CHECK(run["total"]["requests"] == 8);
}

TEST_CASE("invented CLUSTER SLOTS: refused in a sentence, or its valid part is used")
{
	const std::vector<std::string> bad = {
	    "*1\r\n*3\r\n:0\r\n:16383\r\n*0\r\n",
	    "*1\r\n*3\r\n:0\r\n:16383\r\n$1\r\nx\r\n",
	    "*1\r\n*3\r\n:-5\r\n:-1\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n",
	    "*1\r\n*3\r\n:20000\r\n:9000000000\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n",
	    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:70000\r\n",
	    "*1\r\n:3\r\n",
	    "*0\r\n",
	    ":7\r\n",
	    "+OK\r\n",
	    "nonsense\r\n"};
	for (const std::string &slots : bad) {
		INFO(slots);
		Node a([&](const std::string &) { return std::string("$-1\r\n"); });
		a.slots = slots.c_str();
		const Result r =
		    load({"--cluster", "--server", a.address(), "-q", "--no-observer", "-n", "1"});
		CHECK(r.status == 3);
		CHECK(lines(r.err) == 1);
	}
	// Cut at every byte: the server closes after its text.
	Node a([&](const std::string &) { return std::string("$-1\r\n"); });
	const std::string whole = all_slots(a.port);
	for (size_t cut = 1; cut < whole.size(); cut += 7) {
		FakeServer server(
		    [&](Peer &peer) {
			    for (std::string request; !(request = peer.hear()).empty();) {
				    const std::string answer = greeting_answer(request);
				    if (answer.empty()) {
					    peer.say(whole.substr(0, cut));
					    return;
				    }
				    peer.say(answer);
			    }
		    },
		    false);
		const Result r =
		    load({"--cluster", "--server", "127.0.0.1:" + server.where().at(1), "-q", "-n", "1"});
		CHECK(r.status == 3);
		CHECK(lines(r.err) == 1);
	}
}
