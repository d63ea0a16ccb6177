// SPDX-License-Identifier: MIT
// YCSB's workloads: names seen on the wire, frequencies compared with those from its formulas, and the
// growing base.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "loadgen/workload.h"
#include "tests/support/catch.h"
#include "tests/support/chi_squared.h"

namespace
{

constexpr double kTheta = 0.99, kScrambledItems = 1e10 + 1, kScrambledZeta = 26.46902820178302;

double zeta(uint64_t items)
{
	double sum = 0;
	for (uint64_t i = items; i > 0; i--)
		sum += std::pow(static_cast<double>(i), -kTheta);
	return sum;
}

// The probability that Gray's formula gives less than `rank`: where its inverse crosses that rank.
struct gray {
	double items, zeta, eta;
	gray(double start_items, double now_items, double zeta_now)
	    : items(now_items), zeta(zeta_now),
	      eta((1 - std::pow(2 / start_items, 1 - kTheta)) / (1 - (1 + std::pow(0.5, kTheta)) / zeta_now))
	{
	}
	double below(double rank) const
	{
		const double first_two = (1 + std::pow(0.5, kTheta)) / zeta;
		if (rank <= 0)
			return 0;
		if (rank == 1)
			return 1 / zeta;
		const double u = (std::pow(rank / items, 1 - kTheta) - 1 + eta) / eta;
		return std::min(std::max(u, first_two), 1.0);
	}
	double at(double rank) const { return below(rank + 1) - below(rank); }
};

std::string name(uint64_t n)
{
	char text[YCSB_NAME_BYTES];
	const size_t length = ycsb_key_name(n, text);
	CHECK(length == std::strlen(text));
	return text;
}

int32_t java_hash(const std::string &text)
{
	return ycsb_name_hash(text.data(), text.size());
}

} // namespace

TEST_CASE("records have YCSB's names")
{
	CHECK(name(0) == "user6284781860667377211");
	CHECK(name(1) == "user8517097267634966620");
	CHECK(name(2) == "user1820151046732198393");
	CHECK(name(999) == "user2071219101098386137");
	for (uint64_t n = 0; n < 100000; n++)
		if (name(n) != "user" + std::to_string(ycsb_hash(n)))
			FAIL(n);
}

TEST_CASE("the score of a record is Java's hash of its name")
{
	CHECK(java_hash("") == 0);
	CHECK(java_hash("hello") == 99162322);
	CHECK(java_hash("polygenelubricants") == INT32_MIN);
	CHECK(java_hash("zzzzzz") == -685785664);
	CHECK(java_hash("user6284781860667377211") == -594971599);
}

TEST_CASE("each workload has its mix of operations")
{
	const struct {
		char letter;
		std::vector<double> shares; // read, update, insert, scan, read-modify-write
		ycsb_choice choice;
	} expected[] = {
	    {'A', {0.5, 0.5, 0, 0, 0}, YCSB_ZIPFIAN},	{'B', {0.95, 0.05, 0, 0, 0}, YCSB_ZIPFIAN},
	    {'C', {1, 0, 0, 0, 0}, YCSB_ZIPFIAN},	{'D', {0.95, 0, 0.05, 0, 0}, YCSB_LATEST},
	    {'E', {0, 0, 0.05, 0.95, 0}, YCSB_ZIPFIAN}, {'F', {0.5, 0, 0, 0, 0.5}, YCSB_ZIPFIAN},
	};
	for (const auto &e : expected) {
		const ycsb_workload *w = ycsb_find(e.letter);
		REQUIRE(w);
		CHECK(w->letter == e.letter);
		CHECK(ycsb_find(static_cast<char>(e.letter + 32)) == w);
		CHECK(w->choice == e.choice);
		random_stream r = random_begin(1, 0, 2);
		std::vector<uint64_t> counts(YCSB_OPERATIONS);
		for (int i = 0; i < 500000; i++)
			counts.at(ycsb_draw_operation(w, &r))++;
		INFO(e.letter);
		CHECK(chi_squared_test(counts, e.shares).fits());
		for (size_t i = 0; i < counts.size(); i++)
			CHECK((counts[i] > 0) == (e.shares[i] > 0));
	}
	for (char letter : {'G', 'g', '@', '`', ' ', '\0'})
		CHECK(ycsb_find(letter) == nullptr);
}

