// SPDX-License-Identifier: MIT
// One request and its answer. See endpoint.h.
#include "tests/support/servers/endpoint.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/servers/listen.h"

namespace forktail::test
{
namespace
{

int connected(const Endpoint &server)
{
	return forktail::lab::ConnectTo({server.socket, server.port});
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

std::string ask(const Endpoint &server, const std::string &request, const std::string &until, Seconds limit)
{
	const int fd = connected(server);
	if (fd < 0)
		throw std::runtime_error("cannot connect: " + std::string(std::strerror(errno)));
	const Closed closed(fd);
	fcntl(fd, F_SETFL, 0);
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
