// SPDX-License-Identifier: MIT
// Hostile or completely broken servers, in each protocol: forktail-load ends by itself, reports the reason in
// one sentence, exits with the right status, leaves a complete log, and uses little memory.
//
// The memory is that of the largest child so far (RUSAGE_CHILDREN). The tested programs are this test's only
// children, so the test that needs more memory comes last.
#include <csignal>
#include <sys/resource.h>

#include "common/text.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/load/fake.h"
#include "tests/system/load/load.h"

using namespace forktail::test;
using namespace std::chrono_literals;

namespace
{

const std::string hit = binary_reply(0, 0, std::string(4, 0), "abc"), stored = binary_reply(1, 0, "", "");
const std::vector<std::pair<std::string, std::pair<std::string, std::string>>> protocols = {
    {"redis", {"$3\r\nabc\r\n", "+OK\r\n"}},
    {"memcache_text", {"VALUE key:000000000000 0 3\r\nabc\r\nEND\r\n", "STORED\r\n"}},
    {"memcache_binary", {hit, stored}},
    {"memcache_meta", {"VA 3 O@\r\nabc\r\n", "HD O@\r\n"}},
    // RESP3: pushes and attributes around an answer, which is a streamed string.
    {"resp3",
     {">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n|1\r\n+ttl\r\n:3600\r\n$?\r\n;1\r\na\r\n;2\r\nbc\r\n;"
      "0\r\n",
      ">1\r\n+x\r\n+OK\r\n"}}};

long largest_child_kb()
{
	rusage used;
	getrusage(RUSAGE_CHILDREN, &used);
	return used.ru_maxrss;
}

std::string repeated(const std::string &text, size_t times)
{
	std::string all;
	all.reserve(text.size() * times);
	for (size_t i = 0; i < times; i++)
		all += text;
	return all;
}

// A run against a hostile server, with the checks for every such server.
struct Run {
	TempDir dir;
	Result result;
	Log log;
	Json json, total;

