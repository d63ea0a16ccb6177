// SPDX-License-Identifier: MIT
// The serving thread of each connection, from records of epoll instances and sockets made by hand.
#include "analysis/timeline.h"
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

constexpr uint32_t kOne = 101, kTwo = 102, kProcess = 100;
constexpr uint32_t kGone = static_cast<uint32_t>(FT_SOCKET_GONE);

// A process with two workers, each with an epoll instance: 7 and 9.
struct Workers : RunBuilder {
	Workers()
	{
		Thread(kProcess, 0, 100 * ms);
		Thread(kOne, 0, 100 * ms, 0, "mc-worker", kProcess);
		Thread(kTwo, 0, 100 * ms, 0, "mc-worker", kProcess);
		run.servers = {"127.0.0.1:11211"};
		run.connections.clear();
		Waits(kOne, 7, 1 * ms);
		Waits(kTwo, 9, 1 * ms);
	}
	void Waits(uint32_t tid, uint32_t epoll, uint64_t at)
	{
		run.loops.push_back({kBase + at, tid, kProcess, epoll, 0});
	}
	void Seen(uint64_t inode, uint32_t epoll, uint64_t before, uint64_t at, uint32_t peer_port,
		  uint64_t peer_inode = 0, uint32_t local_port = 11211)
	{
		run.sockets.push_back({before ? kBase + before : 0, kBase + at, inode, peer_inode, kProcess,
				       epoll, peer_port ? local_port : 0, peer_port, 0, 0});
	}
	void Reads(uint64_t inode, uint32_t tid, uint64_t at, uint32_t peer_port, uint64_t peer_inode = 0)
	{
		Seen(inode, 0, at, at, peer_port, peer_inode);
		run.sockets.back().reader = tid;
	}
	void Closes(uint64_t inode, uint32_t tid, uint64_t at, uint32_t peer_port)
	{
		Seen(inode, kGone, at, at, peer_port);
		run.sockets.back().reader = tid;
	}
	void Connect(uint32_t port, uint64_t opened, uint64_t closed = 0, uint64_t inode = 0)
	{
		forktail::analysis::Connection c;
		c.opened_ns = kBase + opened;
		c.closed_ns = closed ? kBase + closed : 0;
		c.local_port = port;
		c.inode = inode;
		run.connections.push_back(c);
	}
	// The thread of a connection at an instant. 0: unknown.
	uint32_t At(const ServedConnections &served, size_t connection, uint64_t at)
	{
		uint32_t thread = ThreadAt(served.at(connection), kBase + at);
		return thread == kNoThread ? 0 : run.threads.at(thread).tid;
	}
};

} // namespace

TEST_CASE("A connection belongs to the thread that waits for its socket's epoll instance")
{
	Workers w;
	w.Seen(500, 7, 0, 2 * ms, 40001);
	w.Seen(501, 9, 0, 2 * ms, 40002);
	w.Seen(502, 9, 20 * ms, 22 * ms, 40003); // opened later
	for (uint32_t port : {40001u, 40002u})
		w.Connect(port, 0);
	w.Connect(40003, 21 * ms);
	w.Connect(40004, 21 * ms); // not seen yet
	w.Finish();
	ServedConnections served = FindServed(w.run);
	CHECK(w.At(served, 0, 0) == kOne);
	CHECK(w.At(served, 0, 99 * ms) == kOne);
	CHECK(w.At(served, 1, 50 * ms) == kTwo);
	CHECK(w.At(served, 2, 21 * ms) == kTwo); // before it was seen: a new socket was in no other instance
	CHECK(served[3].empty());
}

