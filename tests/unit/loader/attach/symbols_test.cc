// SPDX-License-Identifier: MIT
// Names of kernel addresses, checked against /proc/kallsyms, which the test parses itself.
#include "tests/support/catch.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "loader/attach.h"

namespace
{

std::string name_of(uint64_t address, size_t size = 160)
{
	std::string text(size, 'x');
	symbol_name(address, text.data(), size);
	return text.c_str();
}

// The kernel's functions by address. Empty if the kernel hides them.
std::map<uint64_t, std::set<std::string>> functions()
{
	std::map<uint64_t, std::set<std::string>> all;
	std::ifstream in("/proc/kallsyms");
	for (std::string line; std::getline(in, line);) {
		std::istringstream words(line);
		std::string address, type, name;
		words >> address >> type >> name;
		const uint64_t at = std::stoull(address, nullptr, 16);
		// The padding before functions is no function.
		if (at && (type == "t" || type == "T") && name.rfind("__pfx_", 0) != 0)
			all[at].insert(name);
	}
	return all;
}

} // namespace

TEST_CASE("an address has its function's name and the offset in it")
{
	const auto all = functions();
	symbols_begin();
	const size_t count = symbols_wait();
	CHECK(symbols_shown() == !all.empty());
	symbols_begin();
	CHECK(symbols_wait() == count); // read once
	if (all.empty()) {
		CHECK(count == 0);
		CHECK(name_of(0xffffffff81000010) == "?");
		return;
	}
	CHECK(count >= all.size());
	size_t wrong = 0, checked = 0;
	for (auto at = all.begin(); std::next(at) != all.end() && checked < 5000; ++at, checked++) {
		const uint64_t inside = std::next(at)->first - at->first > 0x11 ? 0x11 : 0;
		std::ostringstream place;
		place << "+0x" << std::hex << inside;
		const std::string name = name_of(at->first + inside);
		const size_t plus = name.find('+');
		wrong += !at->second.count(name.substr(0, plus)) || name.substr(plus) != place.str();
	}
	CHECK(checked > 1000);
	CHECK(wrong == 0);
}

TEST_CASE("an address outside all functions is no function, and a long name is cut")
{
	symbols_begin();
	symbols_wait();
	CHECK(name_of(0x1234) == "?");
	CHECK(name_of(~0ull) == "?");
	const auto all = functions();
	if (!all.empty()) {
		const auto &[at, names] = *all.rbegin();
		CHECK(names.count(name_of(at + 0xfffff).substr(0, name_of(at + 0xfffff).find('+'))));
		CHECK(name_of(at + 0x100000) == "?");
		CHECK(name_of(at, 5).size() <= 4);
	}
}
