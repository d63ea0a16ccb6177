// SPDX-License-Identifier: MIT
// Opening a process' mapped files: exactly the mapped file or none, whatever is at its path now.
#include "tests/support/catch.h"

#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <linux/capability.h>
#include <memory>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/samples.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;

namespace
{

// A file of this process' memory.
class Mapped
{
public:
	explicit Mapped(const std::string &path)
	{
		write_file(path, "the mapped one" + std::string(4096, '.'));
		const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
		struct stat st = {};
		REQUIRE(fstat(fd, &st) == 0);
		at_ = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
		close(fd);
		REQUIRE(at_ != MAP_FAILED);
		file.start = file.code_start = reinterpret_cast<uint64_t>(at_);
		file.end = file.code_end = file.start + 4096;
		file.inode = st.st_ino;
		path.copy(file.path, sizeof file.path - 1);
	}
	~Mapped() { munmap(at_, 4096); }
	mapped_file file = {};

private:
	void *at_;
};

// The text of the opened file, or the error number.
std::string opened(const mapped_file &file)
{
	const std::unique_ptr<mounts, decltype(&free)> own(mounts_read(getpid()), free);
	const mounts *both[MOUNTS] = {own.get(), own.get()};
	const int fd = mapped_open(both, getpid(), &file);
	if (fd < 0)
		return std::to_string(fd);
	char text[15] = "";
	CHECK(read(fd, text, 14) >= 0);
	close(fd);
	return text;
}

// The same by a process without the capability to use map_files. `before` runs while it still has the
// capability. Returns "" if it takes longer than five seconds.
std::string opened_by_path(const mapped_file &file, const std::function<bool()> &before = nullptr)
{
	int pipes[2];
	REQUIRE(pipe(pipes) == 0);
	const pid_t child = fork();
	if (child == 0) {
		alarm(5);
		if (before && !before())
			_exit(3);
		__user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
		__user_cap_data_struct none[2] = {};
		syscall(SYS_capset, &header, none);
		mapped_file own = file;
		const std::string text = opened(own);
		_exit(write(pipes[1], text.c_str(), text.size()) != static_cast<ssize_t>(text.size()));
	}
	close(pipes[1]);
	char text[64] = "";
	const ssize_t n = read(pipes[0], text, sizeof text - 1);
	close(pipes[0]);
	waitpid(child, nullptr, 0);
	return std::string(text, n > 0 ? static_cast<size_t>(n) : 0);
}

std::string error(int number)
{
	return std::to_string(-number);
}

} // namespace

TEST_CASE("a mapped file is opened, also when it was deleted or replaced")
{
	if (geteuid() != 0)
		return;
	TempDir dir;
	const std::string path = dir.file("file");
	Mapped m(path);
	CHECK(opened(m.file) == "the mapped one");
	REQUIRE(unlink(path.c_str()) == 0);
	CHECK(opened(m.file) == "the mapped one");
	write_file(path, "another one   ");
	CHECK(opened(m.file) == "the mapped one");
	REQUIRE(unlink(path.c_str()) == 0);
	REQUIRE(mkfifo(path.c_str(), 0600) == 0);
	CHECK(opened(m.file) == "the mapped one");
}

TEST_CASE("by its path only the mapped file is opened: no other file, no FIFO, no target of a link")
{
	if (geteuid() != 0)
		return;
	TempDir dir;
	const std::string path = dir.file("file"), aside = dir.file("aside");
	Mapped m(path);
	CHECK(opened_by_path(m.file) == "the mapped one");
	REQUIRE(rename(path.c_str(), aside.c_str()) == 0);
	CHECK(opened_by_path(m.file) == error(ENOENT));
	write_file(path, "another one");
	CHECK(opened_by_path(m.file) == error(ESTALE));
	REQUIRE(unlink(path.c_str()) == 0);
	REQUIRE(mkfifo(path.c_str(), 0600) == 0);
	CHECK(opened_by_path(m.file) == error(ENOTSUP));
	REQUIRE(unlink(path.c_str()) == 0);
	// A link is refused as a link, even if it leads to the mapped file.
	REQUIRE(symlink(aside.c_str(), path.c_str()) == 0);
	CHECK(opened_by_path(m.file) == error(ENOTSUP));
	// Links in the path and ".." are not followed either.
	REQUIRE(symlink(dir.path().c_str(), dir.file("here").c_str()) == 0);
	for (const std::string &way : {dir.path() + "/here/aside", dir.path() + "/x/../aside"}) {
		mapped_file f = m.file;
		f.path[way.copy(f.path, sizeof f.path - 1)] = 0;
		CHECK(opened_by_path(f)[0] == '-');
	}
}

TEST_CASE("files on a FUSE mount are not opened, because its server may never answer")
{
	const int device = geteuid() == 0 ? open("/dev/fuse", O_RDWR | O_CLOEXEC) : -1;
	if (device < 0)
		return;
	TempDir dir;
	Mapped m(dir.file("file"));
	const std::string served = dir.file("served"), way = served + "/file";
	REQUIRE(mkdir(served.c_str(), 0700) == 0);
	m.file.path[way.copy(m.file.path, sizeof m.file.path - 1)] = 0;
	CHECK(opened_by_path(m.file, [&] {
		      const std::string options =
			  "fd=" + std::to_string(device) + ",rootmode=40755,user_id=0,group_id=0";
		      return unshare(CLONE_NEWNS) == 0 &&
			     mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
			     mount("forktail-test", served.c_str(), "fuse", 0, options.c_str()) == 0;
	      }) == error(ENOTSUP));
	close(device);
}

TEST_CASE("a file on a mount that is seen nowhere is not opened, because a process may serve it")
{
	if (geteuid() != 0)
		return;
	TempDir dir;
	REQUIRE(mount("forktail-test", dir.path().c_str(), "tmpfs", 0, "size=1m") == 0);
	const Mapped m(dir.file("file"));
	REQUIRE(umount2(dir.path().c_str(), MNT_DETACH) == 0);
	CHECK(opened(m.file) == error(ENOTSUP));
}

TEST_CASE("a mapped device is not opened")
{
	if (geteuid() != 0)
		return;
	const int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	void *at = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	mapped_file f = {};
	f.start = f.code_start = reinterpret_cast<uint64_t>(at);
	f.end = f.code_end = f.start + 4096;
	CHECK(opened(f) == error(ENOTSUP));
	munmap(at, 4096);
}
