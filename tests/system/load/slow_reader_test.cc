// SPDX-License-Identifier: MIT
// A server that answers while it is still reading: the load's next bytes follow those that the kernel has not
// accepted yet, byte by byte, with one server and with several.
#include <optional>

#include "tests/support/catch.h"
#include "tests/system/load/fake.h"
#include "tests/system/load/load.h"

using namespace forktail::test;
using namespace std::chrono_literals;

namespace
{

using Command = std::vector<std::string>;

const size_t VALUE_BYTES = 1000000;

// Commands from a stream of bytes, each word exactly as long as announced.
class CommandReader
{
public:
	void add(const std::string &bytes) { bytes_ += bytes; }
	bool broken() const { return broken_; }
	// The next one, if it has arrived completely.
	std::optional<Command> next()
	{
		size_t at = 0;
		Command words;
		const auto count = number('*', at);
		for (size_t i = 0; count && i < *count; i++) {
			const auto length = number('$', at);
			if (!length || at + *length + 2 > bytes_.size())
				return {};
			broken_ |= bytes_.compare(at + *length, 2, "\r\n") != 0;
			words.push_back(bytes_.substr(at, *length));
			at += *length + 2;
		}
		if (!count || broken_)
			return {};
		bytes_.erase(0, at);
		return words;
	}

private:
	std::optional<size_t> number(char mark, size_t &at)
	{
		const size_t end = bytes_.find("\r\n", at);
		if (at < bytes_.size() && (bytes_[at] != mark || end == at + 1))
			broken_ = true;
		if (broken_ || end == std::string::npos)
			return {};
		const std::string digits = bytes_.substr(at + 1, end - at - 1);
		broken_ = digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos;
		at = end + 2;
		return broken_ ? std::optional<size_t>() : std::stoul(digits);
	}

	std::string bytes_;
	bool broken_ = false;
};

// A replica's primary, or a whole cluster, that takes a while for each 64 KB.
class SlowReader
{
public:
	std::atomic<int> sets = 0, waits = 0, odd = 0;

	SlowReader() : server_([this](Peer &peer) { talk(peer); }, false) {}
	std::string port() const { return server_.where().at(1); }

private:
	void talk(Peer &peer)
	{
		CommandReader reader;
		for (std::string bytes; !(bytes = peer.hear()).empty();) {
			reader.add(bytes);
			while (const auto command = reader.next())
				if (!peer.say(answer(*command)))
					return;
			if (reader.broken()) {
				odd++;
				return;
			}
			std::this_thread::sleep_for(2ms);
		}
	}
	std::string answer(const Command &c)
	{
		if (c[0] == "SET") {
			const bool whole = c.size() == 3 && c[2].size() == VALUE_BYTES;
			(whole ? sets : odd)++;
			return "+OK\r\n";
		}
		if (c[0] == "WAIT") {
			waits++;
			return ":1\r\n";
		}
		if (c[0] == "COMMAND")
			return "*1\r\n*6\r\n$3\r\nset\r\n:-3\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1\r\n";
		if (c[0] == "CLUSTER")
			return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + port() + "\r\n";
		return c[0] == "PING" ? "+PONG\r\n" : c[0] == "INFO" ? "$0\r\n\r\n" : "+OK\r\n";
	}

	FakeServer server_;
};

} // namespace

TEST_CASE("a following write comes after the data that the server has not read yet")
{
	for (const bool cluster : {false, true}) {
		INFO(cluster);
		SlowReader reader;
		TempDir dir;
		Arguments all = {"-p",	   reader.port(),
				 "-q",	   "--no-observer",
				 "-t",	   "set",
				 "-c",	   "2",
				 "-P",	   "4",
				 "-d",	   "1000000",
				 "-n",	   "16",
				 "--wait", "1,30s",
				 "-o",	   dir.file("log")};
		if (cluster)
			all.emplace_back("--cluster");
		const Result r = load(all);
		INFO(r.err);
		CHECK(r.status == 0);
		CHECK(reader.odd == 0);
		CHECK(reader.sets == 16);
		CHECK(reader.waits == 16);
		CHECK(read_log(dir.file("log")).with_status(FT_STATUS_OK) == 16);
	}
}