	Run(const FakeServer &server, const std::string &protocol, const Arguments &more)
	{
		Arguments all = {"-q",
				 "-o",
				 dir.file("log"),
				 "--json",
				 dir.file("json"),
				 "--protocol",
				 protocol == "resp3" ? "redis" : protocol};
		if (protocol == "resp3")
			all.push_back("--resp3");
		all.insert(all.end(), more.begin(), more.end());
		result = load(server.where(all), {}, Seconds(30));
		INFO(protocol);
		INFO(result.err);
		REQUIRE_FALSE(result.timed_out);
		REQUIRE(result.status < 128);
		log = read_log(dir.file("log"));
		CHECK(log.error == "");
		CHECK(log.whole());
		json = parse_json(read_file(dir.file("json")));
		total = json["runs"][0]["total"];
		CHECK(total["requests"] == log.requests.size());
		CHECK(json["exit_status"] == result.status);
		if (!FORKTAIL_SANITIZED)
			CHECK(largest_child_kb() < 200 * 1024);
	}
	// It gave up both connections, for this reason, and reported that once.
	void lost(const std::string &why)
	{
		INFO(result.err);
		CHECK(result.status == 3);
		CHECK(result.err == "forktail-load: all 2 connections were lost: " + why + "\n");
		CHECK(json["reason"] == "server lost");
		CHECK(contains(result.out, "connections lost"));
	}
};

const char *const no_reply = "the server sent an invalid reply for this protocol";
const char *const out_of_step = "the server did not answer the oldest request first: the opaque differs";
const char *const too_late = "no answer within --timeout";
const char *const closed = "the server closed the connection";
const Arguments two_gets = {"-t", "get", "-n", "20", "-c", "2", "--timeout", "400ms", "--no-observer"};

// A server's answer to each GET, its protocol, and the expected message.
struct Attack {
	const char *protocol, *what;
	std::string begin, then; // `then` repeatedly, as long as it is read
	const char *why;
};

std::vector<Attack> attacks()
{
	const std::string much(60000, 'x');
	std::string wrong_magic = hit, extras_beyond_body = hit, closing = "VALUE key 0 3\r\nabcXXEND\r\n";
	wrong_magic[0] = static_cast<char>(0x80);
	extras_beyond_body[4] = 60;
	return {
	    {"redis", "garbage", "garbage\r\n", "", no_reply},
	    {"redis", "zeros", std::string(1000, 0), "", no_reply},
	    {"redis", "negative length", "$-5\r\n", "", no_reply},
	    {"redis", "negative count", "*-7\r\n", "", no_reply},
	    {"redis", "a count past all sense", "*99999999999999\r\n", "", no_reply},
	    {"redis", "a length past all sense", "$99999999999999\r\n", "", no_reply},
	    {"redis", "a length that is no number", "$12a\r\n", "", no_reply},
	    {"redis", "arrays 10,000 deep", repeated("*1\r\n", 10000), "", no_reply},
	    {"redis", "a string without its end", "$3\r\nabcdef\r\n", "", no_reply},
	    {"redis", "digits without end", ":", repeated("1", 60000), no_reply},
	    {"redis", "a string without end", "$4000000000\r\n", much, too_late},
	    {"redis", "a line without end", "+", much, too_late},
	    {"redis", "an error without end", "-ERR", much, too_late},
	    {"redis", "an array without end", "*4000000000\r\n", repeated(":1\r\n", 10000), too_late},
	    {"redis", "half a reply", "$10\r\nabc", "", too_late},
	    // RESP3's types
	    {"resp3", "a map of more than will ever come", "%2147483647\r\n", repeated(":1\r\n", 10000),
	     too_late},
	    {"resp3", "a map past all sense", "%2147483648\r\n", "", no_reply},
	    {"resp3", "attributes 10,000 deep", repeated("|1\r\n", 10000), "", no_reply},
	    {"resp3", "attributes without end", "", repeated("|1\r\n+a\r\n+b\r\n", 4000), too_late},
	    {"resp3", "a streamed array without end", "*?\r\n", repeated(":1\r\n", 10000), too_late},
	    {"resp3", "a streamed string without end", "$?\r\n", repeated(";4\r\nabcd\r\n", 5000), too_late},
	    {"resp3", "pushes without end", "", repeated(">1\r\n+a\r\n", 5000), too_late},
	    {"resp3", "a push within an array", "*1\r\n>1\r\n+a\r\n", "", no_reply},
	    {"resp3", "an end of no stream", ".\r\n", "", no_reply},
	    {"resp3", "half a push", ">2\r\n+a\r\n", "", too_late},
	    {"resp3", "a big number without end", "(", repeated("1", 60000), too_late},
	    // A server may not push without a request for RESP3.
	    {"redis", "a push", ">1\r\n+a\r\n", "", no_reply},
	    {"memcache_meta", "garbage", "garbage\r\n", "", no_reply},
	    {"memcache_meta", "zeros", std::string(1000, 0), "", no_reply},
	    {"memcache_meta", "a length past all sense", "VA 99999999999999\r\n", "", no_reply},
	    {"memcache_meta", "a negative length", "VA -1\r\n", "", no_reply},
	    {"memcache_meta", "a value without its end", "VA 3 O0\r\nabcXX", "", no_reply},
	    {"memcache_meta", "a line without end", "HD k", much, no_reply},
	    {"memcache_meta", "a value without end", "VA 1000000000\r\n", "", too_late},
	    {"memcache_meta", "the end of no batch", "MN\r\n", "", out_of_step},
	    {"memcache_meta", "half a reply", "VA 10\r\nab", "", too_late},
	    {"memcache_meta", "another request's opaque", "HD O000000000007\r\n", "", out_of_step},
	    {"memcache_meta", "another opaque", "VA 3 Oabc\r\nabc\r\n", "", out_of_step},
	    {"memcache_meta", "no opaque", "VA 3\r\nabc\r\n", "", out_of_step},
	    {"memcache_text", "garbage", "garbage\r\n", "", no_reply},
	    {"memcache_text", "zeros", std::string(1000, 0), "", no_reply},
	    {"memcache_text", "negative length", "VALUE key 0 -1\r\n", "", no_reply},
	    {"memcache_text", "a length past all sense", "VALUE key 0 99999999999999\r\n", "", no_reply},
	    {"memcache_text", "a value without its end", closing, "", no_reply},
	    {"memcache_text", "a key without end", "VALUE ", much, no_reply},
	    {"memcache_text", "a line without end", "SERVER_ERROR ", much, no_reply},
	    {"memcache_text", "a value without end", "VALUE key 0 1000000000\r\n", "", too_late},
	    {"memcache_text", "values without end", "", repeated("VALUE k 0 3\r\nabc\r\n", 3000), too_late},
	    {"memcache_text", "half a reply", "VALUE key 0 10\r\nab", "", too_late},
	    {"memcache_binary", "garbage", "garbage\r\n", "", no_reply},
	    {"memcache_binary", "a request's magic", wrong_magic, "", no_reply},
	    {"memcache_binary", "extras beyond the body", extras_beyond_body, "", no_reply},
	    {"memcache_binary", "a length past all sense", binary_reply(0, 0, "", "", 4000000000u), "",
	     no_reply},
	    {"memcache_binary", "a value that does not arrive", binary_reply(0, 0, "abcd", "", 1000000000u),
	     "", too_late},
	    {"memcache_binary", "half a header", hit.substr(0, 13), "", too_late},
	};
}

} // namespace