TEST_CASE("A connection belongs to the thread that reads it")
{
	Workers w;
	w.Reads(500, kOne, 10 * ms, 40001);
	w.Reads(500, kTwo, 30 * ms, 40001);
	w.Reads(600, kTwo, 60 * ms, 40001); // another connection at the same port
	w.Reads(501, kOne, 12 * ms, 40002, 0);
	w.Reads(700, kTwo, 15 * ms, 0, 901);
	w.Connect(40001, 1 * ms, 50 * ms);
	w.Connect(40001, 55 * ms);
	w.Connect(40002, 11'000 * ms); // the read was an earlier connection's
	w.Connect(0, 0, 0, 901);
	w.Finish();
	ServedConnections served = FindServed(w.run);
	CHECK(w.At(served, 0, 2 * ms) == kOne); // before its first read
	CHECK(w.At(served, 0, 29 * ms) == kOne);
	CHECK(w.At(served, 0, 31 * ms) == kTwo);
	CHECK(w.At(served, 0, 51 * ms) == 0);
	CHECK(w.At(served, 1, 56 * ms) == kTwo);
	CHECK(served[2].empty());
	CHECK(w.At(served, 3, 90 * ms) == kTwo);
}

TEST_CASE("A connection of which no read was seen belongs to the thread that closed it, if readers close")
{
	// Of one connection a read and the close were seen: by the same thread, or another one closes all.
	for (const uint32_t reader : {kOne, kTwo}) {
		Workers w;
		w.Reads(500, reader, 10 * ms, 40001);
		w.Closes(500, kOne, 20 * ms, 40001);
		w.Closes(501, kOne, 51 * ms, 40002); // the server notices it after the client
		w.Closes(502, kTwo, 40 * ms, 40003); // an earlier connection's
		w.Closes(503, kTwo, 90 * ms, 40003);
		w.Connect(40001, 0, 20 * ms);
		w.Connect(40002, 30 * ms, 50 * ms);
		w.Connect(40003, 45 * ms);
		w.Connect(40002, 52 * ms); // still open
		w.Finish();
		const ServedConnections served = FindServed(w.run);
		CHECK(w.At(served, 0, 15 * ms) == reader);
		CHECK(w.At(served, 1, 31 * ms) == (reader == kOne ? kOne : 0));
		CHECK(w.At(served, 2, 50 * ms) == (reader == kOne ? kTwo : 0));
		CHECK(served[3].empty());
	}
}

TEST_CASE("A connection that threads read in turn all the time belongs to none")
{
	for (const uint64_t changes : {32u, 33u}) {
		Workers w;
		for (uint64_t i = 0; i < changes; i++)
			w.Reads(500, i % 2 ? kTwo : kOne, (10 + i) * ms, 40001);
		w.Connect(40001, 0);
		w.Finish();
		CHECK(FindServed(w.run)[0].empty() == (changes == 33)); // later ones were not recorded
	}
}

TEST_CASE("Reads of a connection's set-up come before the load generator notes its opening")
{
	Workers w;
	w.Reads(500, kOne, 10 * ms, 40001);
	w.Reads(700, kTwo, 15 * ms, 0, 901);
	w.Connect(40001, 20 * ms, 30 * ms);
	w.Connect(40001, 40 * ms); // not read: the socket was the other one's
	w.Connect(0, 20 * ms, 0, 901);
	w.Finish();
	ServedConnections served = FindServed(w.run);
	CHECK(w.At(served, 0, 25 * ms) == kOne);
	CHECK(served[1].empty());
	CHECK(w.At(served, 2, 25 * ms) == kTwo);
}

TEST_CASE("Unix sockets are identified by the inode of their other end")
{
	Workers w;
	w.run.servers = {"unix:/run/mc.sock"};
	w.Seen(500, 7, 0, 2 * ms, 0, 900);
	w.Seen(501, 9, 0, 2 * ms, 0, 901);
	w.Connect(0, 0, 0, 901);
	w.Connect(0, 0, 0, 0); // a log without inodes
	w.Finish();
	ServedConnections served = FindServed(w.run);
	CHECK(w.At(served, 0, 50 * ms) == kTwo);
	CHECK(served[1].empty());
}

TEST_CASE("A connection that moves is unassigned between the two readings")
{
	Workers w;
	w.Seen(500, 7, 0, 2 * ms, 40001);
	w.Seen(500, 9, 30 * ms, 40 * ms, 40001);
	w.Connect(40001, 0);
	w.Finish();
	ServedConnections served = FindServed(w.run);
	CHECK(w.At(served, 0, 29 * ms) == kOne);
	CHECK(w.At(served, 0, 35 * ms) == 0);
	CHECK(w.At(served, 0, 41 * ms) == kTwo);
}

TEST_CASE("A reused port is a different connection")
{
	Workers w;
	w.Seen(500, 7, 0, 2 * ms, 40001);
	w.Seen(500, kGone, 30 * ms, 40 * ms, 40001);
	w.Seen(600, 9, 50 * ms, 60 * ms, 40001);
	w.Connect(40001, 0, 35 * ms);
	w.Connect(40001, 55 * ms);
	w.Finish();
	ServedConnections served = FindServed(w.run);
	CHECK(w.At(served, 0, 20 * ms) == kOne);
	CHECK(w.At(served, 1, 58 * ms) == kTwo);
}

TEST_CASE("A reopened connection belongs to each socket's thread from one opening to the next")
{
	Workers w;
	w.Seen(500, 7, 0, 2 * ms, 40001);
	w.Seen(500, kGone, 30 * ms, 40 * ms, 40001); // readings are 10 ms apart: it was closed at 35 ms
	w.Seen(600, 9, 30 * ms, 40 * ms, 40002);
	w.Connect(40002, 36 * ms);
	forktail::analysis::Connection before;
	before.opened_ns = kBase;
	before.closed_ns = kBase + 35 * ms;
	before.local_port = 40001;
	w.run.connections[0].earlier = {before};
	w.Finish();
	ServedConnections served = FindServed(w.run);
	CHECK(w.At(served, 0, 32 * ms) == kOne); // maybe the new socket, by the readings alone
	CHECK(w.At(served, 0, 37 * ms) == kTwo); // and the old one still
	CHECK(served[0].size() == 2);
	CHECK(served[0][0].to_ns <= served[0][1].from_ns);
}

TEST_CASE("The same client port on another server is a different connection")
{
	Workers w;
	w.Seen(500, 7, 0, 2 * ms, 40001, 0, 6379);
	w.Connect(40001, 0);
	w.Finish();
	CHECK(FindServed(w.run)[0].empty());
}

TEST_CASE("An epoll instance that several threads wait for names no thread")
{
	Workers w;
	w.Waits(kTwo, 7, 2 * ms);
	w.Seen(500, 7, 0, 2 * ms, 40001);
	w.Connect(40001, 0);
	w.Finish();
	CHECK(FindServed(w.run)[0].empty());
}

TEST_CASE("A descriptor that another thread takes over after the first one's end still serves")
{
	Workers w;
	w.run.threads[1].end_ns = kBase + 40 * ms;
	w.run.threads[1].flags |= FT_THREAD_ENDED;
	w.Thread(103, 45 * ms, 100 * ms, 0, "mc-worker", kProcess);
	w.Waits(103, 7, 50 * ms);
	w.Seen(500, 7, 0, 2 * ms, 40001);
	w.Connect(40001, 0);
	w.Finish();
	ServedConnections served = FindServed(w.run);
	CHECK(w.At(served, 0, 30 * ms) == kOne);
	CHECK(w.At(served, 0, 42 * ms) == 0);
	CHECK(w.At(served, 0, 60 * ms) == 103);
}

TEST_CASE("A reopened connection is searched by each of its sockets")
{
	Workers w;
	w.Seen(500, 7, 0, 2 * ms, 40001);
	w.Seen(500, kGone, 2 * ms, 30 * ms, 40001);
	w.Seen(501, 9, 20 * ms, 22 * ms, 40002);
	w.Seen(502, 7, 60 * ms, 62 * ms, 40003);
	w.Connect(40001, 0, 21 * ms); // the recorder noticed its end later
	forktail::analysis::Connection first = w.run.connections[0];
	w.run.connections.clear();
	w.Connect(40002, 21 * ms, 40 * ms);
	forktail::analysis::Connection second = w.run.connections[0];
	w.run.connections.clear();
	w.Connect(40003, 61 * ms);
	w.run.connections[0].earlier = {first, second};
	w.Finish();
	ServedConnections served = FindServed(w.run);
	CHECK(w.At(served, 0, 5 * ms) == kOne);
	CHECK(w.At(served, 0, 21 * ms) == kTwo);
	CHECK(w.At(served, 0, 39 * ms) == kTwo);
	CHECK(w.At(served, 0, 50 * ms) == 0); // it was closed
	CHECK(w.At(served, 0, 70 * ms) == kOne);
}
