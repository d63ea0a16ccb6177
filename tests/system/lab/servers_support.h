// SPDX-License-Identifier: MIT
// A session of the lab in the test process, whose temporary data is in the test's directory, so that
// leftovers are found.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lab/host/memory.h"
#include "lab/host/session.h"
#include "lab/host/steering.h"
#include "lab/host/swap.h"
#include "lab/servers/servers.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

namespace forktail::test
{

// A line of /proc/PID/status, "VmSwap" -> "1024 kB". "" if the process has ended.
inline std::string StatusOf(pid_t pid, const std::string &name)
{
	std::ifstream in("/proc/" + std::to_string(pid) + "/status");
	for (std::string line; std::getline(in, line);)
		if (line.rfind(name + ":", 0) == 0) {
			size_t from = line.find_first_not_of(" \t", name.size() + 1);
			return from == std::string::npos ? "" : line.substr(from);
		}
	return "";
}

// A device's or file's column of /proc/swaps, "Used" in KiB or the priority. -1 if it is not swap.
inline long SwapColumn(const std::string &device, size_t column)
{
	std::ifstream in("/proc/swaps");
	for (std::string line; std::getline(in, line);) {
		std::istringstream words(line);
		std::string word;
		words >> word;
		if (word != device)
			continue;
		for (size_t i = 0; i < column; i++)
			words >> word;
		return std::stol(word);
	}
	return -1;
}
constexpr size_t kSwapUsedKib = 3, kSwapPriority = 4;

struct Lab {
	TempDir dir;
	std::string logs = dir.file("logs"), temp = dir.file("temp");
	forktail::lab::Session session;
	forktail::lab::Topology topology;
	std::string error;

	Lab()
	{
		std::filesystem::create_directory(temp);
		setenv("TMPDIR", temp.c_str(), 1);
		REQUIRE(lab::OpenSession(&session, &error));
		unsetenv("TMPDIR");
	}
	~Lab() { lab::CloseSession(&session, &error); }
	Lab(const Lab &) = delete;
	Lab &operator=(const Lab &) = delete;

	bool TryStart(const forktail::lab::ServerPlan &plan)
	{
		setenv("TMPDIR", temp.c_str(), 1);
		bool good = lab::StartServers(&session, plan, logs, &topology, &error);
		unsetenv("TMPDIR");
		return good;
	}
	void Start(const forktail::lab::ServerPlan &plan)
	{
		bool good = TryStart(plan);
		INFO(error);
		REQUIRE(good);
	}
	forktail::lab::Instance &operator[](const std::string &name)
	{
		std::vector<forktail::lab::Instance *> found = lab::InstancesOf(topology, name);
		REQUIRE(found.size() == 1);
		return *found[0];
	}
	// Sends a command to an instance. Returns its reply's elements by line.
	std::string Command(const std::string &name, const std::vector<std::string> &words)
	{
		std::vector<std::string> reply;
		bool good = lab::Ask(&session, (*this)[name].redis.get(), words, &reply, &error);
		INFO(error);
		REQUIRE(good);
		std::string text;
		for (const std::string &element : reply)
			text += (text.empty() ? "" : "\n") + element;
		return text;
	}
	// forktail-load on a server, with more options.
	std::vector<std::string> LoadLine(const std::string &name, const std::vector<std::string> &more)
	{
		std::vector<std::string> line = {program("forktail-load")};
		for (const auto &words : {lab::LoadWords(topology, name), more})
			line.insert(line.end(), words.begin(), words.end());
		return line;
	}
	std::vector<std::string> Left() const
	{
		std::vector<std::string> left;
		for (const auto &entry : std::filesystem::directory_iterator(temp))
			left.push_back(entry.path());
		return left;
	}
};

inline forktail::lab::ServerPlan Plan(const std::string &name, const std::string &kind, int count = 1,
				      bool tcp = false)
{
	forktail::lab::ServerPlan plan;
	plan.name = name;
	plan.kind = kind;
	plan.count = count;
	plan.tcp = tcp;
	return plan;
}

} // namespace forktail::test