TEST_CASE("replies that are invalid or never end: both connections are given up, with the reason")
{
	for (const bool on_unix : {true, false})
		for (const Attack &a : attacks()) {
			// Over TCP the same bytes arrive in other pieces. A few cases are enough.
			if (!on_unix && !contains(a.what, "garbage") && !contains(a.what, "without end"))
				continue;
			INFO(a.protocol << ": " << a.what);
			FakeServer server(after_greeting([&](Peer &peer, const std::string &) {
						  peer.say(a.begin);
						  if (!a.then.empty())
							  peer.say_on(a.then);
						  return true;
					  }),
					  on_unix);
			Run run(server, a.protocol, two_gets);
			run.lost(a.why);
			CHECK(run.log.with_status(a.why == too_late ? FT_STATUS_TIMEOUT : FT_STATUS_WRONG) ==
			      2);
			CHECK(run.log.requests.size() == 2);
		}
}

TEST_CASE("replies cut at every byte are replies, checked or not")
{
	for (const auto &[protocol, good] : protocols)
		for (const bool on_unix : {true, false}) {
			INFO(protocol);
			const auto &[get, set] = good;
			FakeServer server(
			    after_greeting([&](Peer &peer, const std::string &request) {
				    const bool is_set =
					contains(request, "SET") || contains(request, "set ") ||
					(request[0] == static_cast<char>(0x80) && request[1] == 1) ||
					request.rfind("ms ", 0) == 0;
				    return peer.trickle(with_opaque(is_set ? set : get, request), 200us);
			    }),
			    on_unix);
			Run run(server, protocol, {"-n", "60", "-c", "2", "--no-observer"});
			INFO(run.result.err);
			CHECK(run.result.status == 0);
			CHECK(run.log.requests.size() == 60);
			CHECK(run.log.with_status(FT_STATUS_OK) == 60);
			CHECK(run.result.err.empty());
		}
}

TEST_CASE("a reply of 512 MB is read without being stored")
{
	FakeServer server(after_greeting([](Peer &peer, const std::string &) {
		const std::string part(1 << 20, 'x');
		peer.say("$536870912\r\n");
		peer.say_on(part, 512);
		return peer.say("\r\n");
	}));
	Run run(server, "redis", {"-t", "get", "-n", "2", "-c", "1", "--no-observer"});
	INFO(run.result.err);
	CHECK(run.result.status == 0);
	CHECK(run.log.with_status(FT_STATUS_OK) == 2);
	CHECK(run.total["bytes"].get<uint64_t>() > 2 * 536870912ull);
	if (!FORKTAIL_SANITIZED)
		CHECK(largest_child_kb() < 64 * 1024);
}

TEST_CASE("a byte now and then is no answer within the timeout")
{
	for (const auto &[protocol, good] : protocols) {
		const std::string get = good.first;
		FakeServer server(after_greeting([&](Peer &peer, const std::string &request) {
			return peer.trickle(with_opaque(get, request), 300ms);
		}));
		Run run(server, protocol, two_gets);
		run.lost(too_late);
		CHECK(run.log.with_status(FT_STATUS_TIMEOUT) == 2);
		for (const ft_request &q : run.log.requests)
			CHECK(q.end_ns - q.intended_ns >= 400000000);
	}
}

