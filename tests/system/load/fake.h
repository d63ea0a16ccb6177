// SPDX-License-Identifier: MIT
// A server for tests of behaviour that real servers do not show: it sends what the test chooses, byte by
// byte, over TCP or a Unix socket. It runs in threads of the test, so that a test can count what it received.
#pragma once
#include <arpa/inet.h>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/support/tempdir.h"

namespace forktail::test
{

class FakeServer
{
public:
	// A connection as `talk` sees it.
	class Peer
	{
	public:
		Peer(const FakeServer &server, int fd, int order) : number(order), server_(server), fd_(fd) {}
		const int number; // in the order of their arrival, from 0
		int fd() const { return fd_; }
		bool over() const { return server_.over_; }

		// The next data from the other side. "" once it has closed, or the test is over.
		std::string hear()
		{
			char buffer[65536];
			while (!server_.over_) {
				pollfd p = {fd_, POLLIN, 0};
				if (poll(&p, 1, 50) <= 0)
					continue;
				const ssize_t n = recv(fd_, buffer, sizeof(buffer), MSG_DONTWAIT);
				if (n < 0 && errno == EAGAIN)
					continue;
				return {buffer, n > 0 ? static_cast<size_t>(n) : 0};
			}
			return "";
		}
		// False: the other side reads nothing any more, or the test is over.
		bool say(const std::string &bytes)
		{
			for (size_t at = 0; at < bytes.size();) {
				if (server_.over_)
					return false;
				const ssize_t n = send(fd_, bytes.data() + at, bytes.size() - at,
						       MSG_NOSIGNAL | MSG_DONTWAIT);
				if (n > 0)
					at += static_cast<size_t>(n);
				else if (errno != EAGAIN)
					return false;
				pollfd p = {fd_, POLLOUT, 0};
				if (n < 0)
					poll(&p, 1, 50);
			}
			return true;
		}
		// Sends `bytes` repeatedly, until they are not read any more or `times` is reached.
		void say_on(const std::string &bytes, uint64_t times = UINT64_MAX)
		{
			for (uint64_t i = 0; i < times && say(bytes);)
				i++;
		}
		// A byte at a time, with a pause after each.
		bool trickle(const std::string &bytes, std::chrono::microseconds pause)
		{
			for (char byte : bytes) {
				if (!say(std::string(1, byte)))
					return false;
				if (pause.count())
					std::this_thread::sleep_for(pause);
			}
			return true;
		}

	private:
		const FakeServer &server_;
		int fd_;
	};

