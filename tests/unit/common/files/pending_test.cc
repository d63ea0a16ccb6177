// SPDX-License-Identifier: MIT
// Output under a temporary name: what others left at guessable names is neither followed nor deleted.
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

#include "common/files.h"
#include "tests/support/catch.h"
#include "tests/support/tempdir.h"

using namespace forktail::test;
using forktail::common::Pending;
namespace fs = std::filesystem;

namespace
{

mode_t ModeOf(const std::string &path)
{
	struct stat st = {};
	REQUIRE(stat(path.c_str(), &st) == 0);
	return st.st_mode & 0777;
}

void Write(const std::string &path, const std::string &text)
{
	std::ofstream(path) << text;
}

std::string Text(const std::string &path)
{
	std::ifstream in(path);
	return {std::istreambuf_iterator<char>(in), {}};
}

size_t Entries(const std::string &path)
{
	return static_cast<size_t>(std::distance(fs::directory_iterator(path), {}));
}

} // namespace

TEST_CASE("a link or a directory at a name that others can guess is left alone")
{
	TempDir dir;
	std::string error;
	const std::string out = dir.file("out"), other = dir.file("other"), all = dir.file("all");
	Write(other, "another's");
	fs::create_symlink(other, out + ".part");
	fs::create_directory(all + ".part");
	Write(all + ".part/precious", "precious");
	{
		Pending file, directory;
		REQUIRE(file.Begin(out, Pending::kFile, &error));
		REQUIRE(directory.Begin(all, Pending::kDirectory, &error));
		CHECK(file.at() != out);
		CHECK(!fs::exists(out));
		Write(file.at(), "text");
		Write(directory.at() + "/one", "1");
		REQUIRE(file.Commit(&error));
		REQUIRE(directory.Commit(&error));
	}
	CHECK(Text(out) == "text");
	CHECK(Text(all + "/one") == "1");
	CHECK(Text(other) == "another's");
	CHECK(Text(all + ".part/precious") == "precious");
	CHECK(Entries(dir.path()) == 5);
}

TEST_CASE("incomplete output is for its owner only, complete output as its mode says")
{
	TempDir dir;
	std::string error;
	const mode_t before = umask(022);
	for (const auto &[mode, file_mode, directory_mode] :
	     {std::tuple<mode_t, mode_t, mode_t>{0666, 0644, 0755}, {0600, 0600, 0700}, {0640, 0640, 0750}}) {
		const std::string name = std::to_string(mode);
		Pending file, directory;
		REQUIRE(file.Begin(dir.file("f" + name), Pending::kFile, &error));
		REQUIRE(directory.Begin(dir.file("d" + name), Pending::kDirectory, &error));
		CHECK(ModeOf(file.at()) == 0600);
		CHECK(ModeOf(directory.at()) == 0700);
		Write(directory.at() + "/one", "1");
		REQUIRE(file.Commit(&error, mode));
		REQUIRE(directory.Commit(&error, mode));
		CHECK(ModeOf(dir.file("f" + name)) == file_mode);
		CHECK(ModeOf(dir.file("d" + name)) == directory_mode);
		CHECK(ModeOf(dir.file("d" + name) + "/one") == file_mode);
	}
	umask(before);
}

TEST_CASE("what is not committed leaves the former output and nothing else")
{
	TempDir dir;
	std::string error;
	Write(dir.file("out"), "former");
	{
		Pending file, directory;
		REQUIRE(file.Begin(dir.file("out"), Pending::kFile, &error));
		REQUIRE(directory.Begin(dir.file("all"), Pending::kDirectory, &error));
		Write(directory.at() + "/one", "1");
	}
	CHECK(Text(dir.file("out")) == "former");
	CHECK(Entries(dir.path()) == 1);
	Pending impossible;
	CHECK_FALSE(impossible.Begin(dir.file("none/out"), Pending::kFile, &error));
	CHECK(error.find("cannot write " + dir.file("none/out") + ": ") == 0);
}
