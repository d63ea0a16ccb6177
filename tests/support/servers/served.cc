// SPDX-License-Identifier: MIT
// One server started by serve.py. See served.h.
#include "tests/support/servers/served.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/servers/started.h"

namespace forktail::test
{

namespace
{

StartedServer &instance(Started &started, size_t number)
{
	return started.servers.at(number);
}

} // namespace

Served::Served(std::shared_ptr<Started> started, size_t number)
    : started_(std::move(started)), number_(number)
{
}

pid_t Served::pid() const
{
	return instance(*started_, number_).pid;
}

std::string Served::socket() const
{
	return instance(*started_, number_).socket;
}

int Served::port() const
{
	return instance(*started_, number_).port;
}

const std::string &Served::directory() const
{
	return instance(*started_, number_).directory;
}

std::string Served::log() const
{
	return read_file(instance(*started_, number_).log);
}

void Served::signal(int number)
{
	syscall(SYS_pidfd_send_signal, instance(*started_, number_).pidfd, number, nullptr, 0);
}

bool Served::wait(Seconds limit)
{
	const auto end = std::chrono::steady_clock::now() + limit;
	const StartedServer &server = instance(*started_, number_);
	for (;;) {
		pollfd ended = {server.pidfd, POLLIN, 0};
		const Seconds left = end - std::chrono::steady_clock::now();
		const bool over = poll(&ended, 1, std::max(0, static_cast<int>(left.count() * 1000))) > 0;
		if (over || left.count() <= 0)
			return over;
	}
}

} // namespace forktail::test
