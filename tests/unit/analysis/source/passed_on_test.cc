// SPDX-License-Identifier: MIT
// Kernel logs of a proxy and of the servers behind it, from three hosts: each request is counted once, at the
// proxy, with the server that it was passed on to.
#include "analysis/source.h"

#include "tests/support/tempdir.h"
#include "tests/unit/analysis/kernel_log.h"
#include "tests/unit/analysis/loaded_run.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

// A proxy's connections to servers come from 10.0.0.1, ports 41001 and 41002.
std::string Manifest(const std::string &host, const std::string &comm, const std::string &port,
		     const std::string &more = "", bool proxy = false)
{
	return R"({"program":"forktail-record","version":"1.0.0","host":")" + host +
	       R"(","kernel":"6.18","boot_id":"b1","min_span_ns":20000,"cpus":2,"start_ns":5000000000,)"
	       R"("targets":[{"pid":100,"comm":")" +
	       comm + R"(","cmdline":"","listens":["tcp:)" + port + R"("])" + more +
	       R"(}],"requests":{"source":"kernel","sample":1},"ops":["unknown","GET","SET","other"],)"
	       R"("servers":["127.0.0.1:)" +
	       port + R"("],"server_info":[{"pid":100,"proxy":)" + (proxy ? "true" : "false") + "}]}";
}

std::string ProxyManifest(const std::string &ends = R"("10.0.0.1:41001","10.0.0.1:41002")", bool proxy = true)
{
	return Manifest("p", "nutcracker", "22121",
			R"(,"peers":["10.0.0.2:6379","10.0.0.3:6379"],"local_ends":[)" + ends + "]", proxy);
}

// The host of the server behind request i; "": unknown.
std::string HostBehind(const Run &run, size_t i)
{
	const uint32_t behind = run.requests.Behind(i);
	return behind ? run.behind[behind - 1].host : "";
}

// The request that arrived then.
size_t At(const Run &run, uint64_t arrived_us)
{
	for (size_t i = 0; i < run.requests.size(); i++)
		if (run.requests.sent_ns[i] == kLogStart + arrived_us * 1000)
			return i;
	return SIZE_MAX;
}

void Write(const TempDir &dir, const std::string &proxy_manifest)
{
	KernelLog proxy(dir.file("p.forktail"), proxy_manifest);
	proxy.Tcp(1, 9);
	proxy.Request(1, 1'000, 1'010, 51'000); // to server a, which was late
	proxy.Request(1, 2'000, 2'010, 2'100);	// to server b
	proxy.Request(1, 3'000, 3'010, 3'100, 2);
	proxy.Request(1, 4'000, 4'010, 4'100); // its part was not seen
	proxy.Request(1, 60'000, 60'010, 60'100);
	proxy.Close();
	KernelLog a(dir.file("a.forktail"), Manifest("a", "redis-server", "6379"));
	a.Tcp(1'001, 1);
	a.Tcp(7, 7);
	a.Request(1'001, 1'040, 1'050, 50'900);
	a.Request(7, 2'020, 2'030, 2'090); // a client without the proxy
	a.Request(1'001, 3'050, 3'060, 3'070, 2);
	a.Request(1'001, 4'050, 4'060, 4'200); // ends after the proxy's request
	a.Close();
	KernelLog b(dir.file("b.forktail"), Manifest("b", "redis-server", "6379"));
	b.Tcp(1'002, 1);
	b.Request(1'002, 2'030, 2'040, 2'080);
	b.Request(1'002, 3'030, 3'040, 3'080, 1); // another command than the proxy's
	b.Request(1'002, 60'020, 60'030, 60'080);
	b.Close();
}

} // namespace

TEST_CASE("requests at a proxy get the server on another host, whose log's parts are not counted")
{
	TempDir dir;
	Write(dir, ProxyManifest());
	const Run run = LoadedRun(dir.path());
	REQUIRE(run.behind.size() == 2);
	REQUIRE(run.requests.size() == 6);
	CHECK(HostBehind(run, At(run, 1'000)) == "a");
	CHECK(HostBehind(run, At(run, 2'000)) == "b");
	CHECK(HostBehind(run, At(run, 3'000)) == "a");
	CHECK(HostBehind(run, At(run, 4'000)) == "");
	CHECK(HostBehind(run, At(run, 60'000)) == "b");
	CHECK(HostBehind(run, At(run, 2'020)) == ""); // the direct one
}

TEST_CASE("connections that are not known to be a proxy's have requests of their own")
{
	TempDir dir;
	Write(dir, ProxyManifest(R"("10.0.0.1:41002")"));
	const Run run = LoadedRun(dir.path());
	CHECK(run.behind.size() == 1);
	CHECK(run.requests.size() == 9);
	CHECK(HostBehind(run, At(run, 1'000)) == "");
	CHECK(HostBehind(run, At(run, 2'000)) == "b");
}

// An application, or a replica, that has requests and is a client of servers too.
TEST_CASE("requests of a client that is no proxy count at servers on other hosts")
{
	TempDir dir;
	Write(dir, ProxyManifest(R"("10.0.0.1:41001","10.0.0.1:41002")", false));
	const Run run = LoadedRun(dir.path());
	CHECK(run.behind.empty());
	CHECK(run.requests.size() == 12);
}