TEST_CASE("an endless stream does not outlast the duration and its drain, nor Ctrl-C")
{
	FakeServer server(after_greeting([](Peer &peer, const std::string &) {
		/* Not one long string: a fast machine reads 4 GB of it before the drain is over. */
		peer.say("*4000000000\r\n");
		peer.say_on("$262144\r\n" + std::string(1 << 18, 'x') + "\r\n");
		return false;
	}));
	Run run(server, "redis",
		{"-t", "get", "--duration", "500ms", "--drain", "300ms", "-c", "2", "--no-observer"});
	INFO(run.result.err);
	CHECK(run.result.status == 3);
	CHECK(run.log.with_status(FT_STATUS_TIMEOUT) == 2);
	CHECK(lines(run.result.err) == 1);

	Process p(load_command(server.where({"-t", "get", "-l", "-c", "2", "-q"})));
	sleep_for(Seconds(0.5));
	p.signal(SIGINT);
	CHECK(p.wait(Seconds(10)).has_value());
}

TEST_CASE("closed in the middle of a reply, before it, and right after it was accepted")
{
	for (const auto &[protocol, good] : protocols)
		for (const size_t bytes : {size_t(0), size_t(1), good.first.size() - 1}) {
			INFO(protocol << " " << bytes);
			const std::string part = good.first.substr(0, bytes);
			FakeServer server(after_greeting([&](Peer &peer, const std::string &) {
				peer.say(part);
				return false;
			}));
			Run run(server, protocol, two_gets);
			run.lost(closed);
			CHECK(run.log.with_status(FT_STATUS_RESET) == 2);
		}
	// The first connections are good. The reopened ones are closed at once. The limit ends it.
	FakeServer server([](Peer &peer) {
		if (peer.number <= 3) // the search for an address, the probe, two of the load
			after_greeting([](Peer &, const std::string &) { return false; })(peer);
		else
			peer.hear();
	});
	Run run(server, "redis",
		{"-t", "get", "-n", "1000", "-c", "2", "--no-observer", "--on-error", "reconnect",
		 "--backoff", "1ms", "--max-errors", "20"});
	CHECK(run.result.status == 3);
	CHECK(contains(run.result.err, "--max-errors"));
	CHECK(run.json["reason"] == "errors");
}

TEST_CASE("answers without a request, before one was sent or after it was answered")
{
	for (const auto &[protocol, good] : protocols) {
		INFO(protocol);
		const std::string get = good.first;
		FakeServer twice(after_greeting([&](Peer &peer, const std::string &request) {
			return peer.say(with_opaque(get, request) + with_opaque(get, request));
		}));
		Run run(twice, protocol, two_gets);
		run.lost("the server sent an answer without a request");
		// The first of the two was an answer.
		CHECK(run.log.with_status(FT_STATUS_OK) == 2);
	}
	const std::vector<std::string> slowly = {
	    "--rate", "1", "-n", "2", "-c", "2", "-t", "get", "--no-observer", "--timeout", "1"};
	// In one piece with the greeting's last answer.
	FakeServer early([](Peer &peer) {
		peer.say(greeting_answer(peer.hear())); // PING
		const std::string named = greeting_answer(peer.hear());
		peer.say(peer.number > 0 ? named + "+HELLO\r\n" : named);
		after_greeting([](Peer &, const std::string &) { return true; })(peer);
	});
	const Result refused = run(load_command(early.where(slowly)));
	CHECK(refused.status == 3);
	CHECK(contains(refused.err, "sent an answer without a request"));
	// Some time after it, when the second connection's first request has a second to go.
	FakeServer idle([](Peer &peer) {
		for (int i = 0; i < 2; i++)
			peer.say(greeting_answer(peer.hear()));
		if (peer.number == 3) { // after the search for an address, the probe, and the first of two
			std::this_thread::sleep_for(200ms);
			peer.say("+HELLO\r\n");
		}
		after_greeting([](Peer &, const std::string &) { return true; })(peer);
	});
	Run run(idle, "redis", slowly);
	CHECK(run.result.status == 3);
	CHECK(contains(run.result.err, "lost"));
	CHECK(run.log.with_status(FT_STATUS_WRONG) == 0);
}

