// SPDX-License-Identifier: MIT
// Cgroups and containers, from synthetic files.
#include "tests/support/catch.h"
#include "tests/unit/loader/support.h"

#include "loader/targets.h"

using namespace forktail::test;

namespace
{

const std::string kId = "1f2e3d4c5b6a79881f2e3d4c5b6a79881f2e3d4c5b6a79881f2e3d4c5b6a7988";
const std::string kOther = "99" + kId.substr(2);

std::string container_of(const std::string &path)
{
	char id[CONTAINER_BYTES];
	return cgroup_container(path.c_str(), id) ? id : "";
}

std::string name_of(const Proc &root, const std::string &path)
{
	char name[CGROUP_NAME_BYTES];
	cgroup_name(root.path().c_str(), path.c_str(), name);
	return name;
}

} // namespace

TEST_CASE("a cgroup's path contains its container, for every engine")
{
	CHECK(container_of("/docker/" + kId) == kId);
	CHECK(container_of("/system.slice/docker-" + kId + ".scope") == kId);
	CHECK(container_of("/machine.slice/libpod-" + kId + ".scope") == kId);
	CHECK(container_of("/machine.slice/libpod-" + kId + ".scope/container") == kId);
	CHECK(container_of("/kubepods/burstable/pod0f1e-22/" + kId) == kId);
	CHECK(container_of("/kubepods.slice/kubepods-pod0f1e.slice/cri-containerd-" + kId + ".scope") == kId);
	CHECK(container_of("/docker/" + kId + "/system.slice/redis.service") == kId);
	// The inner one of nested containers.
	CHECK(container_of("/docker/" + kOther + "/docker/" + kId) == kId);
	CHECK(container_of("/lxc.payload.web/init.scope") == "web");
	CHECK(container_of("/lxc/web") == "web");
}

TEST_CASE("other cgroups are no container")
{
	CHECK(container_of("") == "");
	CHECK(container_of("/") == "");
	CHECK(container_of("//") == "");
	CHECK(container_of("/system.slice/redis.service") == "");
	CHECK(container_of("/docker") == "");
	CHECK(container_of("/docker/" + kId.substr(1)) == "");	// one digit short
	CHECK(container_of("/docker/" + kId + "0") == "");	// one digit too many
	CHECK(container_of("/docker/X" + kId.substr(1)) == ""); // not a digit
	CHECK(container_of("/machine.slice/libpod-conmon-" + kId + ".scope") == "");
	CHECK(container_of("/lxc.monitor.web") == "");
	CHECK(container_of("/lxc.payload." + std::string(CONTAINER_BYTES, 'x')) == "");
}

TEST_CASE("a process' cgroup by hierarchy, and the most specific path")
{
	Proc root;
	char path[CGROUP_BYTES];
	const std::string r = root.path();
	root.write("proc/7/cgroup",
		   "11:cpu,cpuacct:/cpus\n6:freezer:/docker/" + kId +
		       "\n5:cpuset:/\n1:name=systemd:/system.slice/docker.service\n0::/v2\n");
	REQUIRE(cgroup_of(r.c_str(), 7, "freezer", path));
	CHECK(path == "/docker/" + kId);
	REQUIRE(cgroup_of(r.c_str(), 7, "cpuacct", path));
	CHECK(path == std::string("/cpus"));
	REQUIRE(cgroup_of(r.c_str(), 7, "", path));
	CHECK(path == std::string("/v2"));
	CHECK_FALSE(cgroup_of(r.c_str(), 7, "mem", path));
	CHECK_FALSE(cgroup_of(r.c_str(), 7, "cpua", path));
	CHECK_FALSE(cgroup_of(r.c_str(), 8, "freezer", path));
	REQUIRE(cgroup_best(r.c_str(), 7, path));
	CHECK(path == "/docker/" + kId);

	root.write("proc/9/cgroup", "2:cpu:/a:b\n1:name=systemd:/system.slice/redis.service\n0::/v2\n");
	REQUIRE(cgroup_of(r.c_str(), 9, "cpu", path)); // a path may contain colons
	CHECK(path == std::string("/a:b"));
	REQUIRE(cgroup_best(r.c_str(), 9, path));
	CHECK(path == std::string("/system.slice/redis.service"));
	root.write("proc/10/cgroup", "2:cpu:/\n0::/\n");
	REQUIRE(cgroup_best(r.c_str(), 10, path));
	CHECK(path == std::string("/"));
	root.write("proc/11/cgroup", "nonsense\n:\n");
	CHECK_FALSE(cgroup_best(r.c_str(), 11, path));
	// Longer than its buffer: cut, not written beyond it.
	root.write("proc/12/cgroup", "0::/" + std::string(4000, 'x') + "\n");
	REQUIRE(cgroup_best(r.c_str(), 12, path));
	CHECK(std::string(path).size() == CGROUP_BYTES - 1);
}

TEST_CASE("a container has the name that its engine stored")
{
	Proc root;
	char text[CONTAINER_BYTES];
	const std::string r = root.path(), docker = "var/lib/docker/containers/";
	CHECK(name_of(root, "/docker/" + kId) == "container 1f2e3d4c5b6a");
	CHECK_FALSE(container_id(r.c_str(), "web", text));
	root.write(docker + kId + "/config.v2.json", R"({"State":{"Running":true},"Name":"/web"})");
	root.write(docker + kOther + "/config.v2.json", "broken {");
	root.write("var/lib/containers/storage/overlay-containers/containers.json",
		   R"([{"id":")" + kOther + R"(","names":["cache","second"]},{"id":3},{"names":"x"}])");
	CHECK(name_of(root, "/docker/" + kId) == "container web (1f2e3d4c5b6a)");
	CHECK(name_of(root, "/machine.slice/libpod-" + kOther + ".scope") ==
	      "container cache (992e3d4c5b6a)");
	CHECK(name_of(root, "/lxc.payload.box") == "container box");
	CHECK(name_of(root, "/system.slice/redis.service") == "unit redis.service");
	CHECK(name_of(root, "/user.slice/session-3.scope/x") == "unit session-3.scope");
	CHECK(name_of(root, "/") == "");
	REQUIRE(container_id(r.c_str(), "web", text));
	CHECK(text == kId);
	REQUIRE(container_id(r.c_str(), "second", text));
	CHECK(text == kOther);
	CHECK_FALSE(container_id(r.c_str(), "we", text));
}
