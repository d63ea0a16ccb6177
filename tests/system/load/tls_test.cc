// SPDX-License-Identifier: MIT
// TLS, with real servers: every way of sending gets every answer. Untrusted servers are refused, with one
// sentence that gives the reason. Broken connections are reopened over TLS, and only to trusted servers.
#include <csignal>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/recorded.h"
#include "tests/support/servers/memcached.h"
#include "tests/system/load/certificates.h"
#include "tests/system/load/fake.h"

using namespace forktail::test;

namespace
{

const char *const here = "DNS:localhost,IP:127.0.0.1";

Arguments at(int port, const Authority &authority, const Arguments &more)
{
	Arguments all = {"-q", "-p", std::to_string(port), "--tls", "--cacert", authority.ca()};
	all.insert(all.end(), more.begin(), more.end());
	return all;
}

// Refused before any load, with one sentence that contains this.
void check_refused(const Arguments &arguments, const std::string &says)
{
	const Result r = load(arguments);
	INFO(r.err);
	CHECK_FALSE(r.timed_out);
	CHECK(r.status == 3);
	CHECK(lines(r.err) == 1);
	CHECK(contains(r.err, says));
	CHECK(r.out.empty());
}

// A relay that forwards the bytes of a real server at `port`, up to `limit` bytes per connection, and then
// closes or sends nothing more.
struct Relay {
	std::atomic<size_t> limit = 0;
	std::atomic<bool> close_then = true;
	FakeServer server;

	explicit Relay(int port) : server([this, port](Peer &peer) { pass_on(peer, port); }, false) {}

private:
	void pass_on(Peer &peer, int port)
	{
		const size_t most = limit;
		size_t sent = 0;
		sockaddr_in to = {};
		to.sin_family = AF_INET;
		to.sin_port = htons(static_cast<uint16_t>(port));
		to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		bool open = connect(fd, reinterpret_cast<sockaddr *>(&to), sizeof(to)) == 0;
		while (open && sent < most && !peer.over()) {
			pollfd p[2] = {{fd, POLLIN, 0}, {peer.fd(), POLLIN, 0}};
			char bytes[65536];
			if (poll(p, 2, 50) <= 0)
				continue;
			if (p[0].revents) {
				const ssize_t n = recv(fd, bytes, std::min(sizeof(bytes), most - sent), 0);
				open = n > 0 && peer.say({bytes, static_cast<size_t>(n)});
				sent += n > 0 ? static_cast<size_t>(n) : 0;
			}
			if (open && p[1].revents) {
				const std::string heard = peer.hear();
				open =
				    !heard.empty() && send(fd, heard.data(), heard.size(), MSG_NOSIGNAL) > 0;
			}
		}
		if (open && !close_then)
			while (!peer.hear().empty())
				;
		close(fd);
	}
};

} // namespace

TEST_CASE("every way of sending gets every answer over TLS, verified")
{
	Authority authority;
	authority.sign("server", here);
	TlsRedis server(authority, "server");
	TempDir dir;
	const Arguments ways[] = {
	    {},
	    {"-h", "localhost"},
	    {"-P", "16", "-d", "20000", "-r", "100", "--verify"},
	    {"-c", "2", "-P", "100", "-d", "100000", "-r", "20", "--verify", "-n", "1000"},
	    {"--threads", "2", "--idle", "5"},
	    {"--reconnect", "10", "-n", "2000"},
	    {"--reconnect", "10", "-n", "2000", "--rate", "2000"},
	    {"--blocking", "-c", "4"},
	    {"--blocking", "-c", "4", "--reconnect", "10", "-n", "1000"},
	    {"--no-wait", "-c", "2"},
	    {"--no-wait", "-c", "2", "-P", "100", "-d", "100000", "-r", "20", "--verify", "-n", "1000"},
	    {"--rate", "5000", "-n", "5000", "-P", "4"},
	    {"-t", "lrange_600,spop", "-n", "2000"},
	};
	for (const Arguments &way : ways) {
		server.redis().command({"FLUSHALL"});
		Arguments arguments =
		    at(server.port(), authority, {"-n", "10000", "--json", dir.file("json")});
		arguments.insert(arguments.end(), way.begin(), way.end());
		const Result r = load(arguments);
		INFO(r.err);
		REQUIRE(r.status == 0);
		const Json json = parse_json(read_file(dir.file("json")));
		CHECK(json["tls"] == "verified");
		for (const Json &one : json["runs"])
			CHECK(one["total"]["errors"] == 0);
		CHECK(contains(r.out, ", TLS\n"));
	}
	// It was TLS: the plain port is closed, and this one does not answer without TLS.
	CHECK(server.redis().info("tcp_port") == std::to_string(server.port()));
}

