// SPDX-License-Identifier: MIT
// Each function waits while something is busy, and succeeds if there is nothing to undo, so it can be called
// twice.
#include "undo.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/swap.h>
#include <unistd.h>

namespace forktail::lab
{
namespace
{

// A killed process leaves its cgroup after its memory is freed; a block device is busy while udev reads it.
constexpr int kBusyMs = 10'000;

template <typename Try> bool UntilNotBusy(Try &&attempt)
{
	for (int i = 0; i < kBusyMs / 10; i++) {
		if (attempt())
			return true;
		if (errno != EBUSY)
			return false;
		usleep(10'000);
	}
	return false;
}

} // namespace

bool RemoveCgroup(const std::string &path)
{
	return UntilNotBusy([&] { return rmdir(path.c_str()) == 0 || errno == ENOENT; });
}

bool RemoveSwapDevice(const std::string &path)
{
	const std::string zram = "/dev/zram";
	if (swapoff(path.c_str()) != 0 && errno != EINVAL && errno != ENOENT)
		return false;
	if (path.rfind(zram, 0) != 0)
		return unlink(path.c_str()) == 0 || errno == ENOENT;
	std::string number = path.substr(zram.size());
	return UntilNotBusy([&] { return WriteSetting("/sys/block/zram" + number + "/reset", "1"); }) &&
	       UntilNotBusy([&] { return WriteSetting("/sys/class/zram-control/hot_remove", number); });
}

bool WriteSetting(const std::string &path, const std::string &text)
{
	int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = write(fd, text.data(), text.size());
	int failed = n < 0 ? errno : EIO;
	close(fd);
	errno = failed;
	return n == static_cast<ssize_t>(text.size());
}

} // namespace forktail::lab
