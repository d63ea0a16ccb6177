// SPDX-License-Identifier: MIT
// The table of commands, compared with what each server's COMMAND says of its commands, and with its replies.
#include <cstring>
#include <hiredis/hiredis.h>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "common/commands.h"
#include "tests/support/catch.h"
#include "tests/support/servers/server.h"

using namespace forktail::test;

namespace
{

using Reply = std::unique_ptr<redisReply, void (*)(void *)>;

// One element of COMMAND, and its subcommands.
struct Told {
	std::set<std::string> flags, parts;
	long long key, last, step;
};

std::string upper(std::string text)
{
	for (char &c : text)
		c = c == '|' ? ' ' : static_cast<char>(toupper(static_cast<unsigned char>(c)));
	return text;
}

class Server
{
public:
	explicit Server(const std::string &program)
	    : redis_({.tcp = false, .program = program}),
	      connection_(redisConnectUnix(redis_.socket().c_str()), redisFree)
	{
		REQUIRE((connection_ && !connection_->err));
	}

	Reply ask(const std::string &text)
	{
		std::istringstream words(text);
		std::vector<std::string> all{std::istream_iterator<std::string>(words), {}};
		std::vector<const char *> argv;
		for (const std::string &word : all)
			argv.push_back(word.c_str());
		return {static_cast<redisReply *>(redisCommandArgv(
			    connection_.get(), static_cast<int>(argv.size()), argv.data(), nullptr)),
			freeReplyObject};
	}

	std::map<std::string, Told> commands()
	{
		std::map<std::string, Told> all;
		const Reply r = ask("COMMAND");
		REQUIRE((r && r->type == REDIS_REPLY_ARRAY && r->elements > 200));
		for (size_t i = 0; i < r->elements; i++) {
			redisReply **of = r->element[i]->element;
			Told &t = all[upper(of[0]->str)];
			t.key = of[3]->integer;
			t.last = of[4]->integer;
			t.step = of[5]->integer;
			for (size_t k = 0; k < of[2]->elements; k++)
				t.flags.insert(of[2]->element[k]->str);
			for (size_t k = 0; k < of[9]->elements; k++)
				t.parts.insert(upper(of[9]->element[k]->element[0]->str));
		}
		return all;
	}

private:
	Redis redis_;
	std::unique_ptr<redisContext, void (*)(redisContext *)> connection_;
};

int kind_of(const Reply &r)
{
	REQUIRE(r);
	INFO((r->str ? r->str : ""));
	switch (r->type) {
	case REDIS_REPLY_STATUS:
		return REPLY_LINE;
	case REDIS_REPLY_INTEGER:
		return REPLY_INTEGER;
	case REDIS_REPLY_STRING:
		return REPLY_VALUE;
	case REDIS_REPLY_ARRAY:
		return REPLY_LIST;
	case REDIS_REPLY_NIL:
		return REPLY_NIL;
	default:
		return REPLY_ANY;
	}
}

const command_row *row_of(const std::string &name)
{
	return commands_row(name.data(), name.size());
}

} // namespace

TEST_CASE("the table of commands says what servers say")
{
	const std::set<std::string> own_tests = {"PFDEBUG", "PFSELFTEST"}; // of Redis itself
	for (const std::string kind : {"redis", "redis-server", "valkey-server"}) {
		const std::string program = kind == "redis" ? "redis-server" : newer_server(kind);
		if (program.empty()) {
			WARN("SKIPPED: no " << kind << " of a later Debian (script/servers)");
			continue;
		}
		Server server(program);
		const std::map<std::string, Told> all = server.commands();
		size_t known = 0;
		for (const auto &[name, told] : all) {
			INFO(kind << " " << name);
			const command_row *row = row_of(name);
			const unsigned flags = row ? row->flags : 0;
			CHECK((!told.flags.count("admin") || own_tests.count(name) || (row && row->harm)));
			CHECK((!told.flags.count("blocking") ||
			       flags & (COMMAND_BLOCKING | COMMAND_BLOCK_OPTION)));
			if (name.ends_with("SUBSCRIBE")) {
				CHECK((row && row->harm == HARM_PROTOCOL));
				CHECK(!(flags & COMMAND_PUSHES) == name.ends_with("UNSUBSCRIBE"));
			}
			if (!row)
				continue;
			known++;
			CHECK(row->key == told.key);
			CHECK((!row->split || (told.key == 1 && told.last == -1 && told.step == row->split)));
			// WAIT has had the flag since 7.2.
			CHECK(
			    (!(flags & COMMAND_BLOCKING) || name == "WAIT" || told.flags.count("blocking")));
			CHECK((row->harm == HARM_BLOCKS) ==
			      ((flags & (COMMAND_BLOCKING | COMMAND_BLOCK_OPTION)) != 0));
			CHECK((!row->harm || row->harm >= HARM_BLOCKS || !told.flags.count("readonly")));
		}
		CHECK(known > 200);
		for (const command_row &row : commands_table) {
			const std::string name = row.name, of = name.substr(0, name.find(' '));
			INFO(kind << " " << name);
			if (of != name && (of != "COMMANDLOG" || all.count(of)))
				CHECK((all.count(of) && all.at(of).parts.count(name)));
		}
	}
}

TEST_CASE("replies have the kinds of the table")
{
	struct Asked {
		const char *command;
		bool misses;
	};
	Server server("redis-server");
	std::set<std::string> asked;
	for (const Asked &a : std::initializer_list<Asked>{
		 {"PING", false},	  {"SET k v", false},	   {"GET k", false},
		 {"GET none", true},	  {"INCR n", false},	   {"LPUSH l a", false},
		 {"RPUSH l b", false},	  {"LRANGE l 0 9", false}, {"LPOP l", false},
		 {"RPOP l", false},	  {"LPOP l", true},	   {"RPOP l", true},
		 {"SADD s m", false},	  {"SMEMBERS s", false},   {"SPOP s", false},
		 {"SPOP s", true},	  {"HSET h f v", false},   {"HGET h f", false},
		 {"HGET h none", true},	  {"HGETALL h", false},	   {"HMSET h g w", false},
		 {"ZADD z 1 m", false},	  {"ZPOPMIN z", false},	   {"ZRANGEBYSCORE z 0 9", false},
		 {"MSET a 1 b 2", false}, {"XADD x * f v", false}}) {
		INFO(a.command);
		const std::string text = a.command;
		const command_row *row = row_of(text.substr(0, text.find(' ')));
		REQUIRE((row && row->reply.kind));
		const size_t words = 1 + static_cast<size_t>(std::count(text.begin(), text.end(), ' '));
		CHECK((row->reply.words == 0 || words <= row->reply.words));
		CHECK(kind_of(server.ask(text)) == (a.misses ? row->reply.miss : row->reply.kind));
		asked.insert(std::string(row->name) + (a.misses ? " misses" : ""));
	}
	for (const command_row &row : commands_table) {
		INFO(row.name);
		CHECK((!row.reply.kind || asked.count(row.name)));
		CHECK((!row.reply.miss || asked.count(std::string(row.name) + " misses")));
	}
}