TEST_CASE("an untrusted server is refused with the reason")
{
	Authority authority, stranger;
	authority.sign("other", "DNS:db.example,IP:10.9.8.7");
	authority.sign("expired", here, -1);
	authority.sign("server", here);
	authority.sign_itself("self", here);
	const std::string ca = authority.ca(), wrong = stranger.ca();
	SECTION("another host's certificate")
	{
		TlsRedis server(authority, "other");
		check_refused(at(server.port(), authority, {}),
			      "has a certificate for db.example, 10.9.8.7, not for 127.0.0.1");
		check_refused(at(server.port(), authority, {"-h", "localhost"}), "not for localhost");
		check_refused(at(server.port(), authority, {"--sni", "db2.example"}), "not for db2.example");
		const Result r = load(at(server.port(), authority, {"-n", "100", "--sni", "db.example"}));
		INFO(r.err);
		CHECK(r.status == 0);
	}
	SECTION("a certificate for an invalid address")
	{
		authority.sign("odd", "DER:300c8705010203040582036f6464"); // of 5 bytes; then a name
		TlsRedis server(authority, "odd");
		check_refused(at(server.port(), authority, {}),
			      "has a certificate for odd, not for 127.0.0.1");
	}
	SECTION("an expired certificate")
	{
		TlsRedis server(authority, "expired");
		check_refused(at(server.port(), authority, {}), "has a certificate that expired on 20");
	}
	SECTION("a self-signed certificate")
	{
		TlsRedis server(authority, "self");
		check_refused(at(server.port(), authority, {}), "has a self-signed certificate");
		const Result r = load({"-q", "-p", std::to_string(server.port()), "--tls", "-n", "100",
				       "--cacert", authority.certificate("self")});
		INFO(r.err);
		CHECK(r.status == 0);
	}
	SECTION("another CA's certificate")
	{
		TlsRedis server(authority, "server");
		const std::string port = std::to_string(server.port());
		check_refused({"-q", "-p", port, "--tls", "--cacert", wrong},
			      "from a CA that is not among the CAs in");
		check_refused({"-q", "-p", port, "--tls"},
			      "from a CA that is not among the CAs that this host trusts");
		check_refused({"-q", "-u", "rediss://127.0.0.1:" + port}, "from a CA that is not among");
	}
}

TEST_CASE("--insecure trusts every server, and the output says so")
{
	Authority authority;
	authority.sign_itself("self", "DNS:db.example");
	TlsRedis server(authority, "self");
	TempDir dir;
	const Result r = load({"-q", "-p", std::to_string(server.port()), "--tls", "--insecure", "-n", "1000",
			       "--json", dir.file("json"), "-o", dir.file("log")});
	INFO(r.err);
	CHECK(r.status == 0);
	CHECK(contains(r.out, "TLS not verified (--insecure)"));
	CHECK(parse_json(read_file(dir.file("json")))["tls"] == "not verified");
	CHECK(read_log(dir.file("log")).manifest["server_info"][0]["tls"] == "not verified");
}

TEST_CASE("a server that wants a client's certificate gets it, or its demand is reported")
{
	Authority authority;
	authority.sign("server", here);
	authority.sign("client", "DNS:client");
	authority.sign_itself("self", "DNS:client");
	TlsRedis server(authority, "server", "yes");
	check_refused(at(server.port(), authority, {}),
		      "requires a client certificate. Use --cert and --key");
	check_refused(at(server.port(), authority,
			 {"--cert", authority.certificate("self"), "--key", authority.key("self")}),
		      "rejected the client certificate");
	check_refused(at(server.port(), authority,
			 {"--cert", authority.certificate("client"), "--key", authority.key("self")}),
		      "cannot use the private key");
	const Result r = load(at(server.port(), authority,
				 {"-n", "1000", "--reconnect", "100", "--cert",
				  authority.certificate("client"), "--key", authority.key("client")}));
	INFO(r.err);
	CHECK(r.status == 0);
}

TEST_CASE("TLS on one side only is reported")
{
	Authority authority;
	authority.sign("server", here);
	TlsRedis tls(authority, "server");
	check_refused({"-q", "-p", std::to_string(tls.port())}, "--tls");
	RedisOptions options;
	options.tcp = true;
	Redis plain(options);
	check_refused(at(plain.port(), authority, {}), "Does it accept TLS on this port?");
	// Whatever comes is no handshake.
	FakeServer chatty([](Peer &peer) { peer.say("-ERR who are you?\r\n"), peer.hear(); }, false);
	check_refused(chatty.where({"-q", "--tls", "--insecure"}), "does not use TLS on this port");
	// What a TLS server answers to what it does not understand.
	FakeServer alert(
	    [](Peer &peer) { peer.hear(), peer.say(std::string("\x15\x03\x03\0\x02\x02\x46", 7)); }, false);
	check_refused(alert.where({"-q"}), "answered PING in TLS. Use --tls");
}

