// SPDX-License-Identifier: MIT
// The slowest clients in `forktail watch`: ranking, limits, and how they look at any size.
#include "live/watch.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/text.h"

using namespace forktail::live::watch;
using forktail::live::Client;
using forktail::live::kMostClients;
using forktail::test::contains;

namespace
{

constexpr uint64_t kMilli = 1'000'000;

OfClient Named(const std::string &name, uint64_t count, uint64_t sum_ns, uint64_t max_ns)
{
	OfClient c;
	c.client.kind = name == "other" ? Client::Kind::Other : Client::Kind::Process;
	if (name != "other")
		name.copy(reinterpret_cast<char *>(c.client.bytes), sizeof c.client.bytes);
	c.count = count;
	c.sum_ns = sum_ns;
	c.max_ns = max_ns;
	return c;
}

Frame WithClients()
{
	Frame f;
	f.server = "redis-server:6379";
	f.servers = 1;
	f.has_second = true;
	f.show_clients = true;
	f.health.request_sample = 16;
	f.second.requests = {20'128, 21'000, 145'000, 1'330'000, {}};
	f.clients =
	    SlowestClients({Named("php-fpm", 6000, 300 * kMilli, 2 * kMilli),
			    Named("cron", 30, 100 * kMilli, 40 * kMilli), Named("other", 600, 0, kMilli)},
			   60, 100);
	return f;
}

std::string Screen(const std::vector<Line> &lines)
{
	std::string text;
	for (const Line &line : lines)
		text += TextOf(line) + "\n";
	return text;
}

} // namespace

TEST_CASE("clients: requests of a client are added, and scaled by the sample")
{
	std::vector<OfClient> all;
	AddClients({Named("b", 2, 20, 15), Named("a", 1, 5, 5)}, 16, &all);
	AddClients({Named("b", 1, 30, 30)}, 1, &all);
	REQUIRE(all.size() == 2);
	CHECK(all[0].client.Name() == "a");
	CHECK(all[0].count == 16);
	CHECK(all[1].count == 33);
	CHECK(all[1].sum_ns == 350);
	CHECK(all[1].max_ns == 30);
}

TEST_CASE("clients: a thousand remain, those with the longest requests, and no request is lost")
{
	std::vector<OfClient> all;
	uint64_t requests = 0;
	for (int second = 0; second < 5; second++) {
		std::vector<OfClient> more = {Named("other", 1, 1, 1)};
		for (uint64_t i = 0; i < kMostClients; i++)
			more.push_back(Named(std::to_string(second) + "." + std::to_string(i), 1, i, i));
		requests += more.size();
		AddClients(more, 1, &all);
	}
	CHECK(all.size() == kMostClients + 1);
	uint64_t kept = 0;
	for (const OfClient &c : all)
		kept += c.count;
	CHECK(kept == requests);
	const std::vector<ClientFigures> slowest = SlowestClients(all, 5, 3);
	REQUIRE(slowest.size() == 4);
	CHECK(slowest[0].max_ns == kMostClients - 1);
	CHECK(slowest[3].name == "other");
	CHECK(slowest[3].count == requests - 3);
}

TEST_CASE("clients: the slowest first, with rate, mean, longest and share of the service time")
{
	const Frame f = WithClients();
	REQUIRE(f.clients.size() == 3);
	CHECK(f.clients[0].name == "cron");
	CHECK(f.clients[0].per_second == Approx(0.5));
	CHECK(f.clients[0].share == Approx(0.25));
	CHECK(f.clients[1].mean_ns == 50'000);
	CHECK(f.clients[2].name == "other");
	CHECK(SlowestClients({}, 60, 10).empty());
}

TEST_CASE("watch: the list of clients fits at any size, and requests are in the header")
{
	Frame f = WithClients();
	for (auto [columns, rows] :
	     {std::pair<size_t, size_t>{80, 24}, {60, 15}, {200, 50}, {40, 10}, {81, 20}}) {
		const std::vector<Line> lines = LayOut(f, columns, rows, {});
		const std::string text = Screen(lines);
		INFO(columns << "x" << rows << "\n" << text);
		CHECK(lines.size() == rows);
		for (const Line &line : lines)
			CHECK(WidthOf(line) <= columns);
		CHECK(contains(text, "requests 20,128/s  p99 145 us"));
		CHECK(text.find("cron") < text.find("php-fpm"));
		CHECK(contains(text, "40.0 ms"));
		CHECK(contains(text, "q quit"));
	}
	std::string text = Screen(LayOut(f, 80, 24, {}));
	INFO(text);
	CHECK(contains(text, "slowest clients of the minute"));
	CHECK(contains(text, "0.5   3.33 ms   40.0 ms     25 %"));
	f.clients[0].share = 1e-6;
	CHECK(contains(Screen(LayOut(f, 80, 24, {})), "40.0 ms < 0.01 %"));
	CHECK(contains(text, "(1/16 of connections)"));
	CHECK(contains(text, "c clients"));

	f.show_clients = false;
	text = Screen(LayOut(f, 80, 24, {}));
	CHECK(contains(text, "requests 20,128/s"));
	CHECK_FALSE(contains(text, "cron"));
	CHECK(contains(Screen(LayOutOnce(f, 80, {})), "cron"));

	f.show_clients = true;
	f.health.request_sample = 0;
	text = Screen(LayOut(f, 80, 24, {}));
	CHECK(contains(text, "Start forktail record with --requests"));
	CHECK_FALSE(contains(text, "requests 20,128/s"));
}

TEST_CASE("watch: JSON has requests and clients, and null where none are recorded")
{
	Frame f = WithClients();
	auto server = forktail::test::parse_json(OnceJson({f}))["servers"][0];
	CHECK(server["requests"]["count"] == 20'128);
	CHECK(server["requests"]["p99_ns"] == 145'000);
	CHECK(server["requests"]["sample"] == 16);
	REQUIRE(server["clients"].size() == 3);
	CHECK(server["clients"][0]["client"] == "cron");
	CHECK(server["clients"][0]["max_ns"] == 40 * kMilli);
	CHECK(server["clients"][1]["count"] == 6000);
	f.health.request_sample = 0;
	f.clients.clear();
	server = forktail::test::parse_json(OnceJson({f}))["servers"][0];
	CHECK(server["requests"].is_null());
	CHECK(server["clients"].empty());
}

TEST_CASE("watch: the key c shows clients and hides them again")
{
	const History history;
	View view;
	Press(Key::Clients, history, 70, &view);
	CHECK(view.choice.clients);
	Press(Key::Clients, history, 70, &view);
	CHECK_FALSE(view.choice.clients);
}
