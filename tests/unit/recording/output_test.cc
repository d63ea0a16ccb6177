// SPDX-License-Identifier: MIT
// A recording's output file: what may be overwritten, its owner, and who may read it.
#include "tests/support/catch.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "recording/recording.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;

namespace
{

// The result of opening it; it is closed again at once.
int try_open(const std::string &path)
{
	ft_writer *w = nullptr;
	const int rc = ft_writer_open(&w, path.c_str(), "{}");
	if (rc == 0)
		CHECK(ft_writer_close(w, nullptr) == 0);
	return rc;
}

std::string content(const std::string &path)
{
	std::ifstream in(path, std::ios::binary);
	std::ostringstream all;
	all << in.rdbuf();
	return all.str();
}

struct stat stat_of(const std::string &path)
{
	struct stat st = {};
	REQUIRE(lstat(path.c_str(), &st) == 0);
	return st;
}

struct SudoBy {
	SudoBy(const char *uid, const char *gid)
	{
		setenv("SUDO_UID", uid, 1);
		setenv("SUDO_GID", gid, 1);
	}
	~SudoBy()
	{
		unsetenv("SUDO_UID");
		unsetenv("SUDO_GID");
	}
};

} // namespace

TEST_CASE("a recording is readable only by its owner, also if it replaces an older one")
{
	TempDir dir;
	const std::string path = dir.file("r");
	const mode_t before = umask(0);
	REQUIRE(try_open(path) == 0);
	CHECK((stat_of(path).st_mode & 07777) == 0600);
	REQUIRE(chmod(path.c_str(), 0644) == 0);
	REQUIRE(try_open(path) == 0);
	CHECK((stat_of(path).st_mode & 07777) == 0600);
	umask(before);
}

TEST_CASE("a symbolic link is not followed, whatever it leads to")
{
	TempDir dir;
	const std::string victim = dir.file("victim"), link = dir.file("link");
	std::ofstream(victim) << "precious";
	REQUIRE(symlink(victim.c_str(), link.c_str()) == 0);
	CHECK(try_open(link) == -ELOOP);
	CHECK(content(victim) == "precious");
	REQUIRE(symlink(dir.file("none").c_str(), dir.file("dangling").c_str()) == 0);
	CHECK(try_open(dir.file("dangling")) == -ELOOP);
	CHECK(access(dir.file("none").c_str(), F_OK) != 0);
	REQUIRE(try_open(dir.file("recording")) == 0);
	REQUIRE(symlink(dir.file("recording").c_str(), dir.file("to_it").c_str()) == 0);
	CHECK(try_open(dir.file("to_it")) == -ELOOP);
}

TEST_CASE("a file with several names is not written: another user may have given it one")
{
	TempDir dir;
	REQUIRE(try_open(dir.file("recording")) == 0);
	REQUIRE(link(dir.file("recording").c_str(), dir.file("second").c_str()) == 0);
	CHECK(try_open(dir.file("second")) == -EMLINK);
	REQUIRE(unlink(dir.file("second").c_str()) == 0);
	CHECK(try_open(dir.file("recording")) == 0);
}

TEST_CASE("a file that is not regular is refused without waiting for it")
{
	TempDir dir;
	REQUIRE(mkfifo(dir.file("fifo").c_str(), 0600) == 0);
	CHECK(try_open(dir.file("fifo")) == -ENOTSUP);
	CHECK(try_open("/dev/full") == -ENOTSUP);
	CHECK(try_open("/dev/null") == -ENOTSUP);
}

TEST_CASE("only an empty file or a recording is overwritten")
{
	TempDir dir;
	const std::string path = dir.file("file");
	const std::vector<std::string> others = {"notes of mine", "FT", std::string(5, '\0')};
	for (const std::string &text : others) {
		std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
		CHECK(try_open(path) == -EEXIST);
		CHECK(content(path) == text);
	}
	std::ofstream(path, std::ios::trunc).close();
	CHECK(try_open(path) == 0);
	CHECK(content(path).substr(0, 4) == "FTBK");
	CHECK(try_open(path) == 0);
}

TEST_CASE("of two recorders with one output file the second is refused")
{
	TempDir dir;
	ft_writer *w = nullptr;
	REQUIRE(ft_writer_open(&w, dir.file("r").c_str(), "{\"first\":1}") == 0);
	const std::string before = content(dir.file("r"));
	CHECK(try_open(dir.file("r")) == -EWOULDBLOCK);
	CHECK(content(dir.file("r")) == before);
	REQUIRE(ft_writer_close(w, nullptr) == 0);
	CHECK(try_open(dir.file("r")) == 0);
}

TEST_CASE("a recording made with sudo belongs to the calling user")
{
	if (geteuid() != 0)
		return;
	TempDir dir;
	{
		SudoBy nobody("65534", "65533");
		REQUIRE(try_open(dir.file("r")) == 0);
		CHECK(stat_of(dir.file("r")).st_uid == 65534);
		CHECK(stat_of(dir.file("r")).st_gid == 65533);
		CHECK(try_open(dir.file("r")) == 0);
	}
	// Another user's file may already be open for reading, so it does not become root's recording.
	CHECK(try_open(dir.file("r")) == -EACCES);
	for (const char *uid : {"", "-1", "0x10", "12 ", "99999999999999999999", "4294967295"}) {
		SudoBy garbled(uid, "1");
		const std::string path = dir.file("garbled");
		CHECK(try_open(path) == 0);
		CHECK(stat_of(path).st_uid == 0);
	}
}
