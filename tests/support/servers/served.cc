// SPDX-License-Identifier: MIT
// One server started by lab/servers. See served.h. Its standard error is not read while a test does something
// else, so a server that prints more than a pipe's capacity would block.
#include "tests/support/servers/served.h"

#include <chrono>
#include <csignal>

#include "tests/support/servers/started.h"

namespace forktail::test
{

namespace
{

lab::Instance &instance(const Started &started, size_t number)
{
	return *started.topology.instances.at(number);
}

} // namespace

Served::Served(std::shared_ptr<Started> started, size_t number)
    : started_(std::move(started)), number_(number)
{
}

pid_t Served::pid() const
{
	return instance(*started_, number_).child->pid;
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
	if (!instance(*started_, number_).child->ended)
		kill(pid(), number);
}

bool Served::wait(Seconds limit)
{
	const auto end = std::chrono::steady_clock::now() + limit;
	std::string why;
	const lab::Child &child = *instance(*started_, number_).child;
	while (!child.ended && std::chrono::steady_clock::now() < end)
		lab::Step(&started_->session, 10, &why);
	return child.ended;
}

} // namespace forktail::test
