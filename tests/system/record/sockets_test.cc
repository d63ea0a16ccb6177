// SPDX-License-Identifier: MIT
// Which thread serves which connection: the recording of a server with a loop in each of its threads, checked
// against the kernel's data about these threads.
#include <arpa/inet.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/servers/memcached.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

// A connection that has got one answer, so that a worker owns it.
class Client
{
public:
	explicit Client(const Endpoint &server) : fd_(connected(server)) { ask("version\r\n"); }
	~Client() { close(fd_); }
	Client(const Client &) = delete;
	Client &operator=(const Client &) = delete;

	std::string ask(const std::string &text) const
	{
		char answer[256];
		const bool sent = write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
		const ssize_t n = sent ? read(fd_, answer, sizeof answer) : -1;
		if (n <= 0)
			throw std::runtime_error("no answer");
		return {answer, static_cast<size_t>(n)};
	}
	uint32_t port() const
	{
		sockaddr_in own = {};
		socklen_t size = sizeof own;
		return getsockname(fd_, reinterpret_cast<sockaddr *>(&own), &size) ||
			       own.sin_family != AF_INET
			   ? 0
			   : ntohs(own.sin_port);
	}
	uint64_t inode() const
	{
		struct stat st = {};
		fstat(fd_, &st);
		return st.st_ino;
	}

private:
	static int connected(const Endpoint &server)
	{
		int err;
		const int fd =
		    socket(server.socket.empty() ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (server.socket.empty()) {
			sockaddr_in to = {};
			to.sin_family = AF_INET;
			to.sin_port = htons(static_cast<uint16_t>(server.port));
			to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
			err = connect(fd, reinterpret_cast<sockaddr *>(&to), sizeof to);
		} else {
			sockaddr_un to = {};
			to.sun_family = AF_UNIX;
			server.socket.copy(to.sun_path, sizeof to.sun_path - 1);
			err = connect(fd, reinterpret_cast<sockaddr *>(&to), sizeof to);
		}
		if (err)
			throw std::runtime_error("cannot connect");
		return fd;
	}

	int fd_;
};

// From the kernel: the epoll instance that each thread of a process is waiting for.
std::map<uint32_t, std::set<uint32_t>> waiting_threads(pid_t pid)
{
	std::map<uint32_t, std::set<uint32_t>> by_epoll;
	const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
	for (const auto &task : std::filesystem::directory_iterator(tasks)) {
		std::ifstream in(task.path() / "syscall");
		std::string nr, first;
		in >> nr >> first;
		if (nr == "232" || nr == "281") // epoll_wait, epoll_pwait
			by_epoll[static_cast<uint32_t>(std::stoul(first, nullptr, 16))].insert(
			    static_cast<uint32_t>(std::stoul(task.path().filename())));
	}
	return by_epoll;
}

// From the kernel: the inodes in an epoll instance.
std::set<uint64_t> members(pid_t pid, uint32_t epoll)
{
	std::set<uint64_t> inodes;
	std::ifstream in("/proc/" + std::to_string(pid) + "/fdinfo/" + std::to_string(epoll));
	for (std::string line; std::getline(in, line);)
		if (const size_t at = line.find(" ino:"); at != std::string::npos)
			inodes.insert(std::stoull(line.substr(at + 5), nullptr, 16));
	return inodes;
}

const ft_socket *told_of(const Recorded &r, const Client &client)
{
	const ft_socket *found = nullptr;
	for (const ft_socket &s : r.sockets)
		if (client.port() ? s.peer_port == client.port() : s.peer_inode == client.inode())
			found = &s;
	return found;
}

// The recorder learns at once which threads have loops, and attaches its program after that.
void AskForASecond(const std::vector<std::unique_ptr<Client>> &clients, const std::string &text)
{
	for (int i = 0; i < 10; i++) {
		for (const auto &client : clients)
			client->ask(text);
		sleep_for(Seconds(0.1));
	}
}

void check_workers(const MemcachedOptions &options)
{
	Memcached memcached(options);
	std::vector<std::unique_ptr<Client>> clients;
	for (int i = 0; i < 6; i++)
		clients.push_back(std::make_unique<Client>(memcached.endpoint()));
	Recorder recorder(memcached.pid());
	for (int i = 0; i < 6; i++)
		clients.push_back(std::make_unique<Client>(memcached.endpoint()));
	AskForASecond(clients, "version\r\n");
	const auto waiting = waiting_threads(memcached.pid());
	CHECK(waiting.size() >= 5);			// four workers and the listener
	std::map<uint64_t, std::set<uint32_t>> threads; // by inode
	for (const auto &[epoll, of_epoll] : waiting)
		for (const uint64_t inode : members(memcached.pid(), epoll))
			threads[inode].insert(of_epoll.begin(), of_epoll.end());
	const Recorded r = recorder.stop();

	std::set<uint32_t> workers;
	for (const auto &client : clients) {
		const ft_socket *s = told_of(r, *client);
		REQUIRE(s);
		CHECK(s->tgid == static_cast<uint32_t>(memcached.pid()));
		CHECK(threads[s->inode] == std::set<uint32_t>{s->reader});
		CHECK(s->local_port == static_cast<uint32_t>(memcached.port()));
		workers.insert(s->reader);
	}
	CHECK(workers.size() == 4); // it distributes them in rotation
	CHECK(r.sockets.size() == clients.size());
}

} // namespace

