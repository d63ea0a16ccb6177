// SPDX-License-Identifier: MIT
// External failures of forktail-load: servers of another kind, that refuse, die or send nonsense; full disks;
// Ctrl-C. Each ends with one clear sentence, and the results up to then are intact.
#include <arpa/inet.h>
#include <atomic>
#include <csignal>
#include <functional>
#include <sstream>
#include <sys/mount.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/memcached.h"
#include "tests/system/load/load.h"

using namespace forktail::test;

namespace
{

// A listener on 127.0.0.1 that handles each connection as requested, in its own thread.
class FakeServer
{
public:
	explicit FakeServer(std::function<void(int)> talk) : talk_(std::move(talk))
	{
		sockaddr_in address = {};
		address.sin_family = AF_INET;
		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		socklen_t size = sizeof(address);
		fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		REQUIRE(bind(fd_, reinterpret_cast<sockaddr *>(&address), size) == 0);
		REQUIRE(listen(fd_, 100) == 0);
		getsockname(fd_, reinterpret_cast<sockaddr *>(&address), &size);
		port_ = ntohs(address.sin_port);
		accepting_ = std::thread([this] {
			for (int c; (c = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
				open_.push_back(c);
				talks_.emplace_back([this, c] { talk_(c); });
			}
		});
	}
	~FakeServer()
	{
		shutdown(fd_, SHUT_RDWR);
		accepting_.join();
		for (int c : open_)
			shutdown(c, SHUT_RDWR);
		for (auto &t : talks_)
			t.join();
		for (int c : open_)
			close(c);
		close(fd_);
	}
	std::string port() const { return std::to_string(port_); }

private:
	std::function<void(int)> talk_;
	int fd_ = -1, port_ = 0;
	std::vector<int> open_;
	std::vector<std::thread> talks_;
	std::thread accepting_;
};

// Answers each read with the result of `reply`. An empty answer ends the connection.
std::function<void(int)> answering(std::function<std::string(const std::string &)> reply)
{
	return [reply](int c) {
		char buffer[65536];
		for (ssize_t n; (n = read(c, buffer, sizeof(buffer))) > 0;) {
			const std::string answer = reply(std::string(buffer, static_cast<size_t>(n)));
			if (answer.empty() || send(c, answer.data(), answer.size(), MSG_NOSIGNAL) < 0)
				break;
		}
		shutdown(c, SHUT_RDWR);
	};
}

bool is(const std::string &request, const char *command)
{
	return contains(request, std::string("\r\n") + command + "\r\n");
}

// A failed run: status 3, nothing on stdout, one sentence.
void refused(const Result &r, const char *says)
{
	INFO(r.err);
	CHECK(r.status == 3);
	CHECK(r.out.empty());
	CHECK(contains(r.err, says));
	CHECK(r.err.rfind("forktail-load: ", 0) == 0);
	CHECK(lines(r.err) == 1);
}

struct Tmpfs {
	TempDir dir;
	bool mounted;
	explicit Tmpfs(const char *size)
	    : mounted(mount("tmpfs", dir.path().c_str(), "tmpfs", 0, (std::string("size=") + size).c_str()) ==
		      0)
	{
	}
	~Tmpfs()
	{
		if (mounted)
			umount2(dir.path().c_str(), MNT_DETACH);
	}
};

} // namespace

TEST_CASE("nothing listens at the address")
{
	refused(load({"-p", std::to_string(free_port())}), "cannot be reached");
	refused(load({"-s", "/nonexistent/redis.sock"}), "unix:/nonexistent/redis.sock cannot be reached");
	refused(load({"-h", "no-such-host.invalid"}), "cannot be reached");
}

TEST_CASE("the server there is no Redis")
{
	FakeServer memcached(answering([](const std::string &) { return "ERROR\r\n"; }));
	refused(load({"-p", memcached.port()}), "is not a Redis server");
	FakeServer web(answering([](const std::string &) { return "HTTP/1.1 400 Bad Request\r\n\r\n"; }));
	refused(load({"-p", web.port()}), "is not a Redis server");
	FakeServer closes(answering([](const std::string &) { return ""; }));
	refused(load({"-p", closes.port()}), "closed it on PING");
	FakeServer gone([](int c) { shutdown(c, SHUT_RDWR); });
	const Result r = load({"-p", gone.port()});
	CHECK(r.status == 3);
	CHECK(lines(r.err) == 1);
	FakeServer silent([](int c) {
		char byte;
		while (read(c, &byte, 1) > 0) {
		}
	});
	refused(load({"-p", silent.port()}), "did not answer PING within 5 s");
	FakeServer other(answering([](const std::string &) { return "+HELLO\r\n"; }));
	refused(load({"-p", other.port()}), "refused the connection");
}

TEST_CASE("a real memcached is not a Redis")
{
	Memcached memcached({.tcp = true});
	refused(load({"-p", std::to_string(memcached.port())}), "is not a Redis server");
}

TEST_CASE("a server that wants a password gets none, a wrong one, or one for an unknown user")
{
	Redis redis({.tcp = false, .config = {"--requirepass", "right"}});
	const std::string s = redis.socket();
	refused(load({"-s", s}), "requires a password. Set FORKTAIL_PASSWORD");
	refused(load({"-s", s}, with_environment({{"FORKTAIL_PASSWORD", "wrong"}})),
		"rejected the password of the default user");
	refused(load({"-s", s, "--user", "nobody"}, with_environment({{"FORKTAIL_PASSWORD", "right"}})),
		"rejected the password of nobody");
	TempDir dir;
	write_file(dir.file("password"), "wrong\n");
	const Result r = load({"-s", s, "--password-file", dir.file("password")});
	refused(r, "rejected the password");
	CHECK(contains(r.err, dir.file("password")));
}

TEST_CASE("a password is sent only to a server known to be a Redis")
{
	std::atomic<bool> seen = false;
	FakeServer curious(answering([&](const std::string &request) {
		if (contains(request, "secret"))
			seen = true;
		return "ERROR\r\n";
	}));
	refused(load({"-p", curious.port()}, with_environment({{"FORKTAIL_PASSWORD", "secret"}})),
		"is not a Redis server");
	CHECK_FALSE(seen);
}

TEST_CASE("a password that the server does not request does no harm")
{
	Redis redis;
	CHECK(load({"-s", redis.socket(), "-n", "100", "-q"},
		   with_environment({{"REDISCLI_AUTH", "left over"}}))
		  .status == 0);
}

TEST_CASE("a database that the server does not have, and more connections than it accepts")
{
	Redis redis({.tcp = false, .config = {"--maxclients", "20"}});
	refused(load({"-s", redis.socket(), "--dbnum", "99"}), "refused database 99");
	refused(load({"-s", redis.socket(), "-c", "50"}), "max number of clients reached");
}

TEST_CASE("more connections than this host has descriptors for")
{
	Redis redis;
	// Root may raise the hard limit, and so may forktail-load as root: request more than the kernel
	// allows.
	refused(load({"-s", redis.socket(), "-c", "1000000", "--threads", "1"}), "file descriptors");
}

TEST_CASE("a server that loads its data is waited for, within a limit")
{
	std::atomic<int> pings = 0;
	FakeServer loading(answering([&](const std::string &request) -> std::string {
		if (is(request, "PING"))
			return ++pings < 5 ? "-LOADING Redis is loading the dataset in memory\r\n"
					   : "+PONG\r\n";
		if (is(request, "INFO"))
			return "$0\r\n\r\n";
		return "+OK\r\n";
	}));
	Result r = load({"-p", loading.port(), "-t", "set", "-n", "10", "-c", "1", "-q"});
	INFO(r.err);
	CHECK(r.status == 0);
	CHECK(contains(r.err, "is loading its data set; waiting up to 60 s"));
	CHECK(lines(r.err) == 1);
	FakeServer forever(answering([](const std::string &) { return "-LOADING again\r\n"; }));
	r = load({"-p", forever.port(), "--loading-wait", "300ms"});
	CHECK(r.status == 3);
	CHECK(contains(r.err, "still loading"));
}

TEST_CASE("a server killed in mid-run: table and log contain the results so far")
{
	Redis redis;
	TempDir dir;
	Process p(load_command({"-s", redis.socket(), "--duration", "60", "-P", "4", "-q", "-o",
				dir.file("log"), "--json", dir.file("json")}));
	sleep_for(Seconds(0.7));
	redis.process().signal(SIGKILL);
	REQUIRE(p.wait(Seconds(20)) == 3);
	CHECK(contains(p.err(), "all 50 connections were lost"));
	CHECK(contains(p.out(), "connection lost"));
	const Log log = read_log(dir.file("log"));
	CHECK(log.whole());
	CHECK(log.summary["reason"] == "server lost");
	const Json total = parse_json(read_file(dir.file("json")))["runs"][0]["total"];
	CHECK(total["requests"] == log.requests.size());
	CHECK(total["errors_by_kind"]["connection lost"] == log.with_status(FT_STATUS_RESET));
	CHECK(log.with_status(FT_STATUS_RESET) > 0);
	CHECK(log.with_status(FT_STATUS_RESET) <= 200);
	CHECK(log.with_status(FT_STATUS_OK) + log.with_status(FT_STATUS_MISS) > 100);
}

TEST_CASE("a server killed in an open loop, and with several threads")
{
	Redis redis;
	TempDir dir;
	Process p(load_command({"-s", redis.socket(), "--duration", "60", "--rate", "2000", "--threads", "3",
				"-q", "-o", dir.file("log")}));
	sleep_for(Seconds(0.7));
	redis.process().signal(SIGKILL);
	REQUIRE(p.wait(Seconds(20)) == 3);
	CHECK(contains(p.err(), "all 50 connections were lost"));
	CHECK(read_log(dir.file("log")).whole());
}

TEST_CASE("some connections closed by the server: the others continue")
{
	Redis redis;
	TempDir dir;
	Process p(load_command({"-s", redis.socket(), "--rate", "500", "--duration", "4", "-c", "10", "-q",
				"-o", dir.file("log")}));
	// Those that have sent a request: all ten are set up, and none is the observer's.
	std::vector<std::string> ids;
	REQUIRE(eventually([&] {
		std::istringstream clients(redis.command({"CLIENT", "LIST", "TYPE", "normal"}));
		ids.clear();
		for (std::string line; std::getline(clients, line);)
			if (contains(line, "name=forktail ") &&
			    (contains(line, "cmd=get") || contains(line, "cmd=set")))
				ids.push_back(line.substr(3, line.find(' ') - 3));
		return ids.size() == 10;
	}));
	int killed = 0;
	for (size_t i = 0; i < 3; i++)
		killed += redis.command({"CLIENT", "KILL", "ID", ids[i]}) == "1";
	REQUIRE(killed == 3);
	REQUIRE(p.wait(Seconds(20)) == 0);
	CHECK(contains(p.err(), "3 of 10 connections were lost"));
	const Log log = read_log(dir.file("log"));
	CHECK(log.requests.size() == 2000);
	CHECK(log.with_status(FT_STATUS_RESET) <= 3);
}

TEST_CASE("nonsense in mid-run: the connection is given up, the requests are errors")
{
	std::atomic<int> sets = 0;
	FakeServer server(answering([&](const std::string &request) -> std::string {
		if (is(request, "PING"))
			return "+PONG\r\n";
		if (is(request, "INFO"))
			return "-ERR no\r\n";
		if (contains(request, "SETNAME"))
			return "+OK\r\n";
		return ++sets < 10 ? "+OK\r\n" : "garbage\r\n";
	}));
	TempDir dir;
	const Result r = load({"-p", server.port(), "-t", "set", "-c", "1", "-n", "100", "-q",
			       "--no-observer", "-o", dir.file("log")});
	INFO(r.err);
	CHECK(r.status == 3);
	CHECK(contains(r.err, "an invalid reply for this protocol"));
	const Log log = read_log(dir.file("log"));
	CHECK(log.with_status(FT_STATUS_OK) == 9);
	CHECK(log.with_status(FT_STATUS_WRONG) == 1);
}

TEST_CASE("a reply of the wrong kind is an error, an answer without a request ends the connection")
{
	FakeServer wrong(answering([](const std::string &request) -> std::string {
		return is(request, "PING") ? "+PONG\r\n" : is(request, "INFO") ? "$0\r\n\r\n" : ":1\r\n";
	}));
	TempDir dir;
	Result r =
	    load({"-p", wrong.port(), "-t", "set", "-c", "1", "-n", "10", "-q", "-o", dir.file("log")});
	CHECK(r.status == 3);
	CHECK(contains(r.err, "every request failed: wrong reply"));
	CHECK(contains(r.out, "wrong reply"));
	CHECK(read_log(dir.file("log")).with_status(FT_STATUS_WRONG) == 10);
	FakeServer chatty(answering([](const std::string &request) -> std::string {
		return is(request, "PING")   ? "+PONG\r\n"
		       : is(request, "INFO") ? "$0\r\n\r\n"
					     : "+OK\r\n+OK\r\n";
	}));
	r = load({"-p", chatty.port(), "-t", "set", "-c", "1", "-n", "10", "-q"});
	CHECK(r.status == 3);
	CHECK(contains(r.err, "an answer without a request"));
}

TEST_CASE("the log's disk fills up: reported once, the figures stay, the log is complete up to there")
{
	Tmpfs full("1m");
	if (!full.mounted) {
		WARN("SKIPPED: mounting a tmpfs needs root");
		return;
	}
	Redis redis;
	TempDir dir;
	const std::string path = full.dir.file("log");
	const Result r = load(
	    {"-s", redis.socket(), "-n", "400000", "-P", "16", "-q", "-o", path, "--json", dir.file("json")});
	INFO(r.err);
	CHECK(r.status == 3);
	CHECK(contains(r.err, path));
	CHECK(contains(r.err, "No space left on device"));
	CHECK(lines(r.err) == 1);
	const Json words = parse_json(read_file(dir.file("json")));
	CHECK(words["runs"][0]["total"]["requests"] == 400000);
	CHECK(words["runs"][0]["exact"] == false);
	CHECK(words["log_error"] == "No space left on device");
	CHECK(contains(r.out, "400,000"));
	const Log log = read_log(path);
	CHECK(log.whole());
	CHECK(log.requests.size() > 16384);
	CHECK(log.requests.size() < 400000);
	CHECK(log.summary["log_error"] == "No space left on device");
}

TEST_CASE("a disk that hangs delays the log and not the load")
{
	TempDir dir;
	const std::string image = dir.file("image"), disk = dir.file("disk");
	const std::string mounted = "truncate -s 300M " + image + " && mkfs.ext4 -q " + image + " && mkdir " +
				    disk + " && mount -o loop " + image + " " + disk;
	if (run({"sh", "-c", mounted}).status != 0) {
		WARN("SKIPPED: mounting a file system image needs root and a loop device");
		return;
	}
	Redis redis;
	Process p(load_command({"-s", redis.socket(), "-P", "16", "--duration", "4", "-q", "-o",
				disk + "/log", "--json", dir.file("json")}));
	sleep_for(Seconds(0.7));
	// Freezing blocks every write() to the file system.
	const Result frozen = run({"fsfreeze", "-f", disk});
	sleep_for(Seconds(2));
	run({"fsfreeze", "-u", disk});
	const std::optional<int> status = p.wait(Seconds(60));
	const Log log = read_log(disk + "/log");
	run({"umount", disk});
	CHECK(frozen.status == 0);
	CHECK(status == 0);
	CHECK(log.whole());
	const Json figures = parse_json(read_file(dir.file("json")))["runs"][0];
	CHECK(figures["total"]["latency_ns"]["max"].get<uint64_t>() < 2000000000);
	uint64_t dropped = 0;
	for (const ft_drop &d : log.drops) {
		CHECK(d.source == FT_DROP_LOG);
		CHECK(d.start_ns < d.end_ns);
		dropped += d.count;
	}
	CHECK(figures["log_drops"] == dropped);
	CHECK(figures["total"]["requests"] == log.requests.size() + dropped);
	CHECK(figures["exact"] == (dropped == 0));
	CHECK(contains(p.err(), "disk was too slow") == (dropped > 0));
}

TEST_CASE("a log that cannot be created, and figures that cannot be written")
{
	Redis redis;
	refused(load({"-s", redis.socket(), "-o", "/nonexistent/log"}),
		"cannot write the log /nonexistent/log");
	const Result r = load({"-s", redis.socket(), "-n", "100", "-q", "--json", "/nonexistent/json"});
	CHECK(r.status == 3);
	CHECK(contains(r.err, "cannot write /nonexistent/json"));
	CHECK(contains(r.out, "requests/s"));
}

TEST_CASE("Ctrl-C and SIGTERM end a run with its table and its log")
{
	for (int number : {SIGINT, SIGTERM}) {
		Redis redis;
		TempDir dir;
		Process p(load_command({"-s", redis.socket(), "--duration", "60", "-q", "-P", "3",
					"--threads", "2", "-o", dir.file("log")}));
		sleep_for(Seconds(0.5));
		p.signal(number);
		REQUIRE(p.wait(Seconds(10)) == 0);
		CHECK(contains(p.out(), "standard deviation"));
		const Log log = read_log(dir.file("log"));
		CHECK(log.whole());
		CHECK(log.summary["reason"] == "interrupted");
		CHECK(log.summary["runs"][0]["total"]["requests"] == log.requests.size());
		CHECK(log.with_status(FT_STATUS_TIMEOUT) == 0); // outstanding requests were waited for
	}
}

TEST_CASE("Ctrl-C while the server hangs does not hang")
{
	Redis redis;
	TempDir dir;
	Process p(load_command({"-s", redis.socket(), "--duration", "60", "--rate", "1000", "-c", "5", "-q",
				"-o", dir.file("log")}));
	sleep_for(Seconds(0.4));
	redis.process().signal(SIGSTOP);
	sleep_for(Seconds(0.2));
	p.signal(SIGINT);
	REQUIRE(p.wait(Seconds(5)) == 0);
	const Log log = read_log(dir.file("log"));
	CHECK(log.whole());
	CHECK(log.with_status(FT_STATUS_TIMEOUT) == 5);
	CHECK(log.with_status(FT_STATUS_UNSENT) > 50);
}

TEST_CASE("a kill -9 loses at most about one second of the log")
{
	Redis redis;
	TempDir dir;
	Process p(load_command(
	    {"-s", redis.socket(), "--duration", "60", "--rate", "1000", "-q", "-o", dir.file("log")}));
	sleep_for(Seconds(3.5));
	p.signal(SIGKILL);
	p.wait(Seconds(5));
	const Log log = read_log(dir.file("log"));
	CHECK(log.error == "");
	CHECK(log.damage.no_trailer);
	CHECK(log.requests.size() >= 1500);
}
