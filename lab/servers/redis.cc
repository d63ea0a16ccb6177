// SPDX-License-Identifier: MIT
// Over hiredis, whose socket is waited for in Step: a server stuck in a fork must not make the lab deaf.
#include "redis.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <hiredis/hiredis.h>
#include <memory>
#include <sstream>

#include "recording/recording.h"

namespace forktail::lab
{
namespace
{

struct FreeReply {
	void operator()(redisReply *reply) const { freeReplyObject(reply); }
};

std::string TextOf(const redisReply &reply)
{
	if (reply.type == REDIS_REPLY_INTEGER)
		return std::to_string(reply.integer);
	return reply.str ? std::string(reply.str, reply.len) : "";
}

bool Connect(Redis *redis, std::string *error)
{
	int fd = ConnectTo(*redis);
	redis->connection = fd < 0 ? nullptr : redisConnectFd(fd);
	if (!redis->connection) {
		*error = "cannot connect to " + redis->child->command.name + ": " + std::strerror(errno);
		return false;
	}
	redis->connection->flags &= ~REDIS_BLOCK; // nor does the descriptor
	return true;
}

void Disconnect(Redis *redis)
{
	if (redis->connection)
		redisFree(redis->connection);
	redis->connection = nullptr;
}

using Reply = std::unique_ptr<redisReply, FreeReply>;
enum class Outcome { kReply, kBroken, kFailed };

Outcome Exchange(Session *session, Redis *redis, const std::vector<std::string> &words, Reply *reply,
		 std::string *error)
{
	std::vector<const char *> argv;
	std::vector<size_t> sizes;
	for (const std::string &word : words) {
		argv.push_back(word.c_str());
		sizes.push_back(word.size());
	}
	if (!redis->connection && !Connect(redis, error))
		return Outcome::kFailed;
	redisContext *connection = redis->connection;
	redisAppendCommandArgv(connection, static_cast<int>(argv.size()), argv.data(), sizes.data());
	for (int done = 0; !done;)
		if (redisBufferWrite(connection, &done) != REDIS_OK)
			return Outcome::kBroken;

	// A blocking connection would be deaf to signals and to the server's end, so Step does the waiting.
	uint64_t limit_ns = ft_now_ns() + static_cast<uint64_t>(redis->patience_seconds * 1e9);
	void *raw = nullptr;
	while (!raw) {
		if (!Step(session, 100, error, connection->fd))
			return Outcome::kFailed;
		if (ft_now_ns() > limit_ns) {
			*error = redis->child->command.name + " did not answer " + words[0] + " within " +
				 std::to_string(static_cast<int>(redis->patience_seconds)) + " s";
			Disconnect(redis); // or its answer would be taken for the next command's
			return Outcome::kFailed;
		}
		if (redisBufferRead(connection) != REDIS_OK ||
		    redisGetReplyFromReader(connection, &raw) != REDIS_OK)
			return Outcome::kBroken;
	}
	reply->reset(static_cast<redisReply *>(raw));
	return Outcome::kReply;
}

// The same over a new connection if the server has closed this one, as each does whose role a Sentinel
// changes.
bool ExchangeAgain(Session *session, Redis *redis, const std::vector<std::string> &words, Reply *reply,
		   std::string *error)
{
	Outcome outcome = Exchange(session, redis, words, reply, error);
	if (outcome == Outcome::kBroken) {
		// It may have closed it because it ends.
		if (!Step(session, 100, error) || !Step(session, 100, error))
			return false;
		Disconnect(redis);
		outcome = Exchange(session, redis, words, reply, error);
	}
	if (outcome == Outcome::kBroken)
		*error =
		    "lost the connection to " + redis->child->command.name + ": " + redis->connection->errstr;
	return outcome == Outcome::kReply;
}

} // namespace

Redis::~Redis()
{
	Disconnect(this);
}

bool StartRedis(Session *session, const RedisOptions &options, Redis *redis, std::string *error)
{
	auto command = [&options](const Endpoint &endpoint) {
		Command start = options.command;
		if (!options.file.empty())
			start.argv.push_back(options.file);
		start.argv.insert(start.argv.end(),
				  {"--dir", options.directory, "--port", std::to_string(endpoint.port)});
		if (endpoint.port)
			start.argv.insert(start.argv.end(), {"--bind", "127.0.0.1"});
		else
			start.argv.insert(start.argv.end(), {"--unixsocket", endpoint.socket});
		start.argv.insert(start.argv.end(), options.config.begin(), options.config.end());
		return start;
	};
	if (!StartListening(session, options.tcp ? "" : options.directory + "/redis.sock", command,
			    options.patience_seconds, redis, &redis->child, error))
		return false;
	redis->patience_seconds = options.patience_seconds;
	auto answers = [&](bool *yes, std::string *why) {
		Reply pong;
		if (!ExchangeAgain(session, redis, {"PING"}, &pong, why))
			return false;
		// An error is an answer too (NOAUTH), but for that of a server that reads its data.
		*yes = pong->type != REDIS_REPLY_ERROR || TextOf(*pong).rfind("LOADING", 0) != 0;
		return true;
	};
	return Await(session, options.patience_seconds,
		     redis->child->command.name + " is still loading its data", answers, error);
}

bool Ask(Session *session, Redis *redis, const std::vector<std::string> &words,
	 std::vector<std::string> *reply, std::string *error)
{
	Reply answer;
	if (!ExchangeAgain(session, redis, words, &answer, error))
		return false;
	reply->clear();
	if (answer->type == REDIS_REPLY_ERROR) {
		*error = redis->child->command.name + " refused " + words[0] + ": " +
			 std::string(answer->str, answer->len);
		return false;
	}
	if (answer->type == REDIS_REPLY_ARRAY)
		for (size_t i = 0; i < answer->elements; i++)
			reply->push_back(TextOf(*answer->element[i]));
	else
		reply->push_back(TextOf(*answer));
	return true;
}

bool ReadInfo(Session *session, Redis *redis, RedisInfo *info, std::string *error)
{
	std::vector<std::string> reply;
	if (!Ask(session, redis, {"INFO"}, &reply, error))
		return false;
	info->clear();
	std::istringstream lines(reply[0]);
	for (std::string line; std::getline(lines, line);) {
		size_t colon = line.find(':');
		if (line.empty() || line[0] == '#' || colon == std::string::npos)
			continue;
		size_t end = line.find_last_not_of('\r');
		(*info)[line.substr(0, colon)] = line.substr(colon + 1, end - colon);
	}
	return true;
}

uint64_t Number(const RedisInfo &info, const std::string &name)
{
	auto found = info.find(name);
	return found == info.end() ? 0 : strtoull(found->second.c_str(), nullptr, 10);
}

} // namespace forktail::lab
