// SPDX-License-Identifier: MIT
// YCSB's core workloads on a real redis-server: records, index and commands exactly as in YCSB's Redis
// binding. Names, hashes and probabilities are computed here independently, from its published definitions.
#include <cmath>
#include <map>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/chi_squared.h"
#include "tests/system/load/monitor.h"

using namespace forktail::test;

namespace
{

uint64_t fnv(uint64_t n)
{
	uint64_t hash = 0xCBF29CE484222325;
	for (int i = 0; i < 8; i++) {
		hash ^= n & 0xff;
		hash *= 1099511628211;
		n >>= 8;
	}
	return static_cast<uint64_t>(std::llabs(static_cast<int64_t>(hash)));
}

std::string record(uint64_t n)
{
	return "user" + std::to_string(fnv(n));
}

int32_t java_hash(const std::string &text)
{
	uint32_t hash = 0;
	for (char c : text)
		hash = 31 * hash + static_cast<unsigned char>(c);
	return static_cast<int32_t>(hash);
}

std::vector<std::string> split(const std::string &text)
{
	std::vector<std::string> all;
	for (size_t at = 0; at < text.size();) {
		const size_t end = std::min(text.find('\n', at), text.size());
		all.push_back(text.substr(at, end - at));
		at = end + 1;
	}
	return all;
}

constexpr uint64_t kRecords = 1000;

// A server with the records 0 .. 999.
struct Loaded {
	Redis redis;
	Loaded()
	{
		Ran load({"-s", redis.socket(), "--ycsb", "load", "-r", std::to_string(kRecords), "-c", "7"});
		REQUIRE(load.total()["errors"] == 0);
		REQUIRE(load.requests("INSERT") == kRecords);
		redis.command({"CONFIG", "RESETSTAT"});
	}
	Ran run(const std::string &letter, Arguments more = {})
	{
		Arguments arguments = {"-s", redis.socket(),	       "--ycsb", letter,
				       "-r", std::to_string(kRecords), "--seed", "8"};
		arguments.insert(arguments.end(), more.begin(), more.end());
		return Ran(arguments);
	}
};

void check_share(uint64_t n, uint64_t of, double share)
{
	// Five standard deviations.
	const double mean = static_cast<double>(of) * share;
	CHECK(static_cast<double>(n) == Approx(mean).margin(5 * std::sqrt(mean * (1 - share)) + 1));
}

} // namespace

TEST_CASE("YCSB's load phase: records, fields and index")
{
	Redis redis;
	Ran load({"-s", redis.socket(), "--ycsb", "load", "-r", "1000"});
	CHECK(load.requests("INSERT") == 1000);
	CHECK(load.runs[0]["name"] == "YCSB load");
	CHECK(calls(redis, "hmset") == 1000);
	CHECK(calls(redis, "zadd") == 1000);
	CHECK(redis.command({"DBSIZE"}) == "1001");
	CHECK(redis.command({"ZCARD", "_indices"}) == "1000");
	for (const auto &[n, name] : std::map<uint64_t, std::string>{{0, "user6284781860667377211"},
								     {1, "user8517097267634966620"},
								     {2, "user1820151046732198393"},
								     {999, "user2071219101098386137"}}) {
		CHECK(record(n) == name);
		CHECK(redis.command({"EXISTS", name}) == "1");
	}
	std::map<std::string, double> index;
	const auto rows = split(redis.command({"ZRANGE", "_indices", "0", "-1", "WITHSCORES"}));
	REQUIRE(rows.size() == 2000);
	for (size_t i = 0; i < rows.size(); i += 2)
		index[rows[i]] = std::stod(rows[i + 1]);
	std::set<std::string> values;
	for (uint64_t n = 0; n < 1000; n++) {
		REQUIRE(index.count(record(n)) == 1);
		REQUIRE(index[record(n)] == java_hash(record(n)));
		REQUIRE(redis.command({"HLEN", record(n)}) == "10");
		const auto hash = split(redis.command({"HGETALL", record(n)}));
		REQUIRE(hash.size() == 20);
		std::map<std::string, std::string> fields; // a hash of long values has no order
		for (size_t i = 0; i < hash.size(); i += 2)
			fields[hash[i]] = hash[i + 1];
		REQUIRE(fields.size() == 10);
		REQUIRE((fields.begin()->first == "field0" && fields.rbegin()->first == "field9"));
		for (const auto &[field, value] : fields) {
			REQUIRE((field.size() == 6 && value.size() == 100));
			for (char c : value)
				REQUIRE((c >= ' ' && c <= '~'));
			values.insert(value);
		}
	}
	CHECK(values.size() == 10000); // each drawn again
}