TEST_CASE("fields and lengths of scans are uniform")
{
	random_stream r = random_begin(1, 0, 3);
	std::vector<uint64_t> fields(YCSB_FIELDS), scans(YCSB_SCAN_MAX);
	for (int i = 0; i < 500000; i++) {
		fields.at(ycsb_draw_field(&r))++;
		scans.at(ycsb_draw_scan(&r) - 1)++;
	}
	CHECK(chi_squared_test(fields, std::vector<double>(10, 0.1)).fits());
	CHECK(chi_squared_test(scans, std::vector<double>(100, 0.01)).fits());
}

TEST_CASE("zipfian ranks have the frequencies of Gray's formula, also after growing")
{
	random_stream r = random_begin(1, 0, 1);
	ycsb_zipfian z;
	ycsb_zipfian_init(&z, 1000);
	CHECK(z.zeta == Approx(zeta(1000)).epsilon(1e-12));
	for (uint64_t items : {1000, 1001, 3000, 2000}) {
		std::vector<uint64_t> counts(items + 1);
		for (int i = 0; i < 500000; i++)
			counts.at(ycsb_zipfian_draw(&z, &r, items))++;
		// Fewer items than before: zeta stays.
		CHECK(z.zeta == Approx(zeta(items == 2000 ? 3000 : items)).epsilon(1e-12));
		const gray g(1000, static_cast<double>(items), z.zeta);
		std::vector<double> p;
		for (uint64_t rank = 0; rank <= items; rank++)
			p.push_back(rank == items ? 0 : g.at(static_cast<double>(rank)));
		const auto chi = chi_squared_test(counts, p);
		INFO(items << " items: " << chi.statistic << " above " << chi.limit);
		CHECK(chi.fits());
	}
}

TEST_CASE("scrambled choice has YCSB's frequency for each record")
{
	// Popular ranks one by one. The others, each of tiny weight, are spread evenly over all records.
	const struct {
		char letter;
		uint64_t records, operations, hashed_items;
	} cases[] = {
	    {'C', 1000, 5000, 1001}, {'E', 1000, 1000, 1101}, {'E', 1000, 5000, 1501}, {'A', 1, 10, 2}};
	const gray g(kScrambledItems, kScrambledItems, kScrambledZeta);
	const uint64_t ranks = 3000000;
	for (const auto &c : cases) {
		ycsb_keys k;
		ycsb_keys_init(&k, ycsb_find(c.letter), c.records, c.operations);
		REQUIRE(k.hashed_items == c.hashed_items);
		std::vector<double> p(c.hashed_items);
		double before = 0;
		for (uint64_t rank = 0; rank < ranks; rank++) {
			const double up_to = g.below(static_cast<double>(rank + 1));
			p[ycsb_hash(rank) % c.hashed_items] += up_to - before;
			before = up_to;
		}
		double inside = 0;
		for (double &value : p)
			value += (1 - before) / static_cast<double>(c.hashed_items);
		p.resize(c.records); // the others are not inserted yet
		for (double value : p)
			inside += value;
		for (double &value : p)
			value /= inside;
		random_stream r = random_begin(5, 0, 1);
		std::vector<uint64_t> counts(c.records);
		for (int i = 0; i < 500000; i++)
			counts.at(ycsb_draw_key(&k, &r, c.records))++;
		const auto chi = chi_squared_test(counts, p);
		INFO(c.letter << ", " << c.hashed_items << " items: " << chi.statistic << " above "
			      << chi.limit);
		CHECK(chi.fits());
	}
}

TEST_CASE("latest favours the last record and follows the growing base")
{
	ycsb_keys k;
	ycsb_keys_init(&k, ycsb_find('D'), 1000, 100000);
	random_stream r = random_begin(1, 0, 1);
	for (uint64_t count : {1000, 1500}) {
		std::vector<uint64_t> ranks(count);
		for (int i = 0; i < 500000; i++)
			ranks.at(count - 1 - ycsb_draw_key(&k, &r, count))++;
		const gray g(999, static_cast<double>(count - 1), zeta(count - 1));
		std::vector<double> p;
		for (uint64_t rank = 0; rank + 1 < count; rank++)
			p.push_back(g.at(static_cast<double>(rank)));
		p.push_back(0);
		const auto chi = chi_squared_test(ranks, p);
		INFO(count << " records: " << chi.statistic << " above " << chi.limit);
		CHECK(chi.fits());
	}
	// However few records there are at first, keys exist.
	for (uint64_t records = 1; records < 5; records++) {
		ycsb_keys_init(&k, ycsb_find('D'), records, 100);
		for (uint64_t count = records; count < 2000; count++)
			REQUIRE(ycsb_draw_key(&k, &r, count) < count);
	}
}

