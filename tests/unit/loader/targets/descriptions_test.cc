// SPDX-License-Identifier: MIT
// When targets are looked up again. The times are made up, the processes are real.
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/unit/loader/support.h"

#include <memory>

#include "loader/targets.h"

using namespace forktail::test;

namespace
{

constexpr uint64_t second_ns = 1000000000;

struct Close {
	void operator()(descriptions *d) const { descriptions_close(d); }
};
using Descriptions = std::unique_ptr<descriptions, Close>;

std::string text_of(const json_t *described, const char *name)
{
	return json_string_value(json_object_get(described, name));
}

pid_t pid_of(const json_t *described)
{
	return static_cast<pid_t>(json_integer_value(json_object_get(described, "pid")));
}

size_t listens(const json_t *described)
{
	return json_array_size(json_object_get(described, "listens"));
}

} // namespace

TEST_CASE("a new target is looked up again within seconds, an old one after a minute")
{
	const Descriptions d(descriptions_open());
	const json_t *first = descriptions_add(d.get(), getpid(), "words", second_ns);
	CHECK(text_of(first, "comm") == "test_loader");
	const size_t before = listens(first);
	Socket s(true);
	CHECK(descriptions_tick(d.get(), second_ns) == nullptr);
	const json_t *again = descriptions_tick(d.get(), 12 * second_ns);
	REQUIRE(again);
	CHECK(listens(again) == before + 1);
	// Not young any more. The look may have been dear, so that the next one is later than a minute.
	CHECK(descriptions_tick(d.get(), 71 * second_ns) == nullptr);
	CHECK(descriptions_tick(d.get(), 10000 * second_ns));
}

TEST_CASE("targets are looked up in turn, new ones first")
{
	Process old({"sleep", "60"}), older({"sleep", "60"});
	const Descriptions d(descriptions_open());
	descriptions_add(d.get(), older.pid(), "words", 1);
	descriptions_add(d.get(), old.pid(), "words", 2);
	CHECK(pid_of(descriptions_tick(d.get(), 10000 * second_ns)) == older.pid());
	CHECK(pid_of(descriptions_tick(d.get(), 20000 * second_ns)) == old.pid());
	CHECK(pid_of(descriptions_tick(d.get(), 30000 * second_ns)) == older.pid());
	descriptions_add(d.get(), getpid(), "words", 40000 * second_ns);
	CHECK(pid_of(descriptions_tick(d.get(), 40014 * second_ns)) == getpid());
}

TEST_CASE("all targets are listed until they are forgotten")
{
	Process other({"sleep", "60"});
	const Descriptions d(descriptions_open());
	descriptions_add(d.get(), getpid(), "words", 1);
	descriptions_add(d.get(), other.pid(), "words", 1);
	descriptions_add(d.get(), other.pid(), "words", 2); // once
	const auto count = [&] {
		json_t *all = descriptions_all(d.get());
		const size_t n = json_array_size(all);
		json_decref(all);
		return n;
	};
	CHECK(count() == 2);
	descriptions_forget(d.get(), getpid());
	descriptions_forget(d.get(), getpid());
	CHECK(count() == 1);
	CHECK(descriptions_add(nullptr, getpid(), "words", 1) == nullptr);
}