TEST_CASE("YCSB A, B and C: reads of all fields, updates of one, by the server's own count")
{
	for (const auto &[letter, reads] : std::map<std::string, double>{{"A", 0.5}, {"B", 0.95}, {"C", 1}}) {
		Loaded server;
		Monitor monitor(server.redis);
		Ran run = server.run(letter, {"-n", "10000", "-P", "4"});
		INFO(letter);
		CHECK(run.runs[0]["name"] == "YCSB " + letter);
		CHECK(run.total()["errors"] == 0);
		const uint64_t read = calls(server.redis, "hgetall"), updated = calls(server.redis, "hmset");
		CHECK(read + updated == 10000);
		CHECK(run.requests("READ") == read);
		if (updated)
			CHECK(run.requests("UPDATE") == updated);
		check_share(read, 10000, reads);
		CHECK(calls(server.redis, "zadd") == 0);
		CHECK(server.redis.command({"DBSIZE"}) == "1001");
		CHECK(server.redis.info("keyspace_misses") == "0");
		std::vector<uint64_t> fields(10);
		for (const Seen &s : monitor.commands({"HMSET"})) {
			REQUIRE((s.words.size() == 4 && s.words[2].rfind("field", 0) == 0 &&
				 s.words[3].size() == 100));
			fields.at(std::stoul(s.words[2].substr(5)))++;
		}
		if (updated)
			CHECK(chi_squared_test(fields, std::vector<double>(10, 0.1)).fits());
	}
}

TEST_CASE("YCSB C: how popular each record is")
{
	Loaded server;
	Monitor monitor(server.redis);
	server.run("C", {"-n", "20000", "-P", "16"});
	std::map<std::string, uint64_t> number;
	for (uint64_t n = 0; n < kRecords; n++)
		number[record(n)] = n;
	std::vector<uint64_t> counts(kRecords);
	for (const Seen &s : monitor.commands({"HGETALL"}))
		counts.at(number.at(s.words.at(1)))++;
	// Gray's zipfian over 10^10 + 1 ranks, the first two exact, the others where its inverse puts them.
	// Each rank belongs to the record given by its hash modulo 1001 (no inserts: itemcount is records +
	// 1), drawn again when that is 1000. Ranks beyond the first millions, each rarer than 1 in 10^8, are
	// spread evenly.
	const double theta = 0.99, items = 1e10 + 1, zeta = 26.46902820178302, half = std::pow(0.5, theta);
	const double eta = (1 - std::pow(2 / items, 1 - theta)) / (1 - (1 + half) / zeta);
	const auto below = [&](double rank) {
		return rank <= 0 ? 0
		       : rank == 1
			   ? 1 / zeta
			   : std::max((std::pow(rank / items, 1 - theta) - 1 + eta) / eta, (1 + half) / zeta);
	};
	std::vector<double> p(kRecords + 1);
	const uint64_t head = 3000000;
	double before = 0;
	for (uint64_t rank = 0; rank < head; rank++) {
		const double upto = below(static_cast<double>(rank + 1));
		p[fnv(rank) % (kRecords + 1)] += upto - before;
		before = upto;
	}
	for (double &x : p)
		x += (1 - before) / (kRecords + 1);
	const double drawn_again = p[kRecords];
	p.pop_back();
	for (double &x : p)
		x /= 1 - drawn_again;
	CHECK(*std::max_element(p.begin(), p.end()) > 0.03);
	const chi_squared fit = chi_squared_test(counts, p);
	INFO(fit.statistic << " of at most " << fit.limit);
	CHECK(fit.fits());
}

TEST_CASE("YCSB D: inserts, and reads of existing records, mostly of the newest")
{
	Loaded server;
	Monitor monitor(server.redis);
	Ran run = server.run("D", {"-n", "20000"});
	CHECK(run.total()["errors"] == 0);
	const uint64_t inserts = run.requests("INSERT");
	check_share(inserts, 20000, 0.05);
	CHECK(calls(server.redis, "hgetall") == 20000 - inserts);
	CHECK(calls(server.redis, "hmset") == inserts);
	CHECK(calls(server.redis, "zadd") == inserts);
	CHECK(server.redis.command({"ZCARD", "_indices"}) == std::to_string(kRecords + inserts));
	CHECK(server.redis.command({"DBSIZE"}) == std::to_string(kRecords + inserts + 1));
	CHECK(server.redis.info("keyspace_misses") == "0");
	for (uint64_t n : {kRecords, kRecords + inserts - 1})
		CHECK(server.redis.command({"EXISTS", record(n)}) == "1");
	CHECK(server.redis.command({"EXISTS", record(kRecords + inserts)}) == "0");
	std::map<std::string, uint64_t> number;
	for (uint64_t n = 0; n < kRecords + inserts; n++)
		number[record(n)] = n;
	uint64_t newest = 0, reads = 0, latest = kRecords - 1;
	for (const Seen &s : monitor.commands({"HGETALL", "HMSET"})) {
		const uint64_t n = number.at(s.words.at(1));
		if (s.words[0] == "HMSET") {
			REQUIRE(s.words.size() == 22);
			latest = std::max(latest, n);
			continue;
		}
		reads++;
		newest += n + 100 > latest;
	}
	// The hundred newest of 1000 to 2000 get two thirds of a zipfian's draws.
	CHECK(static_cast<double>(newest) / static_cast<double>(reads) > 0.5);
}