TEST_CASE("the base counts acknowledged inserts without a gap")
{
	const auto b = std::make_unique<key_base>();
	key_base_init(b.get(), 100);
	CHECK(key_base_count(b.get()) == 100);
	for (uint64_t n = 100; n < 105; n++)
		CHECK(key_base_take(b.get()) == n);
	CHECK(key_base_count(b.get()) == 100);
	key_base_ack(b.get(), 101);
	key_base_ack(b.get(), 103);
	CHECK(key_base_count(b.get()) == 100);
	key_base_ack(b.get(), 100);
	CHECK(key_base_count(b.get()) == 102);
	key_base_ack(b.get(), 104);
	CHECK(key_base_count(b.get()) == 102);
	key_base_ack(b.get(), 102);
	CHECK(key_base_count(b.get()) == 105);
}

TEST_CASE("the base issues at most a window of numbers at once, lap after lap")
{
	const auto b = std::make_unique<key_base>();
	key_base_init(b.get(), 7);
	uint64_t first = 7;
	for (int lap = 0; lap < 3; lap++) {
		for (uint64_t n = first; n < first + KEY_BASE_WINDOW; n++)
			if (key_base_take(b.get()) != n)
				FAIL(n);
		CHECK(key_base_take(b.get()) == KEY_BASE_FULL);
		// Backwards: nothing counts until the first, then everything does.
		for (uint64_t n = first + KEY_BASE_WINDOW; n-- > first + 1;)
			key_base_ack(b.get(), n);
		CHECK(key_base_count(b.get()) == first);
		CHECK(key_base_take(b.get()) == KEY_BASE_FULL);
		key_base_ack(b.get(), first);
		first += KEY_BASE_WINDOW;
		CHECK(key_base_count(b.get()) == first);
		CHECK(key_base_take(b.get()) == first);
		key_base_ack(b.get(), first);
		first++;
		CHECK(key_base_count(b.get()) == first);
	}
}

TEST_CASE("threads that insert concurrently share the base")
{
	constexpr uint64_t kThreads = 4, kEach = 400000, kStart = 1000; // more than one lap in total
	const auto b = std::make_unique<key_base>();
	const auto marks = std::make_unique<std::vector<std::atomic<uint8_t>>>(kThreads * kEach);
	std::atomic<uint64_t> twice{0}, unmarked{0}, backwards{0};
	std::atomic<bool> done{false};
	key_base_init(b.get(), kStart);

	std::thread reader([&] {
		for (uint64_t before = kStart; !done;) {
			const uint64_t count = key_base_count(b.get());
			backwards += count < before;
			for (; before < count; before++)
				unmarked += (*marks)[before - kStart] != 2;
		}
	});
	std::vector<std::thread> threads;
	for (uint32_t t = 0; t < kThreads; t++)
		threads.emplace_back([&, t] {
			random_stream r = random_begin(1, t, 0);
			std::vector<uint64_t> on_their_way;
			const auto acknowledge = [&](size_t i) {
				(*marks)[on_their_way[i] - kStart] = 2;
				key_base_ack(b.get(), on_their_way[i]);
				on_their_way[i] = on_their_way.back();
				on_their_way.pop_back();
			};
			for (uint64_t i = 0; i < kEach;) {
				const uint64_t n = key_base_take(b.get());
				if (n != KEY_BASE_FULL) {
					twice += (*marks)[n - kStart].exchange(1) != 0;
					on_their_way.push_back(n);
					i++;
				}
				if (n == KEY_BASE_FULL && on_their_way.empty())
					std::this_thread::yield(); // another thread has the oldest
				else if (n == KEY_BASE_FULL || on_their_way.size() == 64)
					acknowledge(random_below(&r, on_their_way.size()));
			}
			while (!on_their_way.empty())
				acknowledge(0);
		});
	for (std::thread &thread : threads)
		thread.join();
	done = true;
	reader.join();
	CHECK(twice == 0);
	CHECK(unmarked == 0);
	CHECK(backwards == 0);
	CHECK(key_base_count(b.get()) == kStart + kThreads * kEach);
	CHECK(key_base_take(b.get()) == kStart + kThreads * kEach);
}
