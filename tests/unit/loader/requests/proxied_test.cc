// SPDX-License-Identifier: MIT
// Requests at a proxy and at the server behind it: joined once each, in order, and nothing is kept back.
#include <vector>

#include "loader/requests.h"
#include "tests/support/catch.h"

namespace
{

constexpr uint64_t kNow = 1'000'000'000, us = 1000, s = 1'000'000'000;
constexpr uint64_t kGet = 42, kSet = 43; // hashes
constexpr uint32_t kClient = 1, kBackend = 2;

class Proxy
{
public:
	Proxy() : proxied_(proxied_open(Take, this)) {}
	~Proxy() { proxied_close(proxied_); }
	Proxy(const Proxy &) = delete;
	Proxy &operator=(const Proxy &) = delete;

	void AtServer(uint64_t from_us, uint64_t to_us, uint64_t hash)
	{
		Add(kBackend, from_us, to_us, hash, false);
	}
	void AtProxy(uint64_t from_us, uint64_t to_us, uint64_t hash)
	{
		Add(kClient, from_us, to_us, hash, true);
	}
	void Closed(uint32_t connection, uint64_t at_us)
	{
		const request_message m = {
		    .kind = MESSAGE_CLOSED, .connection = connection, .closed_ns = at_us * us};
		proxied_add(proxied_, &m, 0, false, kNow + at_us * us);
	}
	void Wait(uint64_t ns) { proxied_tick(proxied_, kNow + ns); }
	size_t Of(uint32_t connection) const
	{
		size_t count = 0;
		for (const request_message &m : passed)
			count += m.kind == MESSAGE_REQUEST && m.connection == connection;
		return count;
	}

	std::vector<request_message> passed;

private:
	static void Take(void *context, const request_message *m)
	{
		static_cast<Proxy *>(context)->passed.push_back(*m);
	}
	void Add(uint32_t connection, uint64_t from_us, uint64_t to_us, uint64_t hash, bool at_proxy)
	{
		request_message m = {};
		m.kind = MESSAGE_REQUEST;
		m.connection = connection;
		m.request.arrival_ns = m.request.read_ns = kNow + from_us * us;
		m.request.end_ns = m.request.written_ns = kNow + to_us * us;
		proxied_add(proxied_, &m, hash, at_proxy, m.request.written_ns);
	}
	proxied *proxied_;
};

} // namespace

TEST_CASE("proxied: a request at a proxy takes the server's part, which is left out")
{
	Proxy p;
	p.AtServer(20, 30, kSet);
	p.AtServer(21, 31, kGet);
	p.AtProxy(10, 40, kGet);
	p.Wait(2 * s);
	CHECK(p.Of(kClient) == 1);
	CHECK(p.Of(kBackend) == 1); // the SET of another client
	REQUIRE(p.passed.size() == 2);
	CHECK(p.passed[0].request.behind == kBackend);
}

TEST_CASE("proxied: what ended before the proxy read it, or after it answered, is no part")
{
	Proxy p;
	p.AtServer(1, 5, kGet);
	p.AtServer(35, 50, kGet);
	p.AtProxy(10, 40, kGet);
	p.Wait(2 * s);
	CHECK(p.Of(kClient) == 1);
	CHECK(p.Of(kBackend) == 2);
	CHECK(p.passed[0].request.behind == 0);
}

TEST_CASE("proxied: many requests for the same key are joined in order, one each")
{
	Proxy p;
	constexpr uint64_t n = 60'000;
	for (uint64_t i = 0; i < n; i++)
		p.AtServer(10 * i + 2, 10 * i + 5, kGet);
	for (uint64_t i = 0; i < n; i++)
		p.AtProxy(10 * i + 1, 10 * i + 8, kGet);
	p.Wait(10 * s);
	CHECK(p.Of(kClient) == n);
	CHECK(p.Of(kBackend) == 0);
	CHECK(std::all_of(p.passed.begin(), p.passed.end(),
			  [](const request_message &m) { return m.request.behind == kBackend; }));
}

TEST_CASE("proxied: without a hash nothing is joined")
{
	Proxy p;
	p.AtServer(20, 30, 0);
	p.AtProxy(10, 40, 0);
	p.Wait(2 * s);
	CHECK(p.Of(kClient) == 1);
	CHECK(p.Of(kBackend) == 1);
}

TEST_CASE("proxied: a connection is closed after its requests")
{
	Proxy p;
	p.AtServer(20, 30, kGet);
	p.AtProxy(10, 40, kSet);
	p.Closed(kClient, 41);
	p.Closed(kBackend, 42);
	p.Wait(2 * s);
	REQUIRE(p.passed.size() == 4);
	CHECK(p.passed[2].kind == MESSAGE_CLOSED);
	CHECK(p.passed[3].kind == MESSAGE_CLOSED);
}

TEST_CASE("proxied: more requests than fit are passed on early, none is lost")
{
	Proxy p;
	constexpr uint64_t n = 200'000;
	for (uint64_t i = 0; i < n; i++)
		p.AtServer(i, i + 1, kGet + i);
	p.Wait(10 * s);
	CHECK(p.Of(kBackend) == n);
}
