// SPDX-License-Identifier: MIT
// /proc says which process listens on a port, so that another's server is never taken for ours.
#include "listen.h"

#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "recording/recording.h"

namespace forktail::lab
{
namespace
{

namespace fs = std::filesystem;

constexpr int kLowestPort = 10'000, kHighestPort = 22'767;
constexpr int kBusOffset = 10'000; // Redis' own
constexpr int kPortTries = 1000, kStartTries = 5;
constexpr size_t kSocketPathLimit = sizeof(sockaddr_un::sun_path) - 1;

sockaddr_in LocalAddress(int port)
{
	sockaddr_in address = {};
	address.sin_family = AF_INET;
	address.sin_port = htons(static_cast<uint16_t>(port));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

// By anybody: a server elsewhere may listen on all addresses.
bool IsFree(int port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1; // as servers do: connections that are over don't count
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	sockaddr_in address = LocalAddress(port);
	bool free =
	    bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0 && listen(fd, 1) == 0;
	close(fd);
	return free;
}

// Whether this process listens on this port: what accepts a connection there may be somebody else's.
bool Listens(pid_t pid, int port)
{
	char local[16];
	snprintf(local, sizeof(local), ":%04X", port);
	// "0: 0100007F:1F90 00000000:0000 0A ... inode": 0A is LISTEN, the inode the tenth word.
	std::ifstream sockets("/proc/net/tcp");
	std::string inode;
	for (std::string line; inode.empty() && std::getline(sockets, line);) {
		std::istringstream words(line);
		std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
		if (word.size() > 9 && word[3] == "0A" && word[1].find(local) != std::string::npos)
			inode = word[9];
	}
	std::error_code ec;
	for (const fs::directory_entry &fd :
	     fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ec))
		if (fs::read_symlink(fd, ec) == "socket:[" + inode + "]")
			return true;
	return false;
}

bool IsUp(const Child &child, const Endpoint &endpoint)
{
	if (endpoint.socket.empty())
		return Listens(child.pid, endpoint.port);
	int fd = ConnectTo(endpoint);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

// Until it listens, ends, or the time is up.
bool AwaitListening(Session *session, const Endpoint &endpoint, double seconds, Child *child,
		    std::string *error)
{
	uint64_t limit_ns = ft_now_ns() + static_cast<uint64_t>(seconds * 1e9);
	while (!child->ended && !IsUp(*child, endpoint)) {
		if (!Step(session, 10, error))
			return false;
		if (!child->ended && ft_now_ns() > limit_ns) {
			*error = child->command.name + " did not listen on " + endpoint.Address() +
				 " within " + std::to_string(static_cast<int>(seconds)) + " s" +
				 LastWords(*child);
			return false;
		}
	}
	if (child->ended)
		*error = HowItEnded(*child);
	return !child->ended;
}

} // namespace

std::string Endpoint::Address() const
{
	return socket.empty() ? "127.0.0.1:" + std::to_string(port) : socket;
}

int FreePort()
{
	static std::minstd_rand random{std::random_device()()};
	std::uniform_int_distribution<int> any(kLowestPort, kHighestPort);
	for (int i = 0; i < kPortTries; i++) {
		int port = any(random);
		if (IsFree(port) && IsFree(port + kBusOffset))
			return port;
	}
	return 0;
}

bool StartListening(Session *session, const std::string &socket,
		    const std::function<Command(const Endpoint &)> &command, double seconds,
		    Endpoint *endpoint, Child **child, std::string *error)
{
	if (socket.size() > kSocketPathLimit) {
		*error = "the path of the temporary directory is too long for a Unix socket (" + socket +
			 "). Set TMPDIR to a shorter path.";
		return false;
	}
	for (int i = 0; i < kStartTries; i++) {
		*endpoint = {socket, 0};
		if (socket.empty() && (endpoint->port = FreePort()) == 0) {
			*error = "no free TCP port from " + std::to_string(kLowestPort) + " to " +
				 std::to_string(kHighestPort);
			return false;
		}
		*child = Start(session, command(*endpoint), error);
		if (!*child)
			return false;
		if (AwaitListening(session, *endpoint, seconds, *child, error)) {
			(*child)->needed = true;
			return true;
		}
		if (!(*child)->ended)
			kill((*child)->pid, SIGKILL);
		if (!(*child)->ended ||
		    LastWords(**child).find(std::strerror(EADDRINUSE)) == std::string::npos)
			return false;
	}
	return false;
}

int ConnectTo(const Endpoint &endpoint)
{
	bool tcp = endpoint.socket.empty();
	int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sockaddr_in local = LocalAddress(endpoint.port);
	sockaddr_un unix_address = {};
	unix_address.sun_family = AF_UNIX;
	endpoint.socket.copy(unix_address.sun_path, kSocketPathLimit);
	// A server whose queue of connections is full would keep us waiting, and we it.
	timeval limit = {1, 0};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	int failed = tcp ? connect(fd, reinterpret_cast<sockaddr *>(&local), sizeof(local))
			 : connect(fd, reinterpret_cast<sockaddr *>(&unix_address), sizeof(unix_address));
	if (failed) {
		int number = errno;
		close(fd);
		errno = number;
		return -1;
	}
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

std::function<void(const std::string &)> AppendTo(const std::string &file)
{
	return [file](const std::string &line) { std::ofstream(file, std::ios::app) << line << '\n'; };
}

bool Await(Session *session, double seconds, const std::string &late, const Look &look, std::string *error)
{
	uint64_t limit_ns = ft_now_ns() + static_cast<uint64_t>(seconds * 1e9);
	for (;;) {
		bool yes = false;
		if (!look(&yes, error))
			return false;
		if (yes)
			return true;
		if (!Step(session, 20, error))
			return false;
		if (ft_now_ns() > limit_ns) {
			*error = late + " after " + std::to_string(static_cast<int>(seconds)) + " s";
			return false;
		}
	}
}

} // namespace forktail::lab
