// SPDX-License-Identifier: MIT
// The commands that a Redis server received, in order: MONITOR on a separate connection, read by a thread so
// that the server never has to buffer much of it.
#pragma once
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/system/load/load.h"

namespace forktail::test
{

struct Seen {
	std::string client; // "unix:/path" or "127.0.0.1:1234"
	std::vector<std::string> words;
};

class Monitor
{
public:
	explicit Monitor(Redis &redis) : redis_(redis)
	{
		sockaddr_un address = {};
		address.sun_family = AF_UNIX;
		strncpy(address.sun_path, redis.socket().c_str(), sizeof(address.sun_path) - 1);
		fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(fd_, reinterpret_cast<sockaddr *>(&address), sizeof(address)) != 0 ||
		    write(fd_, "MONITOR\r\n", 9) != 9 || !receive() || text_.rfind("+OK\r\n", 0) != 0)
			throw std::runtime_error("MONITOR cannot be started");
		reader_ = std::thread([this] {
			size_t from = 0; // the mark is searched in the new text and one line before it
			while (text_.find(kEnd, from) == std::string::npos) {
				from = text_.size() > 100 ? text_.size() - 100 : 0;
				if (!receive())
					return;
			}
		});
	}
	~Monitor()
	{
		shutdown(fd_, SHUT_RDWR);
		if (reader_.joinable())
			reader_.join();
		close(fd_);
	}
	Monitor(const Monitor &) = delete;
	Monitor &operator=(const Monitor &) = delete;

	// All commands so far whose first word is one of `verbs`. Call it once.
	std::vector<Seen> commands(const std::vector<std::string> &verbs)
	{
		redis_.command({"ECHO", kEnd});
		reader_.join();
		std::vector<Seen> all;
		size_t at = text_.find("\r\n") + 2;
		while (at < text_.size()) {
			const size_t end = text_.find("\r\n", at);
			Seen s = parse(text_.substr(at, end - at));
			if (!s.words.empty() &&
			    std::find(verbs.begin(), verbs.end(), s.words[0]) != verbs.end())
				all.push_back(std::move(s));
			at = end + 2;
		}
		return all;
	}

private:
	static constexpr const char *kEnd = "end of what is monitored";

	bool receive()
	{
		char buffer[65536];
		const ssize_t n = read(fd_, buffer, sizeof(buffer));
		if (n > 0)
			text_.append(buffer, static_cast<size_t>(n));
		return n > 0;
	}

	// +1339518083.107412 [0 unix:/tmp/redis.sock] "SET" "a \"b\" \x00"
	static Seen parse(const std::string &line)
	{
		Seen s;
		const size_t open = line.find("[0 "), close = line.find("] \"");
		if (open == std::string::npos || close == std::string::npos)
			return s;
		s.client = line.substr(open + 3, close - open - 3);
		for (size_t i = close + 2; i < line.size(); i++) {
			if (line[i] != '"')
				continue;
			std::string word;
			for (i++; line[i] != '"'; i++)
				word += line[i] == '\\' ? unescape(line, i) : line[i];
			s.words.push_back(word);
		}
		return s;
	}
	static char unescape(const std::string &line, size_t &i)
	{
		const char c = line[++i];
		if (c == 'x') {
			i += 2;
			return static_cast<char>(std::stoi(line.substr(i - 1, 2), nullptr, 16));
		}
		return c == 'n'	  ? '\n'
		       : c == 'r' ? '\r'
		       : c == 't' ? '\t'
		       : c == 'a' ? '\a'
		       : c == 'b' ? '\b'
				  : c;
	}

	Redis &redis_;
	int fd_ = -1;
	std::string text_;
	std::thread reader_;
};

// How often the server has run a command.
inline uint64_t calls(Redis &redis, const std::string &command)
{
	const std::string stats = redis.info("cmdstat_" + command);
	return stats.empty() ? 0 : std::stoull(stats.substr(stats.find('=') + 1));
}

// Runs without observer, with exit status `status`. Returns its figures, a run per test.
struct Ran {
	TempDir dir;
	Result result;
	Json runs;

	explicit Ran(Arguments arguments, int status = 0)
	{
		arguments.insert(arguments.end(), {"-q", "--no-observer", "--json", dir.file("json")});
		result = load(arguments);
		INFO(result.err);
		REQUIRE(result.status == status);
		runs = parse_json(read_file(dir.file("json")))["runs"];
	}
	const Json &total(size_t run = 0) const { return runs[run]["total"]; }
	uint64_t requests(const std::string &operation, size_t run = 0) const
	{
		return runs[run]["operations"][operation]["requests"];
	}
};

} // namespace forktail::test
