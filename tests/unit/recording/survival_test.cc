// SPDX-License-Identifier: MIT
// What remains of a recording after its writer was killed or its disk was full. The full disk is real: a
// small tmpfs in the test's own mount namespace, which needs root.
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fcntl.h>
#include <functional>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <random>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/unit/recording/support.h"

using namespace forktail::test;

namespace
{

// Writes spans that hardly compress until the writer fails. Returns how many it accepted.
uint64_t write_until_error(ft_writer *w)
{
	std::mt19937_64 random(7);
	for (uint64_t n = 0; n < 10'000'000; n++) {
		uint64_t words[sizeof(ft_span) / 8];
		for (uint64_t &word : words)
			word = random();
		if (ft_writer_record(w, FT_BLOCK_SPAN, words))
			return n;
	}
	return 10'000'000;
}

uint64_t records_in(const Contents &c, unsigned kind)
{
	uint64_t n = 0;
	for (const Block &b : c.blocks)
		n += b.kind == kind ? b.count : 0;
	return n;
}

// A tmpfs of `bytes` at a new directory. Not mounted if this process may not mount.
class SmallDisk
{
public:
	explicit SmallDisk(size_t bytes)
	{
		const std::string options = "size=" + std::to_string(bytes);
		mounted_ = unshare(CLONE_NEWNS) == 0 &&
			   mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
			   mount("forktail-test", dir_.path().c_str(), "tmpfs", 0, options.c_str()) == 0;
		if (!mounted_)
			WARN(
			    "SKIPPED: a full disk needs root to mount a small one: " << std::strerror(errno));
	}
	~SmallDisk()
	{
		if (mounted_)
			umount2(dir_.path().c_str(), MNT_DETACH);
	}
	bool mounted() const { return mounted_; }
	std::string file(const std::string &name) const { return dir_.file(name); }
	size_t free_bytes() const
	{
		struct statvfs s = {};
		statvfs(dir_.path().c_str(), &s);
		return s.f_bavail * s.f_bsize;
	}

private:
	TempDir dir_;
	bool mounted_ = false;
};

// Runs `work` in a separate process, because its changes to the process cannot be undone. Returns its result.
int in_child(const std::function<int()> &work)
{
	const pid_t child = fork();
	if (child == 0)
		_exit(work());
	int status = -1;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// As on a file system that cannot preallocate (NFSv3, ZFS, ext2): the call fails with EOPNOTSUPP.
bool forbid_fallocate()
{
	sock_filter program[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	sock_fprog filter = {4, program};
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

} // namespace

TEST_CASE("a killed writer loses nothing that was flushed")
{
	TempDir dir;
	const std::string path = dir.file("r");
	for (const unsigned wanted : {1u, 10u, 500u}) {
		const size_t all = kill_writer(
		    path, wanted, [](ft_writer *) {}, ft_writer_flush);
		const Contents c = read_recording(path);
		REQUIRE(c.rc == 0);
		CHECK(records_in(c, FT_BLOCK_SPAN) >= all * 50);
		CHECK(c.damage.blocks_missing == 0);
		CHECK(c.damage.no_trailer);
		uint32_t next = 0;
		for (const Block &b : c.blocks)
			for (uint32_t i = 0; b.kind == FT_BLOCK_SPAN && i < b.count; i++, next++) {
				const ft_span s = span_number(next);
				CHECK(!std::memcmp(&b.payload[i * sizeof(s)], &s, sizeof(s)));
			}
	}
}

TEST_CASE("on a full disk the recording ends at a complete block, with index and trailer")
{
	const size_t size = GENERATE(64 << 10, 256 << 10, 3 << 20);
	const bool background = GENERATE(false, true);
	SmallDisk disk(static_cast<size_t>(size));
	if (!disk.mounted())
		return;
	const std::string path = disk.file("r");
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, path.c_str(), "{}") == 0);
	if (background)
		REQUIRE(ft_writer_background(w, 1 << 20) == 0);
	write_until_error(w);
	CHECK(ft_writer_error(w) == -ENOSPC);
	const uint64_t bytes = ft_writer_bytes(w);
	const ft_span s = {};
	CHECK(ft_writer_record(w, FT_BLOCK_SPAN, &s) == -ENOSPC);
	CHECK(ft_writer_json(w, FT_BLOCK_NOTE, "{}") == -ENOSPC);
	CHECK(ft_writer_block(w, FT_BLOCK_NOTE, 0, 1, "{}", 2) == -ENOSPC);
	CHECK(ft_writer_flush(w) == -ENOSPC);
	CHECK(ft_writer_bytes(w) == bytes);
	// Other files take the rest: the room for closing must belong to the writer already.
	const int other = open(disk.file("other").c_str(), O_WRONLY | O_CREAT, 0600);
	const std::string page(4096, 'x');
	while (write(other, page.data(), page.size()) > 0) {
	}
	close(other);
	CHECK(disk.free_bytes() == 0);
	std::string summary(8'000, 0);
	std::mt19937 random(8);
	for (char &c : summary)
		c = static_cast<char>('a' + random() % 26);
	CHECK(ft_writer_close(w, summary.c_str()) == -ENOSPC);

	const Contents c = read_recording(path);
	REQUIRE(c.rc == 0);
	CHECK(c.damage.bytes_skipped == 0);
	CHECK(c.damage.blocks_missing == 0);
	CHECK_FALSE(c.damage.no_trailer);
	CHECK(c.blocks.back().kind == FT_BLOCK_SUMMARY);
	CHECK(c.blocks.back().payload == summary);
	// Most of the disk was used for data: a block and the reserve are less than 128 KiB.
	CHECK(read_file(path).size() + (128 << 10) > static_cast<size_t>(size));
	if (size > 1 << 20)
		CHECK(records_in(c, FT_BLOCK_SPAN) > 30'000);
}

TEST_CASE("a full disk without preallocation leaves every complete block")
{
	SmallDisk disk(300 << 10);
	if (!disk.mounted())
		return;
	const std::string path = disk.file("r");
	const int status = in_child([&] {
		ft_writer *w = nullptr;
		if (!forbid_fallocate())
			return 77;
		if (ft_writer_open(&w, path.c_str(), "{}"))
			return 1;
		write_until_error(w);
		return ft_writer_close(w, "{}") == -ENOSPC ? 0 : 2;
	});
	if (status == 77) {
		WARN("SKIPPED: this machine allows no seccomp filter");
		return;
	}
	REQUIRE(status == 0);
	const Contents c = read_recording(path);
	REQUIRE(c.rc == 0);
	CHECK(records_in(c, FT_BLOCK_SPAN) > 2'000);
	CHECK(c.damage.bytes_skipped == 0);
	CHECK(c.damage.blocks_missing == 0);
	CHECK_FALSE(c.damage.no_trailer); // the incomplete block's room was released
}

TEST_CASE("a file size limit ends the recording without its signal")
{
	const bool background = GENERATE(false, true);
	TempDir dir;
	rlimit old;
	REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
	const rlimit small = {300'000, old.rlim_max};
	REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
	ft_writer *w = nullptr;
	const int opened = ft_writer_open(&w, dir.file("r").c_str(), "{}");
	uint64_t n = 0;
	int closed = 0;
	if (!opened) {
		if (background)
			CHECK(ft_writer_background(w, 1 << 20) == 0);
		n = write_until_error(w);
		closed = ft_writer_close(w, "{}");
	}
	setrlimit(RLIMIT_FSIZE, &old);
	REQUIRE(opened == 0);
	CHECK(n > 2'000);
	CHECK(closed == -EFBIG);
	const Contents c = read_recording(dir.file("r"));
	REQUIRE(c.rc == 0);
	CHECK(c.damage.bytes_skipped == 0);
	CHECK_FALSE(c.damage.no_trailer);
	CHECK(c.blocks.back().kind == FT_BLOCK_SUMMARY);
}

TEST_CASE("a closed recording takes no more disk than its bytes")
{
	TempDir dir;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{}") == 0);
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	struct stat st;
	REQUIRE(stat(dir.file("r").c_str(), &st) == 0);
	CHECK(st.st_blocks * 512 <= 64 << 10); // a megabyte was preallocated
}

TEST_CASE("a recording that cannot be started reports why")
{
	TempDir dir;
	ft_writer *w = nullptr;
	CHECK(ft_writer_open(&w, dir.file("none/r").c_str(), "{}") == -ENOENT);
	CHECK(w == nullptr);
	CHECK(ft_writer_open(&w, dir.path().c_str(), "{}") == -EISDIR);
	CHECK(w == nullptr);
	CHECK(ft_writer_close(nullptr, nullptr) == 0);
}