	// The connection is closed when `talk` returns.
	explicit FakeServer(std::function<void(Peer &)> talk, bool on_unix = true) : talk_(std::move(talk))
	{
		fd_ = socket(on_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		sockaddr_un path = {};
		sockaddr_in address = {};
		socklen_t size = sizeof(address);
		path.sun_family = AF_UNIX;
		strncpy(path.sun_path, dir_.file("socket").c_str(), sizeof(path.sun_path) - 1);
		address.sin_family = AF_INET;
		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		if ((on_unix ? bind(fd_, reinterpret_cast<sockaddr *>(&path), sizeof(path))
			     : bind(fd_, reinterpret_cast<sockaddr *>(&address), size)) ||
		    listen(fd_, 1000))
			throw std::runtime_error("a test's server cannot listen");
		if (!on_unix && getsockname(fd_, reinterpret_cast<sockaddr *>(&address), &size) == 0)
			port_ = ntohs(address.sin_port);
		accepting_ = std::thread([this] { accept_all(); });
	}
	~FakeServer()
	{
		over_ = true;
		shutdown(fd_, SHUT_RDWR);
		accepting_.join();
		for (auto &t : talks_)
			t.join();
		close(fd_);
	}
	FakeServer(const FakeServer &) = delete;
	FakeServer &operator=(const FakeServer &) = delete;

	// What forktail-load needs to find it, and other options.
	std::vector<std::string> where(const std::vector<std::string> &more = {}) const
	{
		std::vector<std::string> all = {"-s", dir_.file("socket")};
		if (port_)
			all = {"-p", std::to_string(port_)};
		all.insert(all.end(), more.begin(), more.end());
		return all;
	}
	// When connections were accepted, in order.
	std::vector<std::chrono::steady_clock::time_point> accepted() const
	{
		const std::lock_guard<std::mutex> hold(lock_);
		return accepted_;
	}

private:
	void accept_all()
	{
		int one = 1, number = 0;
		for (int c; (c = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
			{
				const std::lock_guard<std::mutex> hold(lock_);
				accepted_.push_back(std::chrono::steady_clock::now());
			}
			setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			talks_.emplace_back([this, c, id = number++] {
				Peer peer(*this, c, id);
				talk_(peer);
				close(c);
			});
		}
	}

	TempDir dir_;
	std::function<void(Peer &)> talk_;
	std::atomic<bool> over_ = false;
	int fd_ = -1, port_ = 0;
	std::vector<std::thread> talks_;
	std::thread accepting_;
	mutable std::mutex lock_;
	std::vector<std::chrono::steady_clock::time_point> accepted_;
};

using Peer = FakeServer::Peer;

// memcached's binary header and its body: a reply as a correct server sends it.
inline std::string binary_reply(uint8_t opcode, uint16_t status, const std::string &extras,
				const std::string &value, uint32_t body_bytes)
{
	std::string r(24, 0);
	r[0] = static_cast<char>(0x81);
	r[1] = static_cast<char>(opcode);
	r[4] = static_cast<char>(extras.size());
	r[6] = static_cast<char>(status >> 8);
	r[7] = static_cast<char>(status);
	for (size_t i = 0; i < 4; i++)
		r[8 + i] = static_cast<char>(body_bytes >> (24 - 8 * i));
	return r + extras + value;
}
inline std::string binary_reply(uint8_t opcode, uint16_t status, const std::string &extras,
				const std::string &value)
{
	return binary_reply(opcode, status, extras, value,
			    static_cast<uint32_t>(extras.size() + value.size()));
}

// The answer to a client's questions before its load, or "" for anything else.
inline std::string greeting_answer(const std::string &request)
{
	auto asks = [&](const char *text) { return request.find(text) != std::string::npos; };
	if (asks("\r\nPING\r\n"))
		return "+PONG\r\n";
	if (asks("\r\nINFO\r\n"))
		return "$0\r\n\r\n";
	if (asks("\r\nSETNAME\r\n"))
		return "+OK\r\n";
	if (asks("\r\nHELLO\r\n"))
		return "%1\r\n$5\r\nproto\r\n:3\r\n";
	if (request == "version\r\n")
		return "VERSION 1.6.18\r\n";
	if (request == "mn\r\n")
		return "MN\r\n";
	if (request.size() == 24 && request[0] == static_cast<char>(0x80) && request[1] == 0x0a)
		return binary_reply(0x0a, 0, "", "");
	if (request.size() == 24 && request[0] == static_cast<char>(0x80) && request[1] == 0x0b)
		return binary_reply(0x0b, 0, "", "1.6.18");
	return "";
}

// An answer to a meta command, with O@ in the answer replaced by its request's opaque.
inline std::string with_opaque(std::string answer, const std::string &request)
{
	const size_t at = request.find(" O0"), mark = answer.find("O@");
	if (at != std::string::npos && mark != std::string::npos)
		answer.replace(mark, 2,
			       request.substr(at + 1, request.find_first_of(" \r", at + 1) - at - 1));
	return answer;
}

// A server that greets correctly and answers everything else with `act`, request by request (one per read, at
// -P 1), until that returns false.
inline std::function<void(Peer &)> after_greeting(std::function<bool(Peer &, const std::string &)> act)
{
	return [act](Peer &peer) {
		const std::string name = "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$8\r\nforktail\r\n";
		for (std::string request; !(request = peer.hear()).empty();) {
			// A reopened connection sets its name and sends its first request at once.
			if (request.size() > name.size() && request.compare(0, name.size(), name) == 0) {
				if (!peer.say("+OK\r\n"))
					return;
				request.erase(0, name.size());
			}
			const std::string answer = greeting_answer(request);
			if (!(answer.empty() ? act(peer, request) : peer.say(answer)))
				return;
		}
	};
}

} // namespace forktail::test