TEST_CASE("each connection of a server with several threads has the thread that reads it")
{
	REQUIRE(root());
	SECTION("TCP")
	{
		check_workers({.tcp = true, .config = {"-t", "4"}});
	}
	SECTION("a Unix socket")
	{
		check_workers({.tcp = false, .config = {"-t", "4"}});
	}
}

TEST_CASE("a connection is closed by the thread that read it")
{
	REQUIRE(root());
	Memcached memcached({.tcp = true, .config = {"-t", "4"}});
	std::vector<std::unique_ptr<Client>> clients;
	for (int i = 0; i < 8; i++)
		clients.push_back(std::make_unique<Client>(memcached.endpoint()));
	Recorder recorder(memcached.pid());
	AskForASecond(clients, "version\r\n");
	std::set<uint32_t> ports;
	for (const auto &client : clients)
		ports.insert(client->port());
	clients.clear();
	sleep_for(Seconds(0.5));
	const Recorded r = recorder.stop();

	std::map<uint32_t, uint32_t> readers;
	size_t closed = 0;
	for (const ft_socket &s : r.sockets) {
		if (s.epoll != static_cast<uint32_t>(FT_SOCKET_GONE)) {
			readers[s.peer_port] = s.reader;
			continue;
		}
		CHECK(ports.count(s.peer_port));
		CHECK(readers[s.peer_port] == s.reader);
		CHECK(s.local_port == static_cast<uint32_t>(memcached.port()));
		closed++;
	}
	CHECK(closed == ports.size());
}

TEST_CASE("threads that listen on one port have their accepted and their moved connections")
{
	REQUIRE(root());
	const int port = free_port();
	Process server({FORKTAIL_LOOPS_SERVER, std::to_string(port), "3"});
	REQUIRE(eventually([&] { return server.out() == "listening\n"; }));
	std::vector<std::unique_ptr<Client>> clients;
	for (int i = 0; i < 12; i++)
		clients.push_back(std::make_unique<Client>(Endpoint{"", port}));
	Recorder recorder(server.pid());
	AskForASecond(clients, "who\n");
	// From the server itself: which thread reads it.
	std::vector<std::string> before, after;
	for (const auto &client : clients)
		before.push_back(client->ask("who\n"));
	const uint64_t moved_ns = ft_now_ns();
	for (size_t i = 0; i < 4; i++)
		clients[i]->ask("move\n");
	for (const auto &client : clients)
		after.push_back(client->ask("who\n"));
	const Recorded r = recorder.stop();

	std::set<std::string> threads;
	for (size_t i = 0; i < clients.size(); i++) {
		INFO("client " << i);
		std::vector<ft_socket> stays;
		for (const ft_socket &s : r.sockets)
			if (s.peer_port == clients[i]->port())
				stays.push_back(s);
		REQUIRE(stays.size() == (i < 4 ? 2 : 1));
		CHECK(std::to_string(stays[0].reader) + "\n" == before[i]);
		CHECK(std::to_string(stays.back().reader) + "\n" == after[i]);
		if (i < 4)
			CHECK(stays[1].seen_ns > moved_ns);
		threads.insert(before[i]);
	}
	CHECK(threads.size() > 1);
}

TEST_CASE("the readers of a server with one loop are not recorded")
{
	REQUIRE(root());
	Redis redis({.tcp = true, .config = {}});
	Recorder recorder(redis.pid());
	for (int i = 0; i < 10; i++) {
		redis.command({"PING"});
		sleep_for(Seconds(0.1));
	}
	const Recorded r = recorder.stop();
	CHECK(r.sockets.empty());
	CHECK(!r.loops.empty());
}
