// SPDX-License-Identifier: MIT
// Limits, swap and steering; see limits.h. The keeper is told before a thing is made wherever its name is
// known by then, so that not even a kill -9 in between leaves it behind.
#include "lab/limits.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <sys/swap.h>
#include <unistd.h>
#include <vector>

#include "lab/machine.h"
#include "lab/undo.h"

namespace forktail
{
namespace
{

namespace fs = std::filesystem;

constexpr int kZramNodeMs = 2000; // how long the device's node in /dev may take

std::string Why()
{
	return std::strerror(errno);
}

bool HasWord(const std::string &words, const std::string &word, char between)
{
	std::istringstream in(words);
	for (std::string one; std::getline(in, one, between);)
		if (one == word)
			return true;
	return false;
}

std::string FirstLine(const std::string &path)
{
	std::ifstream in(path);
	std::string line;
	std::getline(in, line);
	return line;
}

// Where cgroups with the memory controller are: the root of a hierarchy.
struct MemoryRoot {
	std::string path;
	bool v1 = false;
};

bool FindMemoryRoot(MemoryRoot *root, std::string *error)
{
	std::ifstream mounts("/proc/mounts");
	std::string device, path, type, options;
	for (std::string rest; mounts >> device >> path >> type >> options; std::getline(mounts, rest)) {
		if (type == "cgroup" && HasWord(options, "memory", ','))
			*root = {path, true};
		else if (type == "cgroup2" && HasWord(FirstLine(path + "/cgroup.controllers"), "memory", ' '))
			*root = {path, false};
	}
	if (root->path.empty())
		*error = "this host has no cgroups that limit memory";
	return !root->path.empty();
}

// In version 2 the root has to hand the controller on.
bool HandOnMemory(Session *session, const std::string &root, std::string *error)
{
	std::string file = root + "/cgroup.subtree_control";
	if (HasWord(FirstLine(file), "memory", ' '))
		return true;
	KeepSetting(session->keeper, file, "-memory");
	if (WriteSetting(file, "+memory"))
		return true;
	*error = "can't limit memory: " + file + " doesn't take +memory: " + Why();
	return false;
}

bool WriteAll(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		size -= static_cast<size_t>(n);
	}
	return true;
}

// The first page of swap, as include/linux/swap.h has it (union swap_header): 1024 bytes for a boot loader,
// then version, number of the last page and number of bad pages, and the magic word at the page's end.
bool WriteSwapHeader(int fd, uint64_t bytes)
{
	size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	std::string page(page_bytes, '\0');
	const uint32_t info[3] = {1, static_cast<uint32_t>(bytes / page_bytes - 1), 0};
	std::memcpy(page.data() + 1024, info, sizeof(info));
	std::memcpy(page.data() + page_bytes - 10, "SWAPSPACE2", 10);
	return lseek(fd, 0, SEEK_SET) == 0 && WriteAll(fd, page.data(), page.size()) && fsync(fd) == 0;
}

// Swap must have no holes. Not every file system can reserve blocks without writing them, and not every one
// that can takes such blocks for swap.
bool FillFile(int fd, uint64_t bytes, bool write_blocks)
{
	if (!write_blocks)
		return fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0;
	const std::string zeros(1 << 20, '\0');
	if (lseek(fd, 0, SEEK_SET) != 0)
		return false;
	for (uint64_t done = 0; done < bytes; done += zeros.size())
		if (!WriteAll(fd, zeros.data(), std::min<uint64_t>(zeros.size(), bytes - done)))
			return false;
	return true;
}

bool SwapOn(const std::string &device)
{
	return swapon(device.c_str(), SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK) == 0;
}

bool MakeSwapFile(Session *session, const std::string &path, uint64_t bytes, std::string *error)
{
	std::string directory = fs::path(path).parent_path();
	if (RoomIn(directory).in_memory) {
		*error = "can't swap to a file in " + directory +
			 ": it is kept in memory, name a directory on a disk";
		return false;
	}
	KeepSwap(session->keeper, path);
	bool good = false;
	errno = 0;
	int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	for (bool write_blocks : {false, true})
		if (!good && fd >= 0 && errno != ENOSPC)
			good =
			    FillFile(fd, bytes, write_blocks) && WriteSwapHeader(fd, bytes) && SwapOn(path);
	if (!good)
		*error = "can't make swap of " + std::to_string(bytes) + " bytes in " + path + ": " + Why();
	if (fd >= 0)
		close(fd);
	return good;
}

bool MakeZram(Session *session, uint64_t bytes, std::string *device, std::string *error)
{
	const std::string hot_add = "/sys/class/zram-control/hot_add";
	if (access(hot_add.c_str(), R_OK) != 0) {
		*error = "can't swap to compressed memory: this kernel has no zram, or it isn't loaded "
			 "(modprobe zram)";
		return false;
	}
	std::string number = FirstLine(hot_add); // reading it makes the device
	if (number.empty()) {
		*error = "can't swap to compressed memory: " + hot_add + " gave no device";
		return false;
	}
	*device = "/dev/zram" + number;
	KeepSwap(session->keeper, *device);
	if (!WriteSetting("/sys/block/zram" + number + "/disksize", std::to_string(bytes))) {
		*error = "can't give " + *device + " a size of " + std::to_string(bytes) + " bytes: " + Why();
		return false;
	}
	int fd = -1;
	for (int i = 0; i < kZramNodeMs && fd < 0; i++) {
		fd = open(device->c_str(), O_RDWR | O_CLOEXEC);
		if (fd < 0)
			usleep(1000);
	}
	bool good = fd >= 0 && WriteSwapHeader(fd, bytes) && SwapOn(*device);
	if (!good)
		*error = "can't swap to " + *device + ": " + Why();
	if (fd >= 0)
		close(fd);
	return good;
}

// All CPUs that are on, as masks of /sys are written: 32 bits a word, the highest first.
std::string MaskOfAllCpus()
{
	std::vector<int> cpus;
	ParseCpus(FirstLine("/sys/devices/system/cpu/online"), &cpus);
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

// The queues' files of one direction ("rx", "rps_cpus").
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

namespace
{

constexpr uint64_t kBeyondBytes = 16 << 20;
constexpr uint64_t kSwapKib = 1024; // less than that free is none

bool SwapIsFree()
{
	std::ifstream in("/proc/meminfo");
	std::string key, unit;
	for (uint64_t kib; in >> key >> kib; std::getline(in, unit))
		if (key == "SwapFree:")
			return kib >= kSwapKib;
	return false;
}

// A v1 group has no reclaim in the background as the host has with kswapd: each page of a full group is
// reclaimed by who wants one. In a group of a few hundred MB without file pages the kernel (6.18) then now
// and again finds no page that wasn't just used, and kills although there is swap. So there is some room
// beyond the limit, and the background's work is done here: setting the limit has the kernel reclaim in this
// process, or fail without harm.
void Reclaim(const std::string &path, uint64_t bytes)
{
	uint64_t used = 0;
	std::ifstream(path + "/memory.usage_in_bytes") >> used;
	if (used <= bytes)
		return;
	std::string limit = path + "/memory.limit_in_bytes";
	WriteSetting(limit, std::to_string(bytes));
	if (SwapIsFree())
		WriteSetting(limit, std::to_string(bytes + kBeyondBytes));
}

} // namespace

bool LimitMemory(Session *session, const std::string &name, uint64_t bytes, std::string *path,
		 std::string *error)
{
	MemoryRoot root;
	if (!FindMemoryRoot(&root, error) || (!root.v1 && !HandOnMemory(session, root.path, error)))
		return false;
	*path = root.path + "/forktail-lab-" + std::to_string(getpid()) + "-" + name;
	KeepCgroup(session->keeper, *path);
	std::string limit = *path + (root.v1 ? "/memory.limit_in_bytes" : "/memory.max");
	if (mkdir(path->c_str(), 0755) == 0 && WriteSetting(limit, std::to_string(bytes))) {
		if (root.v1 && SwapIsFree() && WriteSetting(limit, std::to_string(bytes + kBeyondBytes)))
			session->chores[*path] = [group = *path, bytes] { Reclaim(group, bytes); };
		return true;
	}
	*error = "can't limit memory to " + std::to_string(bytes) + " bytes with the cgroup " + *path + ": " +
		 Why();
	return false;
}

bool EnterGroup(const std::string &path, pid_t pid, std::string *error)
{
	if (WriteSetting(path + "/cgroup.procs", std::to_string(pid)))
		return true;
	*error = "can't put process " + std::to_string(pid) + " into the cgroup " + path + ": " + Why();
	return false;
}

bool RemoveGroup(Session *session, const std::string &path, std::string *error)
{
	session->chores.erase(path);
	if (!RemoveCgroup(path)) {
		*error = "can't remove the cgroup " + path + ": " + Why();
		return false;
	}
	ReleaseCgroup(session->keeper, path);
	return true;
}

bool MakeSwap(Session *session, const std::string &kind, uint64_t bytes, const std::string &directory,
	      Swap *swap, std::string *error)
{
	uint64_t page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
	bytes -= bytes % page_bytes;
	if (bytes < 10 * page_bytes) {
		*error = "swap of " + std::to_string(bytes) + " bytes is too little";
		return false;
	}
	bool good;
	if (kind == "zram") {
		good = MakeZram(session, bytes, &swap->device, error);
	} else if (kind == "file") {
		static int made; // of this process
		swap->device =
		    directory + "/forktail-swap-" + std::to_string(getpid()) + "-" + std::to_string(made++);
		good = MakeSwapFile(session, swap->device, bytes, error);
	} else {
		*error = "there is no swap of kind " + kind + ": it is zram or file";
		return false;
	}
	std::string ignored; // what couldn't be made is the news, and the keeper tries again
	if (!good)
		RemoveSwap(session, swap, &ignored);
	return good;
}

bool RemoveSwap(Session *session, Swap *swap, std::string *error)
{
	if (swap->device.empty())
		return true;
	if (!RemoveSwapDevice(swap->device)) {
		*error = "can't take back the swap in " + swap->device + ": " + Why();
		return false;
	}
	ReleaseSwap(session->keeper, swap->device);
	swap->device.clear();
	return true;
}

bool SpreadSoftirqs(Session *session, const std::string &interface, bool on, std::string *error)
{
	std::vector<std::string> files = QueueFiles(interface, "rx", "rps_cpus");
	if (files.empty()) {
		*error =
		    "can't steer the soft interrupts of " + interface + ": it has no receive queues here";
		return false;
	}
	// A single send queue has no choice to steer; the kernel then offers no xps_cpus (the loopback
	// interface).
	std::vector<std::string> send = QueueFiles(interface, "tx", "xps_cpus");
	if (send.size() > 1)
		files.insert(files.end(), send.begin(), send.end());
	std::string mask = on ? MaskOfAllCpus() : "0";
	for (const std::string &file : files) {
		std::string was = FirstLine(file);
		if (!was.empty())
			KeepSetting(session->keeper, file, was);
		if (was.empty() || !WriteSetting(file, mask)) {
			*error =
			    "can't steer the soft interrupts of " + interface + ": " + file + ": " + Why();
			return false;
		}
	}
	return true;
}

bool ParseBytes(const std::string &text, uint64_t *bytes)
{
	static constexpr std::array<std::pair<const char *, int>, 5> kUnits = {
	    {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}};
	uint64_t number;
	auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
	if (failure != std::errc())
		return false;
	std::string unit(rest, text.data() + text.size());
	for (auto [name, shift] : kUnits)
		if (unit == name && number <= UINT64_MAX >> shift) {
			*bytes = number << shift;
			return true;
		}
	return false;
}

} // namespace forktail
