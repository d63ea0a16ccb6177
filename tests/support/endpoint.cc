// SPDX-License-Identifier: MIT
// One request and its answer; see endpoint.h.
#include "tests/support/endpoint.h"

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "tests/support/tempdir.h"

namespace forktail::test
{
namespace
{

// A connected socket, or -1.
int connected(const Endpoint &server)
{
	sockaddr_un local = {};
	sockaddr_in internet = {};
	const auto *address = reinterpret_cast<const sockaddr *>(&local);
	socklen_t size = sizeof(local);
	if (server.socket.size() >= sizeof(local.sun_path))
		throw std::runtime_error("the socket's path is too long: " + server.socket);
	local.sun_family = AF_UNIX;
	memcpy(local.sun_path, server.socket.c_str(), server.socket.size());
	if (server.socket.empty()) {
		internet.sin_family = AF_INET;
		internet.sin_port = htons(static_cast<uint16_t>(server.port));
		internet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		address = reinterpret_cast<const sockaddr *>(&internet);
		size = sizeof(internet);
	}
	const int fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, address, size)) {
		close(fd);
		return -1;
	}
	return fd;
}

class Closed
{
public:
	explicit Closed(int fd) : fd_(fd) {}
	~Closed() { close(fd_); }
	Closed(const Closed &) = delete;
	Closed &operator=(const Closed &) = delete;

private:
	int fd_;
};

} // namespace

bool accepts(const Endpoint &server)
{
	const int fd = connected(server);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool listens(pid_t pid, int port)
{
	char local[16];
	std::snprintf(local, sizeof(local), ":%04X", port);
	// "0: 0100007F:1F90 00000000:0000 0A ... inode": 0A is LISTEN, the inode the tenth word.
	std::istringstream sockets(read_file("/proc/net/tcp"));
	std::string inode;
	for (std::string line; inode.empty() && std::getline(sockets, line);) {
		std::istringstream words(line);
		const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
		if (word.size() > 9 && word[3] == "0A" && word[1].find(local) != std::string::npos)
			inode = word[9];
	}
	std::error_code gone;
	for (const auto &fd :
	     std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone))
		if (std::filesystem::read_symlink(fd, gone) == "socket:[" + inode + "]")
			return true;
	return false;
}

std::string ask(const Endpoint &server, const std::string &request, const std::string &until, Seconds limit)
{
	const int fd = connected(server);
	if (fd < 0)
		throw std::runtime_error("cannot connect: " + std::string(std::strerror(errno)));
	const Closed closed(fd);
	for (size_t sent = 0; sent < request.size();) {
		const ssize_t n = send(fd, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
		if (n < 0)
			throw std::runtime_error("cannot send: " + std::string(std::strerror(errno)));
		sent += static_cast<size_t>(n);
	}
	const auto end = std::chrono::steady_clock::now() + limit;
	std::string answer;
	for (;;) {
		const size_t at = answer.find(until);
		if (at != std::string::npos)
			return answer.substr(0, at + until.size());
		const Seconds left = end - std::chrono::steady_clock::now();
		pollfd readable = {fd, POLLIN, 0};
		if (left.count() <= 0 || poll(&readable, 1, static_cast<int>(left.count() * 1000) + 1) == 0)
			throw std::runtime_error("no whole answer in time, but: " + answer);
		char bytes[65536];
		const ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
		if (n == 0 || (n < 0 && errno != EINTR))
			throw std::runtime_error("the connection ended after: " + answer);
		if (n > 0)
			answer.append(bytes, static_cast<size_t>(n));
	}
}

} // namespace forktail::test