TEST_CASE("YCSB E: a scan reads the following keys from the index, then each of their records")
{
	Loaded server;
	std::set<std::pair<int32_t, std::string>> index; // in the order of a sorted set
	for (uint64_t n = 0; n < kRecords; n++)
		index.emplace(java_hash(record(n)), record(n));
	Monitor monitor(server.redis);
	Ran run = server.run("E", {"-n", "1000", "-c", "1"});
	CHECK(run.total()["errors"] == 0);
	const uint64_t scans = run.requests("SCAN"), inserts = run.requests("INSERT");
	CHECK(scans + inserts == 1000);
	check_share(inserts, 1000, 0.05);
	CHECK(calls(server.redis, "zrangebyscore") == scans);
	CHECK(calls(server.redis, "hmset") == inserts);
	CHECK(calls(server.redis, "zadd") == inserts);
	const auto seen = monitor.commands({"ZRANGEBYSCORE", "HGETALL", "HMSET", "ZADD"});
	uint64_t reads = 0;
	std::set<int> lengths;
	for (size_t i = 0; i < seen.size();) {
		const auto &w = seen[i++].words;
		if (w[0] == "HMSET") {
			REQUIRE((w.size() == 22 && i < seen.size()));
			const auto &add = seen[i++].words;
			REQUIRE(add == std::vector<std::string>{"ZADD", "_indices",
								std::to_string(java_hash(w[1])), w[1]});
			index.emplace(java_hash(w[1]), w[1]);
			continue;
		}
		REQUIRE((w[0] == "ZRANGEBYSCORE" && w.size() == 7 && w[1] == "_indices" && w[3] == "+inf"));
		REQUIRE((w[4] == "LIMIT" && w[5] == "0"));
		int length = std::stoi(w[6]);
		REQUIRE((length >= 1 && length <= 100));
		lengths.insert(length);
		auto next = index.lower_bound({std::stoi(w[2]), ""});
		REQUIRE((next != index.end() && next->first == std::stoi(w[2])));
		for (; length > 0 && next != index.end(); ++next, length--) {
			REQUIRE(i < seen.size());
			REQUIRE(seen[i++].words == std::vector<std::string>{"HGETALL", next->second});
			reads++;
		}
	}
	CHECK(calls(server.redis, "hgetall") == reads);
	CHECK(lengths.size() > 90);
	// On many connections, the same counts.
	server.redis.command({"CONFIG", "RESETSTAT"});
	Ran many = server.run("E", {"-n", "500", "-c", "20", "-r", std::to_string(kRecords)});
	CHECK(many.total()["errors"] == 0);
	CHECK(calls(server.redis, "zrangebyscore") == many.requests("SCAN"));
}

TEST_CASE("YCSB F: a record is read, then one of its fields written, on one connection and as one request")
{
	Loaded server;
	Monitor monitor(server.redis);
	Ran run = server.run("F", {"-n", "4000", "-c", "1"});
	CHECK(run.total()["errors"] == 0);
	CHECK(run.total()["requests"] == 4000);
	const uint64_t modified = run.requests("READ-MODIFY-WRITE");
	check_share(modified, 4000, 0.5);
	CHECK(calls(server.redis, "hgetall") == 4000);
	CHECK(calls(server.redis, "hmset") == modified);
	std::string last;
	for (const Seen &s : monitor.commands({"HGETALL", "HMSET"})) {
		if (s.words[0] == "HMSET") {
			REQUIRE(s.words.size() == 4);
			REQUIRE(s.words[1] == last);
		}
		last = s.words[0] == "HGETALL" ? s.words[1] : "";
	}
	server.redis.command({"CONFIG", "RESETSTAT"});
	Ran many = server.run("F", {"-n", "4000", "-c", "20", "--threads", "2", "-P", "3"});
	CHECK(many.total()["errors"] == 0);
	CHECK(calls(server.redis, "hgetall") == 4000);
	CHECK(calls(server.redis, "hmset") == many.requests("READ-MODIFY-WRITE"));
}
