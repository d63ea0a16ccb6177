// SPDX-License-Identifier: MIT
// One request and its answer. See endpoint.h.
#include "tests/support/servers/endpoint.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace forktail::test
{
namespace
{

int connected(const Endpoint &server)
{
	const bool tcp = server.socket.empty();
	const int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sockaddr_in local = {};
	local.sin_family = AF_INET;
	local.sin_port = htons(static_cast<uint16_t>(server.port));
	local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sockaddr_un path = {};
	path.sun_family = AF_UNIX;
	server.socket.copy(path.sun_path, sizeof(path.sun_path) - 1);
	const timeval limit = {1, 0}; // a full accept queue of the server must not block the test
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (tcp ? connect(fd, reinterpret_cast<sockaddr *>(&local), sizeof(local))
		: connect(fd, reinterpret_cast<sockaddr *>(&path), sizeof(path))) {
		const int failed = errno;
		close(fd);
		errno = failed;
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

int free_port()
{
	static int next = getpid();
	for (;;) {
		const int port = 10000 + next++ % 12000;
		const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
		const Closed closed(fd);
		sockaddr_in local = {};
		local.sin_family = AF_INET;
		local.sin_port = htons(static_cast<uint16_t>(port));
		local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
		if (bind(fd, reinterpret_cast<sockaddr *>(&local), sizeof(local)) == 0)
			return port;
	}
}

bool accepts(const Endpoint &server)
{
	const int fd = connected(server);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
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