TEST_CASE("wrong use of TLS is refused before anything is done")
{
	const struct {
		Arguments arguments;
		const char *says;
		int status;
	} cases[] = {
	    {{"--cacert", "x"}, "need --tls", 2},
	    {{"--insecure"}, "need --tls", 2},
	    {{"--tls", "--cert", "x"}, "--cert and --key need each other", 2},
	    {{"--tls", "--key", "x"}, "--cert and --key need each other", 2},
	    {{"--tls", "--insecure", "--cacert", "x"}, "mutually exclusive", 2},
	    {{"--tls", "--pubsub", "2"}, "do not support TLS", 2},
	    {{"--tls", "-s", "/tmp/x"}, "no host name to verify", 2},
	};
	for (const auto &c : cases) {
		const Result r = load(c.arguments);
		INFO(r.err);
		CHECK(r.status == c.status);
		CHECK(lines(r.err) == 1);
		CHECK(contains(r.err, c.says));
	}
	// The files are read once there is a server to connect to.
	Authority authority;
	authority.sign("server", here);
	TlsRedis server(authority, "server");
	const std::string port = std::to_string(server.port());
	check_refused({"-q", "-p", port, "--tls", "--cacert", "/nonexistent"}, "No such file or directory");
	check_refused({"-q", "-p", port, "--tls", "--cacert", authority.key("server")}, "cannot use the CA");
}

TEST_CASE("a handshake that is cut anywhere is one sentence, and a stalled one has a time limit")
{
	Authority authority;
	authority.sign("server", here);
	TlsRedis server(authority, "server");
	Relay relay(server.port());
	const Arguments command = at(0, authority, {"-n", "1", "-c", "1"});
	auto try_at = [&](size_t limit) {
		relay.limit = limit;
		Arguments arguments = command;
		arguments.erase(arguments.begin() + 1, arguments.begin() + 3); // -p 0
		return load(relay.server.where(arguments));
	};
	// Its first flight, then what arrives with the first answers: PONG, INFO's.
	size_t steps = 0;
	for (size_t limit = 0; limit < 1500; limit += limit < 200 ? 7 : 41, steps++) {
		const Result r = try_at(limit);
		INFO(limit << ": " << r.err);
		REQUIRE_FALSE(r.timed_out);
		REQUIRE(r.status == 3);
		REQUIRE(lines(r.err) == 1);
	}
	CHECK(steps > 50);
	relay.close_then = false;
	for (size_t limit : {size_t(0), size_t(3), size_t(300)}) {
		const Result r = try_at(limit);
		INFO(limit << ": " << r.err);
		REQUIRE_FALSE(r.timed_out);
		CHECK(r.status == 3);
		CHECK(lines(r.err) == 1);
		CHECK(contains(r.err, "did not finish the TLS handshake in time"));
	}
}

TEST_CASE("a handshake that stalls during the load is given up, and delays no other connection")
{
	Authority authority;
	authority.sign("server", here);
	TlsRedis server(authority, "server");
	Relay relay(server.port());
	relay.limit = SIZE_MAX;
	relay.close_then = false;
	TempDir dir;
	Arguments arguments = {
	    "-q",	 "--tls",	  "--cacert", authority.ca(),	"-c",	"2",
	    "-l",	 "--think",	  "5ms",      "--reconnect",	"1000", "--on-error",
	    "reconnect", "--no-observer", "--json",   dir.file("json"), "-o",	dir.file("log")};
	Process process(load_command(relay.server.where(arguments)));
	REQUIRE(eventually([&] { return read_log(dir.file("log")).requests.size() > 10; }, Seconds(20)));
	relay.limit = 100;
	// Each connection ends its thousand requests, and its successor's handshake stalls.
	const size_t before = relay.server.accepted().size();
	CHECK(eventually([&] { return relay.server.accepted().size() >= before + 3; }, Seconds(60)));
	process.signal(SIGINT);
	const auto status = process.wait(Seconds(20));
	INFO(process.err());
	REQUIRE(status.has_value());
	// The third was begun because one of the first two had been given up.
	const Json figures = parse_json(read_file(dir.file("json")))["runs"][0];
	CHECK(figures["connects_failed"] >= 1);
	const Log log = read_log(dir.file("log"));
	CHECK(log.with_status(FT_STATUS_OK) + log.with_status(FT_STATUS_MISS) >= 2000);
}

