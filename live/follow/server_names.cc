// SPDX-License-Identifier: MIT
// Names of servers. The lowest port is usually the one that clients use (a Redis Cluster's bus port is 10,000
// higher). Ports take precedence over Unix sockets because they distinguish servers of several hosts.
#include "server_names.h"

#include <algorithm>
#include <cstdlib>

namespace forktail::live
{

namespace
{

std::string NameOf(const std::string &comm, const std::vector<std::string> &listens)
{
	unsigned long port = 0;
	std::string path;
	for (const std::string &place : listens) {
		if (place.rfind("tcp:", 0) == 0) {
			unsigned long p = strtoul(place.c_str() + 4, nullptr, 10);
			port = p && (!port || p < port) ? p : port;
		} else if (place.rfind("unix:", 0) == 0 && path.empty()) {
			path = place.substr(5);
		}
	}
	if (port)
		return comm + ":" + std::to_string(port);
	return path.empty() ? comm : comm + ":" + path;
}

// True if `name` is `base`, or `base` with a suffix that distinguishes several servers.
bool IsOneOf(const std::string &name, const std::string &base)
{
	return name == base || name.rfind(base + " (", 0) == 0 || name.rfind(base + "#", 0) == 0;
}

} // namespace

// Assigns the name to the process, unless a running process has it.
bool Servers::Take(const std::string &name, uint32_t pid, const std::string &comm, uint64_t t_ns)
{
	auto [found, is_new] = by_name_.try_emplace(name, static_cast<uint32_t>(all_.size()));
	if (is_new) {
		all_.emplace_back();
		all_.back().name = name;
	}
	Server &server = all_[found->second];
	if (server.alive && server.pid != pid)
		return false;
	server.comm = comm;
	server.pid = pid;
	server.alive = true;
	server.began_ns = t_ns;
	server.ended_ns = 0;
	of_pid_[pid] = found->second;
	return true;
}

void Servers::Name(uint32_t pid, const std::string &base, const std::string &place, const std::string &comm,
		   uint64_t t_ns)
{
	if (Take(base, pid, comm, t_ns))
		return;
	if (!place.empty() && Take(base + " (" + place + ")", pid, comm, t_ns))
		return;
	for (unsigned i = 2; !Take(base + "#" + std::to_string(i), pid, comm, t_ns);)
		i++;
}

void Servers::Add(const common::Json &target, uint64_t t_ns)
{
	uint32_t pid = static_cast<uint32_t>(common::Whole(target, "pid"));
	if (!pid)
		return;
	std::string comm = common::Text(target, "comm");
	std::vector<std::string> listens = common::Texts(target, "listens");
	std::string base = NameOf(comm, listens);
	uint32_t known = Known(pid);
	// A server that was recorded before it listened gets its final name when it listens.
	if (known == kNone || !all_[known].alive || (!listens.empty() && !IsOneOf(all_[known].name, base))) {
		if (known != kNone)
			End(pid, t_ns);
		Name(pid, base, common::Text(target, "cgroup_of"), comm, t_ns);
	}
	if (!listens.empty())
		all_[Known(pid)].listens = std::move(listens);
}

void Servers::End(uint32_t pid, uint64_t t_ns)
{
	auto found = of_pid_.find(pid);
	if (found == of_pid_.end())
		return;
	Server &server = all_[found->second];
	if (server.pid == pid && server.alive) {
		server.alive = false;
		server.ended_ns = t_ns;
	}
}

void Servers::EndAll(uint64_t t_ns)
{
	for (Server &server : all_) {
		if (server.alive)
			server.ended_ns = t_ns;
		server.alive = false;
	}
	of_pid_.clear();
}

uint32_t Servers::Known(uint32_t pid) const
{
	auto found = of_pid_.find(pid);
	return found == of_pid_.end() ? kNone : found->second;
}

uint32_t Servers::Of(uint32_t pid, const std::string &comm, uint64_t t_ns)
{
	uint32_t known = Known(pid);
	if (known != kNone)
		return known;
	for (const Server &server : all_)
		if (!server.alive && server.comm == comm && Take(server.name, pid, comm, t_ns))
			return Known(pid);
	Name(pid, comm, "", comm, t_ns);
	return Known(pid);
}

} // namespace forktail::live
