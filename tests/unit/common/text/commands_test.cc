// SPDX-License-Identifier: MIT
// The table of commands: every name is found, and each has one index of a byte.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>
#include <string>

#include "common/commands.h"
#include "tests/support/catch.h"

TEST_CASE("every command has one index, and is found by its name", "[commands]")
{
	STATIC_REQUIRE(COMMANDS <= 254);
	std::set<std::string> names;
	std::string last;
	for (unsigned i = 1; i < COMMAND_OTHER; i++) {
		const std::string name = commands_name(i);
		INFO(name);
		CHECK(last < name);
		CHECK(name.size() <= COMMAND_BYTES);
		CHECK(std::none_of(name.begin(), name.end(), [](unsigned char c) { return islower(c); }));
		CHECK(commands_find(name.data(), name.size()) == i);
		// Neither is a part of it, nor what only begins with it.
		const std::string longer = name + "!";
		CHECK(commands_find(longer.data(), longer.size()) == COMMAND_OTHER);
		last = name;
	}
	CHECK(std::string(commands_name(COMMAND_UNKNOWN)) == "unknown");
	CHECK(std::string(commands_name(COMMAND_OTHER)) == "other");
	CHECK(std::string(commands_name(COMMANDS)) == "other");
	CHECK(std::string(commands_name(UINT32_MAX)) == "other");
}

TEST_CASE("words that are no command of the table are others", "[commands]")
{
	for (const char *word : {"", "G", "GE", "GETT", "get", "unknown", "other", "NOSUCHCOMMAND", "ZZZ",
				 "A", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ"})
		CHECK(commands_find(word, strlen(word)) == COMMAND_OTHER);
	CHECK(commands_find("GET\0", 4) == COMMAND_OTHER);
	CHECK(commands_flags(COMMAND_UNKNOWN) == 0);
	CHECK(commands_flags(COMMAND_OTHER) == 0);
	CHECK(commands_flags(UINT32_MAX) == 0);
}

TEST_CASE("commands that block or push are marked", "[commands]")
{
	const auto flags = [](const char *name) { return commands_flags(commands_find(name, strlen(name))); };
	for (const char *name : {"BLPOP", "BRPOP", "BLMOVE", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP",
				 "BRPOPLPUSH", "WAIT", "WAITAOF"})
		CHECK((flags(name) & COMMAND_REDIS) == COMMAND_BLOCKING);
	for (const char *name :
	     {"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR", "PSYNC", "SYNC", "REPLCONF"})
		CHECK((flags(name) & COMMAND_REDIS) == COMMAND_PUSHES);
	for (const char *name : {"XREAD", "XREADGROUP"})
		CHECK(flags(name) == COMMAND_BLOCK_OPTION);
	for (const char *name : {"GET", "SET", "LPOP", "UNSUBSCRIBE", "PUBLISH"})
		CHECK((flags(name) & COMMAND_REDIS) == 0);
}

TEST_CASE("opcodes of memcached's binary protocol have the names of its text commands", "[commands]")
{
	const auto name = [](unsigned opcode) {
		return std::string(commands_name(commands_of_opcode(static_cast<uint8_t>(opcode))));
	};
	const auto quiet = [](unsigned opcode) {
		return commands_opcode_quiet(static_cast<uint8_t>(opcode));
	};
	CHECK(name(0x00) == "GET");
	CHECK(name(0x0d) == "GET"); // getkq
	CHECK(name(0x11) == "SET"); // setq
	CHECK(name(0x1d) == "GAT");
	CHECK(name(0x10) == "STATS");
	CHECK(name(0x0a) == "NOOP");
	CHECK(name(0x1f) == "other");
	CHECK(name(0xff) == "other");
	unsigned count = 0;
	for (unsigned opcode = 0; opcode < 256; opcode++)
		count += quiet(opcode);
	CHECK(count == 14);
	for (unsigned opcode : {0x09u, 0x0du, 0x11u, 0x12u, 0x13u, 0x14u, 0x15u, 0x16u, 0x17u, 0x18u, 0x19u,
				0x1au, 0x1eu, 0x24u})
		CHECK(quiet(opcode));
}

TEST_CASE("rows of words in any case, and of subcommands")
{
	const auto row = [](const std::string &word) { return commands_row(word.data(), word.size()); };
	for (unsigned i = 1; i < COMMAND_ROWS; i++) {
		const std::string name = commands_table[i].name, first = name.substr(0, name.find(' '));
		INFO(name);
		CHECK(name.size() <= COMMAND_BYTES);
		if (name.size() == first.size()) {
			CHECK(row(name) == (i == COMMAND_OTHER ? nullptr : &commands_table[i]));
			continue;
		}
		CHECK(row(name) == nullptr);
		const std::string part = name.substr(first.size() + 1);
		CHECK(commands_part(row(first), part.data(), part.size()) == &commands_table[i]);
		CHECK(commands_part(row(first), part.data(), part.size() - 1) == nullptr);
	}
	CHECK(row("Get") == row("GET"));
	CHECK(row("shutdown") != nullptr);
	for (const char *none : {"", "NOSUCHCOMMAND", "unknown", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"})
		CHECK(row(none) == nullptr);
	CHECK(commands_part(row("client"), "kill", 4) == commands_part(row("CLIENT"), "KILL", 4));
	CHECK(commands_part(row("GET"), "KILL", 4) == nullptr);
}
