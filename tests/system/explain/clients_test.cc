// SPDX-License-Identifier: MIT
// A real server's work for its clients, by name and by count: answers to thousands of subscribers,
// connections opened and closed, and the kernel's part in plain requests.
#include <algorithm>
#include <arpa/inet.h>
#include <map>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "analysis/source.h"
#include "recording/recording.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/servers/memcached.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;
using Json = nlohmann::json;

namespace
{

constexpr size_t kSubscribers = 5000, kStorm = 8000;

// Allows that many connections, here and in servers started from now on.
void allow_descriptors(rlim_t wanted)
{
	rlimit limit;
	REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	if (limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted;
	limit.rlim_max = std::max(limit.rlim_max, wanted);
	REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

// A client of the server, on a Unix socket or a port of 127.0.0.1.
class Client
{
public:
	explicit Client(const Endpoint &server)
	{
		sockaddr_un local = {};
		sockaddr_in tcp = {};
		local.sun_family = AF_UNIX;
		tcp.sin_family = AF_INET;
		server.socket.copy(local.sun_path, sizeof local.sun_path - 1);
		tcp.sin_port = htons(static_cast<uint16_t>(server.port));
		tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		const bool is_local = !server.socket.empty();
		fd_ = socket(is_local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		REQUIRE(fd_ >= 0);
		REQUIRE(connect(fd_,
				is_local ? reinterpret_cast<sockaddr *>(&local)
					 : reinterpret_cast<sockaddr *>(&tcp),
				is_local ? sizeof local : sizeof tcp) == 0);
	}
	Client(Client &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	Client(const Client &) = delete;
	~Client()
	{
		if (fd_ >= 0)
			close(fd_);
	}
	void say(const std::string &text) const
	{
		REQUIRE(send(fd_, text.data(), text.size(), MSG_NOSIGNAL) ==
			static_cast<ssize_t>(text.size()));
	}
	// Waits for an answer and returns what is available.
	std::string hear() const
	{
		pollfd ready = {fd_, POLLIN, 0};
		REQUIRE(poll(&ready, 1, 60'000) == 1);
		char bytes[4096];
		const ssize_t count = recv(fd_, bytes, sizeof bytes, 0);
		REQUIRE(count > 0);
		return {bytes, static_cast<size_t>(count)};
	}

private:
	int fd_;
};

struct Calls {
	uint64_t writes, accepted, closed;
};

// The calls in a recording's iterations, and the iteration with the most calls.
struct Iterations {
	Calls sum = {}, most = {};
};

Iterations iterations_of(const std::string &path)
{
	forktail::analysis::Run run;
	std::string error;
	REQUIRE(forktail::analysis::LoadRun(path, &run, &error));
	Iterations iterations;
	auto add = [](uint64_t n, uint64_t *sum, uint64_t *most) {
		*sum += n;
		*most = std::max(*most, n);
	};
	for (const ft_span &s : run.iterations) {
		add(s.arg[1] >> 16 & 0xffff, &iterations.sum.writes, &iterations.most.writes);
		add(s.arg[1] >> 32 & 0xffff, &iterations.sum.accepted, &iterations.most.accepted);
		add(s.arg[1] >> 48, &iterations.sum.closed, &iterations.most.closed);
	}
	return iterations;
}

Json explain(const std::string &path)
{
	const Result r = run({program("forktail"), "explain", path, "--json"});
	INFO(r.err);
	REQUIRE(r.status == 0);
	return parse_json(r.out);
}

// All evidence, and the activities of own code, of episodes that overlap an interval.
struct Evidence {
	std::string text;
	std::map<std::string, uint64_t> samples;
	uint64_t all = 0;

	double share(const std::vector<std::string> &names) const
	{
		uint64_t sum = 0;
		for (const std::string &name : names)
			sum += samples.count(name) ? samples.at(name) : 0;
		return all ? static_cast<double>(sum) / static_cast<double>(all) : 0;
	}
};

Evidence evidence_between(const Json &explanation, uint64_t from_ns, uint64_t to_ns)
{
	Evidence evidence;
	for (const Json &e : explanation["episodes"]) {
		const uint64_t start = e["start_ns"], end = start + e["duration_ns"].get<uint64_t>();
		if (start >= to_ns || end <= from_ns)
			continue;
		for (const Json &sentence : e["evidence"])
			evidence.text += sentence.get<std::string>() + "\n";
		for (const Json &a : e["activities"]) {
			evidence.samples[a["name"]] += a["samples"].get<uint64_t>();
			evidence.all += a["samples"].get<uint64_t>();
		}
	}
	return evidence;
}

double share_of(const Json &own_code, const std::string &name)
{
	for (const Json &a : own_code["activities"])
		if (a["name"] == name)
			return a["share"];
	return 0;
}

// A sample's system call comes from the kernel, its innermost function from unwinding the stack. libc's
// `write` is in the system call of that name, or in none.
void check_calls(const std::string &path)
{
	static const std::vector<std::string> names = {"read", "write", "sendmsg", "epoll_wait"};
	forktail::analysis::Run run;
	std::string error;
	REQUIRE(forktail::analysis::LoadRun(path, &run, &error));
	uint64_t in_kernel = 0, with_call = 0, compared = 0, same = 0;
	for (const ft_cpu_sample &s : run.cpu_samples) {
		if (s.syscall) {
			CHECK(s.owner == FT_OWN_CODE);
			CHECK((s.flags & FT_CPU_SAMPLE_KERNEL) != 0);
		}
		if (s.owner != FT_OWN_CODE || !(s.flags & FT_CPU_SAMPLE_KERNEL))
			continue;
		in_kernel++;
		with_call += s.syscall != 0;
		const forktail::analysis::Stack &stack = run.stacks[s.stack];
		const std::string function = stack.frames.empty() ? "" : stack.frames[0].function;
		if (!s.syscall || std::find(names.begin(), names.end(), function) == names.end())
			continue;
		compared++;
		same += forktail::analysis::SyscallName(run, s.syscall - 1) == function;
	}
	INFO(in_kernel << " in the kernel, " << with_call << " with a call");
	CHECK(with_call * 10 > in_kernel * 8);
	CHECK(compared > 20);
	CHECK(same == compared);
}

// Puts a plain load on a server for two seconds while it is recorded, and explains it.
Json explain_load(pid_t server, const std::vector<std::string> &where)
{
	Recorder recorder(server);
	std::vector<std::string> argv = {program("forktail-load"), "-q", "-c", "50", "--duration", "2s"};
	argv.insert(argv.end(), where.begin(), where.end());
	const Result load = run(argv);
	INFO(load.err);
	REQUIRE(load.status == 0);
	recorder.stop();
	check_calls(recorder.path());
	return explain(recorder.path())["own_code"];
}

} // namespace

TEST_CASE("a PUBLISH to thousands is reported as answers to as many")
{
	REQUIRE(root());
	allow_descriptors(20'000);
	Redis redis({.tcp = false, .config = {"--maxclients", "10000"}});
	std::vector<Client> subscribers;
	for (size_t i = 0; i < kSubscribers; i++) {
		subscribers.emplace_back(Endpoint{redis.socket(), 0});
		subscribers.back().say("SUBSCRIBE news\r\n");
		subscribers.back().hear();
	}
	// It is connected before, so that the loop has waited when the message arrives: without a wait, what
	// an iteration did before its first sample is not known.
	const Client publisher(Endpoint{redis.socket(), 0});
	// An iteration of 10 ms has few samples. For one of them to be in the kernel it sometimes takes a
	// second iteration.
	bool in_kernel = false;
	for (int i = 0; i < 5 && !in_kernel; i++) {
		Recorder recorder(redis.pid());
		const uint64_t start_ns = ft_now_ns();
		publisher.say("PUBLISH news " + std::string(100, 'x') + "\r\n");
		CHECK(publisher.hear() == ":" + std::to_string(kSubscribers) + "\r\n");
		for (const Client &subscriber : subscribers)
			subscriber.hear();
		const uint64_t end_ns = ft_now_ns();
		redis.command({"PING"}); // the long iteration has ended
		CHECK(recorder.stop().dropped() == 0);

		// One write per subscriber, and the answer to the publisher.
		CHECK(iterations_of(recorder.path()).most.writes == kSubscribers + 1);
		const Evidence evidence = evidence_between(explain(recorder.path()), start_ns, end_ns);
		INFO(evidence.text);
		// If the loop did not wait before it read the PING, several iterations are recorded as one,
		// and only calls are counted.
		CHECK((evidence.text.find("was sending replies to about 5,000 clients for ") !=
			   std::string::npos ||
		       evidence.text.find("was sending replies (in at least 5,00") != std::string::npos));
		CHECK(evidence.share({"kernel/send", "answer"}) > 0.3);
		in_kernel = evidence.text.find(" in the kernel: ") != std::string::npos;
	}
	CHECK(in_kernel);
}

TEST_CASE("opened and closed connections are reported and counted")
{
	REQUIRE(root());
	allow_descriptors(20'000);
	Redis redis({.tcp = true, .config = {"--maxclients", "10000"}});
	const Endpoint server = {"", redis.port()};
	Recorder recorder(redis.pid(), {"--exact", "--min-span", "1us"}); // shorter than any accept
	redis.command({"PING"});					  // and before any
	const uint64_t before = std::stoull(redis.info("total_connections_received"));
	const uint64_t start_ns = ft_now_ns();
	{
		std::vector<Client> clients;
		for (size_t i = 0; i < kStorm; i++)
			clients.emplace_back(server);
		for (const Client &client : clients)
			client.say("PING\r\n");
		for (const Client &client : clients)
			client.hear();
	}
	REQUIRE(eventually([&] { return redis.info("connected_clients") == "1"; }, Seconds(60)));
	const uint64_t end_ns = ft_now_ns();
	CHECK(std::stoull(redis.info("total_connections_received")) - before == kStorm);
	REQUIRE(recorder.stop().dropped() == 0);

	// On a busy machine an iteration's end may be missed, and with it its counts.
	const Iterations iterations = iterations_of(recorder.path());
	INFO(iterations.sum.accepted << " accepted, " << iterations.sum.closed << " closed");
	CHECK(iterations.sum.accepted <= kStorm);
	CHECK(iterations.sum.closed <= kStorm);
	CHECK(iterations.sum.accepted > kStorm * 3 / 4);
	CHECK(iterations.sum.closed > kStorm * 3 / 4);
	const Evidence evidence = evidence_between(explain(recorder.path()), start_ns, end_ns);
	INFO(evidence.text);
	CHECK(evidence.text.find("the server was accepting ") != std::string::npos);
	CHECK(evidence.text.find("freeing ") != std::string::npos);
	CHECK(evidence.share({"kernel/accept", "kernel/close", "accept", "free-client"}) > 0.3);
}

TEST_CASE("under plain load the kernel's sending has its name and its share")
{
	REQUIRE(root());
	Redis redis({.tcp = true, .config = {}});
	for (const std::vector<std::string> &where :
	     {std::vector<std::string>{"-s", redis.socket()}, {"-p", std::to_string(redis.port())}}) {
		const Json own = explain_load(redis.pid(), where);
		INFO(own.dump(1));
		CHECK(own["activities"][0]["name"].get<std::string>().find("kernel/") == 0);
		CHECK(own["activities"][0]["kernel_samples"] == own["activities"][0]["samples"]);
		CHECK(share_of(own, "kernel/send") > 0.2);
		CHECK(share_of(own, "kernel/receive") > 0.05);
		CHECK(share_of(own, "module/libc.so.6") < 0.1);
		CHECK(share_of(own, "event-loop") < 0.1);
	}
}

TEST_CASE("a server without symbols has the kernel's activities too")
{
	REQUIRE(root());
	Memcached memcached({.tcp = false, .config = {"-t", "1"}});
	const Json own =
	    explain_load(memcached.pid(), {"--protocol", "memcache_text", "-s", memcached.socket()});
	INFO(own.dump(1));
	CHECK(share_of(own, "kernel/send") > 0.2);
	CHECK(share_of(own, "kernel/receive") > 0.05);
}
