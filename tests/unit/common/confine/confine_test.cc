// SPDX-License-Identifier: MIT
// What a confined process can no longer do. Each check runs in a child, because limits are for good.
#include "tests/support/catch.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <linux/landlock.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "common/confine.h"
#include "tests/support/tempdir.h"

using namespace forktail::common;
using namespace forktail::test;

namespace
{

// The exit status of a child that runs `what` with these limits; 100: it could not be limited.
int Confined(const Allowed &allowed, const std::function<int()> &what)
{
	const pid_t child = fork();
	if (child == 0) {
		std::string error;
		_exit(Confine(allowed, &error) ? what() : 100);
	}
	int status = 0;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}

// 0 or an errno.
int Write(const std::string &path)
{
	const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 ? errno : 0;
}

bool HasLandlock()
{
	return syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 2;
}

} // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // their builds have no filters
TEST_CASE("a confined process starts no program, opens no socket, and makes no code")
{
	CHECK(Confined({}, [] {
		      char *const words[] = {const_cast<char *>("/bin/true"), nullptr};
		      execv(words[0], words);
		      return errno;
	      }) == ENOSYS);
	CHECK(Confined({}, [] { return fork() < 0 ? errno : 0; }) == ENOSYS);
	CHECK(Confined({}, [] { return socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? errno : 0; }) == ENOSYS);
	CHECK(Confined({.sockets = true}, [] { return socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? errno : 0; }) ==
	      0);
	CHECK(Confined({.sockets = true}, [] { return socket(AF_NETLINK, SOCK_RAW, 0) < 0 ? errno : 0; }) ==
	      ENOSYS);
	CHECK(Confined({}, [] {
		      void *code =
			  mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		      return code == MAP_FAILED ? errno : 0;
	      }) == ENOSYS);
}

TEST_CASE("a confined process may have threads, and children only if it is allowed to")
{
	CHECK(Confined({}, [] {
		      int done = 0;
		      std::thread([&] { done = 7; }).join();
		      return done;
	      }) == 7);
	CHECK(Confined({.children = true}, [] {
		      const pid_t child = fork();
		      if (child == 0)
			      _exit(5);
		      int status = 0;
		      return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 1;
	      }) == 5);
	CHECK(Confined({.children = true}, [] { return unshare(CLONE_NEWUSER) ? errno : 0; }) == ENOSYS);
}

#endif

TEST_CASE("a confined process writes where it may, and reads everywhere")
{
	TempDir dir;
	const std::string ours = dir.file("ours"), other = dir.file("other");
	std::filesystem::create_directory(ours);
	std::filesystem::create_directory(other);
	std::ofstream(other + "/there") << "text";
	const Allowed allowed = {.writable = {ours, dir.file("none"), ""}};
	CHECK(Confined(allowed, [&] { return Write(ours + "/new"); }) == 0);
	CHECK(Confined(allowed, [&] { return Write("/dev/null"); }) == 0);
	CHECK(Confined(allowed, [&] {
		      std::string text;
		      std::ifstream(other + "/there") >> text;
		      return text == "text";
	      }) == 1);
	CHECK(Confined(allowed, [&] {
		      return rename((ours + "/new").c_str(), (ours + "/renamed").c_str()) ? errno : 0;
	      }) == 0);
	if (!HasLandlock())
		return;
	CHECK(Confined(allowed, [&] { return Write(other + "/new"); }) == EACCES);
	CHECK(Confined(allowed, [&] { return unlink((other + "/there").c_str()) ? errno : 0; }) == EACCES);
	CHECK(Confined({.removable = {other}}, [&] { return Write(other + "/new"); }) == EACCES);
	CHECK(Confined({.removable = {other}},
		       [&] { return unlink((other + "/there").c_str()) ? errno : 0; }) == 0);
}

TEST_CASE("the place of an output is its directory, behind links")
{
	TempDir dir;
	const std::string real = std::filesystem::canonical(dir.path());
	std::filesystem::create_directory(dir.file("real"));
	REQUIRE(symlink("real/out.json", dir.file("link").c_str()) == 0);
	std::ofstream(dir.file("real") + "/out.json") << "{}";
	CHECK(PlaceOfOutput(dir.file("new.json")) == real);
	CHECK(PlaceOfOutput(dir.file("link")) == real + "/real");
	CHECK(PlaceOfOutput("new-relative-name.json") == std::filesystem::canonical("."));
	CHECK(PlaceOfOutput("/dev/null") == "/dev/null");
	CHECK(PlaceOfOutput("") == "");
	int ends[2];
	REQUIRE(pipe(ends) == 0);
	CHECK(PlaceOfOutput("/proc/self/fd/" + std::to_string(ends[1])) == "");
	close(ends[0]);
	close(ends[1]);
}
