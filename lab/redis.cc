// SPDX-License-Identifier: MIT
// Starting redis-server and talking to it; see redis.h.
#include "lab/redis.h"

#include <cstdlib>
#include <hiredis/hiredis.h>
#include <memory>
#include <sstream>
#include <sys/un.h>

#include "recording/recording.h"

namespace forktail
{
namespace
{

constexpr double kStartSeconds = 20;
constexpr double kReplySeconds = 20; // a fork or a stuck fsync takes its time
constexpr size_t kSocketPathLimit = sizeof(sockaddr_un::sun_path) - 1;

struct FreeReply {
	void operator()(redisReply *reply) const { freeReplyObject(reply); }
};

std::string TextOf(const redisReply &reply)
{
	if (reply.type == REDIS_REPLY_INTEGER)
		return std::to_string(reply.integer);
	return reply.str ? std::string(reply.str, reply.len) : "";
}

// False, and in *error why. A connection breaks because its server ended, so that is looked at first.
bool Broken(Session *session, const Redis &redis, std::string *error)
{
	if (Step(session, 100, error) && Step(session, 100, error))
		*error = "lost the connection to redis-server: " + std::string(redis.connection->errstr);
	return false;
}

bool TooLong(uint64_t since_ns, double seconds)
{
	return ft_now_ns() - since_ns > static_cast<uint64_t>(seconds * 1e9);
}

std::string Late(const std::string &what, double seconds)
{
	return "redis-server " + what + " within " + std::to_string(static_cast<int>(seconds)) + " s";
}

bool Connect(Session *session, Redis *redis, std::string *error)
{
	uint64_t start_ns = ft_now_ns();
	for (;;) {
		if (!Step(session, 10, error))
			return false;
		redis->connection = redisConnectUnixNonBlock(redis->socket.c_str());
		if (!redis->connection) {
			*error = "out of memory";
			return false;
		}
		if (!redis->connection->err)
			return true;
		redisFree(redis->connection);
		redis->connection = nullptr;
		if (TooLong(start_ns, kStartSeconds)) {
			*error = Late("did not listen on its socket", kStartSeconds);
			return false;
		}
	}
}

} // namespace

Redis::~Redis()
{
	if (connection)
		redisFree(connection);
}

bool StartRedis(Session *session, const std::string &directory, const std::string &log,
		const std::vector<std::string> &config, Redis *redis, std::string *error)
{
	redis->directory = directory;
	redis->socket = directory + "/redis.sock";
	if (redis->socket.size() > kSocketPathLimit) {
		*error = "the path of the temporary directory is too long for a Unix socket (" +
			 redis->socket + "): set TMPDIR to a shorter one";
		return false;
	}
	Command command;
	command.name = "redis-server";
	command.argv = {"redis-server", "--port", "0", "--unixsocket", redis->socket, "--dir", directory};
	command.argv.insert(command.argv.end(), config.begin(), config.end());
	command.output = log;
	redis->child = Start(session, command, error);
	if (!redis->child)
		return false;
	redis->child->needed = true;
	std::vector<std::string> pong;
	return Connect(session, redis, error) && Ask(session, redis, {"PING"}, &pong, error);
}

bool Ask(Session *session, Redis *redis, const std::vector<std::string> &words,
	 std::vector<std::string> *reply, std::string *error)
{
	std::vector<const char *> argv;
	std::vector<size_t> sizes;
	for (const std::string &word : words) {
		argv.push_back(word.c_str());
		sizes.push_back(word.size());
	}
	redisContext *connection = redis->connection;
	redisAppendCommandArgv(connection, static_cast<int>(argv.size()), argv.data(), sizes.data());
	for (int done = 0; !done;)
		if (redisBufferWrite(connection, &done) != REDIS_OK)
			return Broken(session, *redis, error);

	// A blocking connection would be deaf to signals and to the server's end, so Step does the waiting.
	uint64_t start_ns = ft_now_ns();
	void *raw = nullptr;
	while (!raw) {
		if (!Step(session, 100, error, connection->fd))
			return false;
		if (TooLong(start_ns, kReplySeconds)) {
			*error = Late("did not answer " + words[0], kReplySeconds);
			return false;
		}
		if (redisBufferRead(connection) != REDIS_OK ||
		    redisGetReplyFromReader(connection, &raw) != REDIS_OK)
			return Broken(session, *redis, error);
	}
	std::unique_ptr<redisReply, FreeReply> answer(static_cast<redisReply *>(raw));
	reply->clear();
	if (answer->type == REDIS_REPLY_ERROR) {
		*error = "redis-server refused " + words[0] + ": " + std::string(answer->str, answer->len);
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

} // namespace forktail
