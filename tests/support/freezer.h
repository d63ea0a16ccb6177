// SPDX-License-Identifier: MIT
// A container's cgroup with a freezer, of either version, as Docker makes it. Removed with its object.
#pragma once
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/process.h"

namespace forktail::test
{

class Freezer
{
public:
	// The possible hierarchies: version 1's freezer; version 2, alone or together with version 1.
	explicit Freezer(int version) : version_(version)
	{
		for (const char *mount :
		     {"/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"}) {
			parent_ = std::string(mount) + "/docker";
			path_ = parent_ + "/" + id();
			const bool made = mkdir(parent_.c_str(), 0755) == 0 || errno == EEXIST;
			if (made && mkdir(path_.c_str(), 0755) == 0 && access(file().c_str(), W_OK) == 0)
				return;
			rmdir(path_.c_str());
			rmdir(parent_.c_str());
		}
		path_.clear();
	}
	~Freezer()
	{
		if (path_.empty())
			return;
		freeze(false);
		eventually([&] { return rmdir(path_.c_str()) == 0; });
		rmdir(parent_.c_str());
	}
	Freezer(const Freezer &) = delete;
	Freezer &operator=(const Freezer &) = delete;

	// False: there is no such freezer here, and the test has to be skipped.
	bool usable() const { return !path_.empty(); }
	// The container's id, which no other container on this host has now.
	static std::string id()
	{
		std::string digits = std::to_string(getpid());
		return std::string(64 - digits.size(), 'f') + digits;
	}
	std::string name() const { return "/docker/" + id(); }
	const std::string &path() const { return path_; }
	bool add(pid_t pid) { return write(path_ + "/cgroup.procs", std::to_string(pid)); }
	// Returns when all of it is frozen, or when it has been thawed.
	bool freeze(bool on)
	{
		if (!write(file(), version_ == 1 ? (on ? "FROZEN" : "THAWED") : (on ? "1" : "0")))
			return false;
		return !on || eventually([&] { return frozen(); });
	}

private:
	std::string file() const { return path_ + (version_ == 1 ? "/freezer.state" : "/cgroup.freeze"); }
	bool frozen() const
	{
		std::ifstream in(version_ == 1 ? file() : path_ + "/cgroup.events");
		const std::string text((std::istreambuf_iterator<char>(in)),
				       std::istreambuf_iterator<char>());
		return text.find(version_ == 1 ? "FROZEN" : "frozen 1") != std::string::npos;
	}
	static bool write(const std::string &path, const std::string &text)
	{
		std::ofstream file(path);
		file << text << std::flush;
		return file.good();
	}

	int version_;
	std::string parent_, path_;
};

} // namespace forktail::test
