// SPDX-License-Identifier: MIT
// A real redis-server for a test; see server.h.
#include "tests/support/server.h"

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <hiredis/hiredis.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

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

} // namespace

int free_port()
{
	sockaddr_in address = {};
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	socklen_t size = sizeof(address);
	const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	auto *any = reinterpret_cast<sockaddr *>(&address);
	const bool bound = fd >= 0 && !bind(fd, any, size) && !getsockname(fd, any, &size);
	if (fd >= 0)
		close(fd);
	if (!bound)
		throw std::runtime_error("no free TCP port on 127.0.0.1");
	return ntohs(address.sin_port);
}

std::string newer_server(const std::string &name)
{
	const char *said = getenv("FORKTAIL_SERVERS");
	std::string path = (said && *said ? said : FORKTAIL_SERVERS) + ("/" + name);
	return access(path.c_str(), X_OK) == 0 ? path : "";
}

Redis::Redis(const RedisOptions &options)
{
	std::string why;
	// A port that was free may be taken by the time the server binds it: try another one.
	for (int attempt = 0; attempt < 5; attempt++)
		if (start(options, why))
			return;
	throw std::runtime_error(options.program + " does not answer: " + why);
}

bool Redis::start(const RedisOptions &options, std::string &why)
{
	port_ = options.tcp ? free_port() : 0;
	std::vector<std::string> argv = {
	    options.program,	   "--dir",  dir_.path(), "--unixsocket", socket(), "--port",
	    std::to_string(port_), "--bind", "127.0.0.1", "--save",	  "",	    "--logfile",
	    dir_.file("log")};
	argv.insert(argv.begin() + 1, options.before.begin(), options.before.end());
	argv.insert(argv.end(), options.config.begin(), options.config.end());
	process_ = std::make_unique<Process>(argv);

	// An error reply (-NOAUTH, -LOADING) is an answer too, but loading has to end first.
	const bool up = eventually(
	    [&] {
		    if (!process_->running())
			    return true;
		    if (!connection_)
			    connection_ = redisConnectUnix(socket().c_str());
		    if (connection_ && connection_->err) {
			    redisFree(connection_);
			    connection_ = nullptr;
		    }
		    return connection_ && command({"PING"}).rfind("(error) LOADING", 0) != 0;
	    },
	    Seconds(30));
	if (up && process_->running())
		return true;
	why = process_->err() + log();
	process_.reset();
	return false;
}

Redis::~Redis()
{
	if (connection_)
		redisFree(connection_);
	if (!process_)
		return;
	process_->signal(SIGCONT); // a test may have stopped it
	process_->signal(SIGTERM);
	process_->wait(Seconds(10));
}

std::string Redis::log() const
{
	return read_file(dir_.file("log"));
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