TEST_CASE("answers of another command's kind, and in the wrong order, are wrong replies")
{
	struct Wrong {
		const char *protocol, *test;
		std::string answer;
	};
	const std::vector<Wrong> all = {
	    {"redis", "get", ":1\r\n"},
	    {"redis", "get", "+OK\r\n"},
	    {"redis", "get", "*1\r\n$3\r\nabc\r\n"},
	    {"redis", "set", "$3\r\nabc\r\n"},
	    {"redis", "set", "*0\r\n"},
	    {"memcache_text", "set", "VALUE key 0 3\r\nabc\r\nEND\r\n"},
	    {"memcache_text", "set", "END\r\n"},
	    {"memcache_text", "get", "STORED\r\n"},
	    {"memcache_text", "get", "VERSION 1\r\n"},
	    {"memcache_text", "get", "12\r\n"},
	    {"memcache_binary", "get", stored},
	    {"memcache_binary", "set", hit},
	    {"memcache_meta", "set", "VA 3 O@\r\nabc\r\n"},
	    {"memcache_meta", "set", "EN\r\n"},
	    {"memcache_meta", "get", "HD O@\r\n"},
	    {"resp3", "get", "%1\r\n+a\r\n+b\r\n"},
	    {"resp3", "get", "#t\r\n"},
	    {"resp3", "set", "=5\r\ntxt:x\r\n"},
	};
	for (const Wrong &w : all) {
		INFO(w.protocol << " " << w.test << " " << w.answer);
		FakeServer server(after_greeting([&](Peer &peer, const std::string &request) {
			return peer.say(with_opaque(w.answer, request));
		}));
		Run run(server, w.protocol, {"-t", w.test, "-n", "10", "-c", "1", "--no-observer"});
		CHECK(run.log.with_status(FT_STATUS_WRONG) == 10);
		CHECK(run.total["errors_by_kind"]["wrong reply"] == 10);
		CHECK(contains(run.result.out, "wrong reply"));
	}
}

TEST_CASE("an endless greeting, or a byte now and then, is given up within seconds")
{
	const std::string much(60000, 'x');
	const std::vector<std::pair<std::string, std::string>> endless = {
	    {"redis", "$4000000000\r\n"},
	    {"redis", "+"},
	    {"redis", "*1000000000\r\n$10\r\n0123456789\r\n"},
	    {"memcache_text", "VERSION "},
	    {"memcache_binary", binary_reply(11, 0, "", "", 1 << 29)}};
	for (const auto &[protocol, begin] : endless)
		for (const bool slowly : {false, true}) {
			if (slowly && begin[0] != '$' && protocol != "memcache_binary")
				continue; // the same code, and each takes its five seconds
			INFO(protocol << " " << begin);
			FakeServer server([&, first = begin](Peer &peer) {
				peer.hear();
				peer.say(first);
				for (int i = 0; slowly && peer.say("x") && i < 1000; i++)
					std::this_thread::sleep_for(100ms);
				if (!slowly)
					peer.say_on(much);
			});
			const Result r =
			    load(server.where({"--protocol", protocol, "-n", "10"}), {}, Seconds(12));
			INFO(r.err);
			CHECK_FALSE(r.timed_out);
			CHECK(r.status == 3);
			CHECK(r.out.empty());
			CHECK(lines(r.err) == 1);
			if (!FORKTAIL_SANITIZED)
				CHECK(largest_child_kb() < 64 * 1024);
		}
}

