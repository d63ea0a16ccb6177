// SPDX-License-Identifier: MIT
// The unit, the manifest and the container's command as they are in contrib/: a recorder with exactly their
// directories' modes and capabilities records, and gives the ring to its user.
#include <fstream>
#include <pwd.h>
#include <set>
#include <sstream>

#include "tests/support/recorded.h"
#include "tests/system/live/service.h"

using namespace forktail::test;

namespace
{

const std::string kSource = FORKTAIL_SOURCE_DIR;
const std::string kUnit = kSource + "/contrib/systemd/forktail-record.service";
const std::string kManifest = kSource + "/contrib/kubernetes/daemonset.yaml";
const std::string kContainer = kSource + "/contrib/container/Containerfile";
const std::string kGuide = kSource + "/docs/guides/always-on.md";

// What follows `before` in each line of a file that contains it.
std::vector<std::string> after(const std::string &path, const std::string &before)
{
	std::vector<std::string> found;
	std::ifstream file(path);
	for (std::string line; std::getline(file, line);)
		for (size_t at = 0; (at = line.find(before, at)) != std::string::npos;)
			found.push_back(line.substr(at += before.size()));
	REQUIRE(!found.empty());
	return found;
}

// The capabilities listed there up to the end of each list, without CAP_.
std::set<std::string> capabilities(const std::string &path, const std::string &before, const char *ends)
{
	std::set<std::string> names;
	for (const std::string &list : after(path, before)) {
		std::istringstream words(list.substr(0, list.find_first_of(ends)));
		for (std::string word; words >> word;)
			for (std::istringstream parts(word); std::getline(parts, word, ',');)
				names.insert(word.compare(0, 4, "CAP_") == 0 ? word.substr(4) : word);
	}
	return names;
}

std::set<std::string> unit()
{
	return capabilities(kUnit, "CapabilityBoundingSet=", "\n");
}
std::set<std::string> manifest()
{
	return capabilities(kManifest, "add: [", "]");
}
std::set<std::string> container()
{
	return capabilities(kContainer, "--cap-add=", " ");
}

// A command that runs another one with exactly these capabilities, which it cannot extend.
std::vector<std::string> with(const std::set<std::string> &names)
{
	std::string set = "-all";
	for (std::string name : names) {
		for (char &c : name)
			c = static_cast<char>(tolower(c));
		set += ",+" + name;
	}
	return {"setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=" + set};
}

// As the service manager makes it, from the unit: "0711".
void make_directory(const std::string &path, const std::string &mode)
{
	REQUIRE(mkdir(path.c_str(), 0700) == 0);
	REQUIRE(chmod(path.c_str(), static_cast<mode_t>(std::stoul(mode, nullptr, 8))) == 0);
}

size_t segments(const std::string &ring)
{
	size_t count = 0;
	for (const auto &entry : std::filesystem::directory_iterator(ring))
		count += entry.path().filename().string().compare(0, 8, "segment-") == 0;
	return count;
}

// It records into a ring of its user below the directory, takes a snapshot, and does so again after a
// restart.
void check_service(const std::string &directory, const std::set<std::string> &capabilities)
{
	Service s(with(capabilities), directory + "/ring");
	for (size_t times = 1, before = 0; times <= 2; times++) {
		const bool ready = s.ready();
		INFO(s.recorder->err());
		REQUIRE(ready);
		CHECK(s.recorder->err().find("cannot") == std::string::npos);
		CHECK(segments(s.ring) > before); // not ready because of what the previous recorder wrote
		Result asked;
		CHECK(eventually([&] { return (asked = s.trigger("deploy")).status == 0; }, Seconds(10)));
		CHECK(eventually([&] { return s.snapshots() == times; }, Seconds(120)));
		struct stat ring = {};
		REQUIRE(stat(s.ring.c_str(), &ring) == 0);
		CHECK(ring.st_uid == getpwnam("nobody")->pw_uid);
		CHECK((ring.st_mode & 07777) == 0700);
		s.recorder->signal(SIGTERM);
		CHECK(s.recorder->wait(Seconds(20)) == 0);
		s.manager->heard("");
		before = segments(s.ring);
		if (times == 1)
			s.Start(with(capabilities));
	}
}

} // namespace

TEST_CASE("a service with the unit's capabilities records below the unit's directories")
{
	TempDir dir;
	chmod(dir.path().c_str(), 0711);
	const char *mode = GENERATE("StateDirectoryMode=", "RuntimeDirectoryMode=");
	INFO(mode);
	make_directory(dir.file("of_unit"), after(kUnit, mode)[0]);
	check_service(dir.file("of_unit"), unit());
}

TEST_CASE("a recorder with the manifest's capabilities records below a directory as the kubelet makes it")
{
	TempDir dir;
	chmod(dir.path().c_str(), 0711);
	make_directory(dir.file("of_host"), "0755"); // DirectoryOrCreate
	check_service(dir.file("of_host"), manifest());
}

TEST_CASE("a recorder with the container's capabilities writes into the directory of the user who started it")
{
	TempDir dir;
	chmod(dir.path().c_str(), 0711);
	make_directory(dir.file("of_user"), "0755");
	REQUIRE(chown(dir.file("of_user").c_str(), 65534, 65534) == 0);
	Redis redis;
	std::vector<std::string> argv = with(container());
	const std::string out = dir.file("of_user/server.forktail");
	argv.insert(argv.end(),
		    {program("forktail"), "record", "--unix", redis.socket(), "--duration", "1s", "-o", out});
	const Result r = run(argv);
	INFO(r.err);
	CHECK(r.status == 0);
	CHECK(!read_recording(out).damage.no_trailer);
	check_service(dir.file("of_user"), container());
}

TEST_CASE("the unit, the manifest and the container have the same capabilities, and the guide explains each")
{
	CHECK(unit() == manifest());
	CHECK(unit() == container());
	std::set<std::string> explained = capabilities(kGuide, "| CAP_", "|");
	for (const std::string &name : unit()) {
		INFO(name);
		CHECK(explained.count(name) == 1);
	}
}
