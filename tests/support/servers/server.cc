// SPDX-License-Identifier: MIT
// A real redis-server for a test. See server.h.
#include "tests/support/servers/server.h"

#include <hiredis/hiredis.h>
#include <stdexcept>

#include "tests/support/servers/started.h"

namespace forktail::test
{
namespace
{

std::string text_of(const redisReply &reply)
{
	switch (reply.type) {
	case REDIS_REPLY_NIL:
		return "(nil)";
	case REDIS_REPLY_INTEGER:
		return std::to_string(reply.integer);
	case REDIS_REPLY_ERROR:
		return "(error) " + std::string(reply.str, reply.len);
	case REDIS_REPLY_ARRAY: {
		std::string lines;
		for (size_t i = 0; i < reply.elements; i++)
			lines += (i ? "\n" : "") + text_of(*reply.element[i]);
		return lines;
	}
	default:
		return {reply.str, reply.len};
	}
}

std::shared_ptr<Started> start(const RedisOptions &options)
{
	auto servers = std::make_shared<Started>(options.directory);
	nlohmann::json plan = plan_of("redis", options.tcp, options.config);
	plan["program"] = options.program;
	plan["environment"] = environment_of(options.environment);
	if (options.tcp)
		for (const std::string &word :
		     {std::string("--unixsocket"), servers->directory + "/redis/redis.sock"})
			plan["config"].push_back(word);
	servers->start(plan);
	return servers;
}

} // namespace

std::string newer_server(const std::string &name)
{
	return Started().ask({{"find", name == "valkey-server" ? "valkey" : "redis8"}})["path"];
}

Redis::Redis(const RedisOptions &options)
    : Served(start(options), 0), socket_(directory() + "/redis.sock"),
      connection_(redisConnectUnix(socket_.c_str()))
{
}

Redis::Redis(std::shared_ptr<Started> started, size_t number)
    : Served(std::move(started), number), connection_(redisConnect("127.0.0.1", port()))
{
}

Redis::~Redis()
{
	redisFree(connection_);
}

std::string Redis::command(const std::vector<std::string> &words)
{
	std::vector<const char *> texts;
	std::vector<size_t> sizes;
	for (const auto &word : words) {
		texts.push_back(word.data());
		sizes.push_back(word.size());
	}
	std::unique_ptr<redisReply, void (*)(void *)> reply(
	    static_cast<redisReply *>(
		redisCommandArgv(connection_, static_cast<int>(words.size()), texts.data(), sizes.data())),
	    freeReplyObject);
	if (!reply)
		throw std::runtime_error("redis-server: " + words.at(0) + ": " + connection_->errstr);
	return text_of(*reply);
}

std::string Redis::info(const std::string &name)
{
	const std::string all = "\n" + command({"INFO", "everything"});
	const size_t at = all.find("\n" + name + ":");
	if (at == std::string::npos)
		return "";
	const size_t from = at + name.size() + 2;
	return all.substr(from, all.find_first_of("\r\n", from) - from);
}

} // namespace forktail::test
