// SPDX-License-Identifier: MIT
// The files of an interface's queues in /sys, and masks of CPUs as they are written there.
#include "steering.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "common/process.h"
#include "machine.h"
#include "undo.h"

namespace forktail::lab
{
namespace
{

namespace fs = std::filesystem;

// The mask of all online CPUs in the format of /sys: 32 bits per word, the highest first.
std::string MaskOfAllCpus()
{
	std::vector<int> cpus;
	common::ParseCpus(FirstLine("/sys/devices/system/cpu/online"), &cpus);
	std::vector<uint32_t> words(1);
	for (int cpu : cpus) {
		size_t word = static_cast<size_t>(cpu) / 32;
		if (words.size() <= word)
			words.resize(word + 1);
		words[word] |= uint32_t(1) << (cpu % 32);
	}
	std::string mask;
	for (size_t i = words.size(); i-- > 0;) {
		char text[16];
		snprintf(text, sizeof(text), mask.empty() ? "%x" : ",%08x", words[i]);
		mask += text;
	}
	return mask;
}

// The files of all queues of one direction ("rx", "rps_cpus").
std::vector<std::string> QueueFiles(const std::string &interface, const std::string &direction,
				    const std::string &file)
{
	std::vector<std::string> files;
	std::error_code ec;
	for (const fs::directory_entry &queue :
	     fs::directory_iterator("/sys/class/net/" + interface + "/queues", ec))
		if (queue.path().filename().string().rfind(direction + "-", 0) == 0)
			files.push_back(queue.path() / file);
	return files;
}

} // namespace

bool SpreadSoftirqs(Session *session, const std::string &interface, bool on, std::string *error)
{
	std::vector<std::string> files = QueueFiles(interface, "rx", "rps_cpus");
	if (files.empty()) {
		*error = "cannot spread the soft interrupts of " + interface + ": it has no receive queues";
		return false;
	}
	// With a single send queue there is nothing to steer, and the kernel has no xps_cpus (the loopback
	// interface).
	std::vector<std::string> send = QueueFiles(interface, "tx", "xps_cpus");
	if (send.size() > 1)
		files.insert(files.end(), send.begin(), send.end());
	std::string mask = on ? MaskOfAllCpus() : "0";
	for (const std::string &file : files) {
		std::string was = FirstLine(file);
		if (!was.empty())
			Keep(session->keeper, Leftover::kSetting, file, was);
		if (was.empty() || !WriteSetting(file, mask)) {
			*error = "cannot spread the soft interrupts of " + interface + ": " + file + ": " +
				 std::strerror(errno);
			return false;
		}
	}
	return true;
}

} // namespace forktail::lab
