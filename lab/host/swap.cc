// SPDX-License-Identifier: MIT
// Swap is made by mkswap(8) and switched on before any other. The keeper hears of a file before it is there,
// and of a device as soon as it has a name.
#include "swap.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/swap.h>
#include <unistd.h>

#include "machine.h"
#include "undo.h"

namespace forktail::lab
{
namespace
{

namespace fs = std::filesystem;

constexpr int kZramNodeMs = 2000;     // how long the device's node in /dev may take
constexpr double kMkswapSeconds = 60; // it writes one page, on a disk that may be busy

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

// Swap must have no holes. Not every file system can reserve blocks without writing them, and not every one
// that can takes such blocks for swap.
bool FillFile(const std::string &path, uint64_t bytes, bool write_blocks)
{
	int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	bool good = write_blocks || fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0;
	const std::string zeros(write_blocks ? 1 << 20 : 0, '\0');
	for (uint64_t done = 0; write_blocks && good && done < bytes; done += zeros.size())
		good = WriteAll(fd, zeros.data(), std::min<uint64_t>(zeros.size(), bytes - done));
	int failed = errno;
	close(fd);
	errno = failed;
	return good;
}

// Makes it swap and uses it. False: *error is one sentence.
bool SwapOn(Session *session, const std::string &device, std::string *error)
{
	Command command;
	command.name = "mkswap";
	command.argv = {FindProgram("mkswap"), device};
	if (command.argv[0].empty())
		command.argv[0] = "mkswap"; // which says that it is not there
	command.output = "/dev/null";
	Child *child = Start(session, command, error);
	if (!child || !WaitForEnd(session, child, 0, kMkswapSeconds, error) || !Succeeded(*child, error))
		return false;
	if (swapon(device.c_str(), SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK) == 0)
		return true;
	*error = std::strerror(errno);
	return false;
}

bool MakeSwapFile(Session *session, const std::string &path, uint64_t bytes, std::string *error)
{
	std::string directory = fs::path(path).parent_path(), reason;
	if (RoomIn(directory).in_memory) {
		*error = "cannot swap to a file in " + directory +
			 ": it is in memory. Set TMPDIR to a directory on a disk.";
		return false;
	}
	Keep(session->keeper, Leftover::kSwap, path);
	for (bool write_blocks : {false, true}) {
		if (FillFile(path, bytes, write_blocks)) {
			if (SwapOn(session, path, &reason))
				return true;
		} else {
			reason = std::strerror(errno);
			if (errno == ENOSPC)
				break;
		}
		if (StopSignal())
			break;
	}
	*error = "cannot create swap of " + std::to_string(bytes) + " bytes in " + path + ": " + reason;
	return false;
}

bool MakeZram(Session *session, uint64_t bytes, std::string *device, std::string *error)
{
	const std::string hot_add = "/sys/class/zram-control/hot_add";
	if (access(hot_add.c_str(), R_OK) != 0) {
		*error =
		    "cannot swap to compressed memory: the zram module is not loaded. Try modprobe zram.";
		return false;
	}
	std::string number = FirstLine(hot_add); // reading it makes the device
	if (number.empty()) {
		*error = "cannot swap to compressed memory: " + hot_add + " returned no device";
		return false;
	}
	*device = "/dev/zram" + number;
	Keep(session->keeper, Leftover::kSwap, *device);
	if (!WriteSetting("/sys/block/zram" + number + "/disksize", std::to_string(bytes))) {
		*error = "cannot set the size of " + *device + " to " + std::to_string(bytes) +
			 " bytes: " + std::strerror(errno);
		return false;
	}
	for (int i = 0; i < kZramNodeMs && access(device->c_str(), R_OK | W_OK) != 0; i++)
		usleep(1000);
	std::string reason;
	if (SwapOn(session, *device, &reason))
		return true;
	*error = "cannot swap to " + *device + ": " + reason;
	return false;
}

} // namespace

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
		*error = "unknown kind of swap " + kind + ": use zram or file";
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
		*error = "cannot remove the swap in " + swap->device + ": " + std::strerror(errno);
		return false;
	}
	Release(session->keeper, Leftover::kSwap, swap->device);
	swap->device.clear();
	return true;
}

} // namespace forktail::lab