TEST_CASE("terminal control sequences in a server's words are printed as text")
{
	const std::string evil = "\x1b]52;c;QQ==\a\xff\xe2\x80\xae\xc2\x9bx",
			  said = R"(\x1b]52;c;QQ==\x07\xff\u202e\x9bx)";
	auto visible = [](const std::string &text) {
		for (size_t at = 0, end; at < text.size(); at = end + 1) {
			end = std::min(text.find('\n', at), text.size());
			if (visible_text(nullptr, 0, text.data() + at, end - at) != end - at)
				return false;
		}
		return true;
	};
	// At the connection's start, as a version, as an answer to the load, and to the observer.
	FakeServer door([&](Peer &peer) {
		while (!peer.hear().empty() && peer.say("-" + evil + "\r\n")) {
		}
	});
	const Result refused = load(door.where({"-n", "10"}), {}, Seconds(20));
	INFO(refused.err);
	CHECK(refused.status == 3);
	CHECK(contains(refused.err, "refused the connection: " + said));
	CHECK(visible(refused.err));

	FakeServer versions([&](Peer &peer) {
		while (!peer.hear().empty() && peer.say("VERSION 1." + evil + "\r\n")) {
		}
	});
	TempDir dir;
	const Result odd = load(versions.where({"--protocol", "memcache_text", "-t", "get", "-n", "10",
						"--json", dir.file("json"), "--timeout", "300ms"}),
				{}, Seconds(20));
	INFO(odd.err);
	CHECK(visible(odd.err));
	CHECK(visible(odd.out));

	FakeServer errors([&](Peer &peer) {
		for (std::string request; !(request = peer.hear()).empty();) {
			const std::string answer = greeting_answer(request);
			if (!peer.say(answer.empty() ? "-" + evil + " more\r\n" : answer))
				return;
		}
	});
	Run run(errors, "redis", {"--command", "GET __key__", "-n", "50", "-c", "1"});
	INFO(run.result.out);
	CHECK(visible(run.result.out));
	CHECK(visible(run.result.err));
	CHECK(run.log.with_status(FT_STATUS_ERROR_REPLY) == 50);
	CHECK(visible(read_file(run.dir.file("json"))));
}

TEST_CASE("an observer has the same server, and neither hangs nor grows")
{
	FakeServer server([](Peer &peer) {
		for (std::string request; !(request = peer.hear()).empty();) {
			const std::string answer = greeting_answer(request);
			if (answer.empty() && contains(request, "GET")) {
				if (!peer.say("$3\r\nabc\r\n"))
					return;
			} else if (!answer.empty() && request.size() < 30) {
				if (!peer.say(answer))
					return;
			} else { // what only the observer asks
				peer.say("$4000000000\r\n");
				peer.say_on(std::string(60000, 'x'));
			}
		}
	});
	Run run(server, "redis",
		{"--command", "GET __key__", "--rate", "100", "--duration", "2500ms", "-c", "2"});
	INFO(run.result.err);
	CHECK(run.result.status == 0);
	CHECK(run.log.with_status(FT_STATUS_OK) == 250);
	if (!FORKTAIL_SANITIZED)
		CHECK(largest_child_kb() < 64 * 1024);
}

TEST_CASE("verify reads no more than a value may have")
{
	for (const char *protocol : {"redis", "memcache_text", "memcache_binary"}) {
		INFO(protocol);
		// Other bytes, another length, another shape: wrong data, in each protocol.
		for (const auto &[name, good] : protocols)
			if (name == protocol) {
				const std::string get = good.first;
				FakeServer server(after_greeting(
				    [&](Peer &peer, const std::string &) { return peer.say(get); }));
				Run run(server, protocol,
					{"--ratio", "0:1", "--verify", "-d", "3", "-n", "10", "-c", "1",
					 "--no-observer"});
				CHECK(run.log.with_status(FT_STATUS_WRONG) == 10);
				CHECK(
				    contains(run.result.err,
					     "is not what was written: the first wrong byte is at offset 0"));
				CHECK(run.result.status == 1);
			}
		const std::string begin = std::string(protocol) == "redis" ? "$536870912\r\n"
					  : std::string(protocol) == "memcache_text"
					      ? "VALUE key:000000000000 0 536870912\r\n"
					      : binary_reply(0, 0, "abcd", "", 536870916);
		const std::string end = std::string(protocol) == "redis"	   ? "\r\n"
					: std::string(protocol) == "memcache_text" ? "\r\nEND\r\n"
										   : "";
		FakeServer server(after_greeting([&](Peer &peer, const std::string &) {
			const std::string part(1 << 20, 'x');
			peer.say(begin);
			peer.say_on(part, 512);
			return peer.say(end);
		}));
		Run run(server, protocol,
			{"--ratio", "0:1", "--verify", "-n", "1", "-c", "1", "--no-observer"});
		INFO(run.result.err);
		CHECK(run.result.status == 1);
		CHECK(run.log.with_status(FT_STATUS_WRONG) == 1);
	}
}
