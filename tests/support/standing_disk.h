// SPDX-License-Identifier: MIT
// A disk that hangs or fails on request: an ext4 file system in a file. The kernel freezes it, so that each
// write to it waits until it is thawed, or treats it as damaged. Mounted in a mount namespace of this process
// and its children.
#pragma once
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

namespace forktail::test
{

class StandingDisk
{
public:
	StandingDisk()
	{
		const std::string image = dir_.file("image"), disk = dir_.file("disk");
		mounted_ = unshare(CLONE_NEWNS) == 0 &&
			   mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
			   run({"sh", "-c",
				"truncate -s 64M " + image + " && mkfs.ext4 -q " + image + " && mkdir " +
				    disk + " && mount -o loop,errors=remount-ro " + image + " " + disk})
				   .status == 0;
		if (mounted_)
			fd_ = open(disk.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		else
			WARN("SKIPPED: mounting a file system image needs root and a loop device");
	}
	~StandingDisk()
	{
		if (!mounted_)
			return;
		stand(false);
		close(fd_);
		umount2(dir_.file("disk").c_str(), MNT_DETACH);
	}
	StandingDisk(const StandingDisk &) = delete;
	StandingDisk &operator=(const StandingDisk &) = delete;

	bool mounted() const { return mounted_; }
	std::string file(const std::string &name) const { return dir_.file("disk") + "/" + name; }
	// Returns when running writes have ended. Every later write waits.
	// From now on writes fail, until the end of this object: with EROFS, as after damage was found, or
	// with EIO, as without the device.
	bool fail(int error)
	{
		uint32_t now = 2; // without writing anything first
		if (error == EIO)
			return ioctl(fd_, _IOR('X', 125, uint32_t) /* EXT4_IOC_SHUTDOWN */, &now) == 0;
		return run({"sh", "-c",
			    "echo 1 >/sys/fs/ext4/$(basename $(findmnt -no SOURCE " + dir_.file("disk") +
				"))/trigger_fs_error"})
			   .status == 0;
	}
	bool stand(bool still) { return ioctl(fd_, still ? FIFREEZE : FITHAW, 0) == 0; }

private:
	TempDir dir_;
	bool mounted_ = false;
	int fd_ = -1;
};

} // namespace forktail::test