TEST_CASE("broken connections are reopened over TLS, to trusted servers only")
{
	Authority authority;
	authority.sign("server", here);
	authority.sign("other", "DNS:db.example");
	const std::string next = GENERATE("server", "other");
	auto server = std::make_unique<TlsRedis>(authority, "server");
	const int port = server->port();
	TempDir dir;
	Process process(load_command(
	    at(port, authority,
	       {"-c", "4", "--duration", "30", "--think", "1ms", "--on-error", "reconnect", "--backoff",
		"10ms", "--no-observer", "-o", dir.file("log"), "--json", dir.file("json")})));
	REQUIRE(eventually([&] { return read_log(dir.file("log")).requests.size() > 10; }, Seconds(20)));
	server->redis().process().signal(SIGKILL);
	server->redis().process().wait(Seconds(10));
	server.reset();
	const uint64_t gone_ns = ft_now_ns();
	server = std::make_unique<TlsRedis>(authority, next, "no", port);
	auto answers_since = [&] {
		size_t n = 0;
		for (const ft_request &q : read_log(dir.file("log")).requests)
			n += q.start_ns > gone_ns && (q.status == FT_STATUS_OK || q.status == FT_STATUS_MISS);
		return n;
	};
	if (next == "server") {
		CHECK(eventually([&] { return answers_since() > 100; }, Seconds(20)));
		process.signal(SIGINT);
	} else {
		// Tried, refused, and tried again.
		CHECK(eventually(
		    [&] { return contains(server->redis().log(), "Error accepting a client connection"); },
		    Seconds(20)));
		process.signal(SIGINT);
	}
	const auto status = process.wait(Seconds(40));
	INFO(process.err());
	REQUIRE(status.has_value());
	if (next == "server") {
		CHECK(*status == 0);
		return;
	}
	CHECK(*status == 3);
	CHECK(answers_since() == 0);
	CHECK(contains(process.err(), "the server has a certificate for db.example, not for 127.0.0.1"));
}

TEST_CASE("the observer uses TLS as the load does")
{
	Authority authority;
	authority.sign("server", here);
	TlsRedis server(authority, "server");
	TempDir dir;
	const Result r = load(at(server.port(), authority,
				 {"--duration", "2", "--rate", "100", "-c", "1", "-o", dir.file("log")}));
	INFO(r.err);
	REQUIRE(r.status == 0);
	const Recorded recorded = read_recording(dir.file("log"));
	CHECK(recorded.samples.size() > 10);
	for (const std::string &note : recorded.notes)
		CHECK_FALSE(contains(note, "observer-lost"));
}

TEST_CASE("a password is sent over TLS only to a verified server")
{
	Authority authority;
	authority.sign("server", here);
	authority.sign("other", "DNS:db.example");
	TlsRedis good(authority, "server"), bad(authority, "other");
	for (TlsRedis *s : {&good, &bad})
		s->redis().command({"ACL", "SETUSER", "alice", "on", ">secret", "+@all", "~*"});
	const auto environment = with_environment({{"FORKTAIL_PASSWORD", "secret"}});
	const Arguments as_alice = {"--user", "alice", "-n", "200", "--reconnect", "10"};
	const Result r = load(at(good.port(), authority, as_alice), environment);
	INFO(r.err);
	CHECK(r.status == 0);
	CHECK(load(at(bad.port(), authority, as_alice), environment).status == 3);
	CHECK(bad.redis().command({"ACL", "LOG"}).empty());
	CHECK_FALSE(contains(bad.redis().command({"INFO", "commandstats"}), "cmdstat_auth"));
}

TEST_CASE("memcached over TLS")
{
	if (!contains(run({"memcached", "-h"}).out, "--enable-ssl")) {
		WARN("SKIPPED: this memcached has no TLS");
		return;
	}
	Authority authority;
	authority.sign("server", here);
	Memcached server({.tcp = true,
			  .config = {"-Z", "-o",
				     "ssl_chain_cert=" + authority.certificate("server") +
					 ",ssl_key=" + authority.key("server")}});
	const std::string port = std::to_string(server.port());
	for (const char *protocol : {"memcache_text", "memcache_binary"}) {
		TempDir dir;
		const Result r = load(at(std::stoi(port), authority,
					 {"--protocol", protocol, "-n", "10000", "-P", "4", "-d", "5000",
					  "-r", "100", "--verify", "--json", dir.file("json")}));
		INFO(r.err);
		REQUIRE(r.status == 0);
		CHECK(parse_json(read_file(dir.file("json")))["runs"][0]["total"]["errors"] == 0);
	}
	check_refused({"-q", "-p", port, "--protocol", "memcache_text", "--tls"},
		      "from a CA that is not among");
}
