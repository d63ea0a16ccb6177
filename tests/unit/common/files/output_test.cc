// SPDX-License-Identifier: MIT
// Outputs through links, and inputs that are no files. Links of other users need root to make.
#include "common/text.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;

namespace
{

constexpr uid_t kNobody = 65534;

// Whether it was written; -error otherwise.
int wrote(const std::string &path)
{
	FILE *f = output_fopen(path.c_str());
	if (!f)
		return -errno;
	fputs("new", f);
	return fclose(f) == 0 ? 1 : 0;
}

} // namespace

TEST_CASE("an output is written through links of the caller, not of other users")
{
	TempDir dir;
	const std::string file = dir.file("file"), link = dir.file("link"), dangling = dir.file("dangling");
	write_file(file, "before, which is longer");
	REQUIRE(symlink(file.c_str(), link.c_str()) == 0);
	REQUIRE(symlink(dir.file("absent").c_str(), dangling.c_str()) == 0);
	CHECK(wrote(link) == 1);
	CHECK(read_file(file) == "new");
	CHECK(wrote(dangling) == 1);
	CHECK(wrote("/dev/null") == 1);
	CHECK(output_check("/dev/stdout") == 0);
	CHECK(wrote(dir.file("fresh")) == 1);
	CHECK(wrote(dir.file("no/such/directory")) == -ENOENT);
	if (geteuid() != 0)
		return;

	write_file(file, "precious");
	REQUIRE(unlink(dir.file("absent").c_str()) == 0);
	for (const std::string &one : {link, dangling}) {
		REQUIRE(lchown(one.c_str(), kNobody, kNobody) == 0);
		CHECK(wrote(one) == -ELOOP);
		std::string error;
		CHECK_FALSE(forktail::common::Pending().Begin(one, forktail::common::Pending::kFile, &error));
		CHECK(error == "cannot write " + one + ": " + output_why(ELOOP));
	}
	CHECK(read_file(file) == "precious");
	CHECK(access(dir.file("absent").c_str(), F_OK) != 0);
	const std::string shared = "/dev/shm/forktail-output-test-" + std::to_string(getpid());
	REQUIRE(symlink(file.c_str(), shared.c_str()) == 0);
	REQUIRE(lchown(shared.c_str(), kNobody, kNobody) == 0);
	CHECK(output_check(shared.c_str()) == -ELOOP);
	CHECK(wrote(shared) < 0); // by the kernel, where it protects links in such directories
	unlink(shared.c_str());
	CHECK(read_file(file) == "precious");
	// A link of root, in a directory whose owner could have put it there by a rename.
	REQUIRE(lchown(link.c_str(), 0, 0) == 0);
	REQUIRE(chown(dir.path().c_str(), kNobody, kNobody) == 0);
	CHECK(wrote(link) == -ELOOP);
	CHECK(read_file(file) == "precious");
}

TEST_CASE("a file with other names is not written in another user's directory")
{
	if (geteuid() != 0)
		return;
	TempDir mine, theirs;
	write_file(mine.file("victim"), "precious");
	REQUIRE(::link(mine.file("victim").c_str(), theirs.file("report").c_str()) == 0);
	REQUIRE(chown(theirs.path().c_str(), kNobody, kNobody) == 0);
	CHECK(wrote(theirs.file("report")) == -EMLINK);
	CHECK(read_file(mine.file("victim")) == "precious");
	REQUIRE(chown(theirs.path().c_str(), 0, 0) == 0);
	CHECK(wrote(theirs.file("report")) == 1);
}

TEST_CASE("only regular files of a bounded size are read, without waiting")
{
	TempDir dir;
	std::string text;
	write_file(dir.file("file"), std::string(100'000, 'x'));
	CHECK(forktail::common::ReadRegular(dir.file("file"), 100'000, &text));
	CHECK(text == std::string(100'000, 'x'));
	CHECK_FALSE(forktail::common::ReadRegular(dir.file("file"), 99'999, &text));
	CHECK(errno == EFBIG);
	REQUIRE(mkfifo(dir.file("fifo").c_str(), 0600) == 0);
	for (const std::string &path : {dir.file("fifo"), std::string("/dev/zero")}) {
		CHECK_FALSE(forktail::common::ReadRegular(path, 100, &text));
		CHECK(errno == EINVAL);
	}
	CHECK_FALSE(forktail::common::ReadRegular(dir.file("absent"), 100, &text));
	CHECK(errno == ENOENT);
}
