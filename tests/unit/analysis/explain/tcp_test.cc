// SPDX-License-Identifier: MIT
// What TCP did while requests waited: only on their own connections, only in their time, and never more than
// their time on the network.
#include "tests/support/catch.h"
#include "tests/unit/analysis/run_builder.h"

#include "analysis/evidence.h"

using namespace forktail::analysis;
using namespace forktail::test;

namespace
{

constexpr uint16_t kPort = 6379, kClient = 40001, kOther = 40002;

// A server that is idle for a second. Requests of 400 ms that fall due in it are on the network.
struct IdleSecond {
	RunBuilder b;

	IdleSecond()
	{
		b.Thread(kServer, 0, 1000 * ms);
		b.Off(FT_IDLE, 0, 1000 * ms, 1000 * ms);
		b.run.servers = {"10.0.0.1:6379"};
		b.Request(100 * ms, 110 * ms, 500 * ms, 1);
		b.run.connections[1].local_port = kClient;
	}
	void Event(ft_tcp_what what, uint64_t t, uint16_t local, uint16_t peer, const char *reason = "")
	{
		ft_tcp_event e = {};
		e.t_ns = kBase + t;
		e.what = static_cast<uint8_t>(what);
		e.ends.local_port = local;
		e.ends.peer_port = peer;
		snprintf(e.reason, sizeof e.reason, "%s", reason);
		b.run.tcp_events.push_back(e);
	}
	ft_tcp_state &State(uint64_t before, uint64_t t, uint16_t local = kPort, uint16_t peer = kClient)
	{
		ft_tcp_state s = {};
		s.t_ns = kBase + t;
		s.before_ns = kBase + before;
		s.ends.local_port = local;
		s.ends.peer_port = peer;
		s.state = 1;
		s.window_bytes = 65'536;
		s.congestion_window = 10;
		s.segment_bytes = 1448;
		b.run.tcp_states.push_back(s);
		return b.run.tcp_states.back();
	}
	// Three bytes wait behind one segment.
	void Nagle(uint64_t t)
	{
		ft_tcp_state &s = State(t - 100 * ms, t);
		s.unsent_bytes = 3;
		s.unacked = 1;
		s.sent_ms = 24;
	}
	TcpFacts Facts()
	{
		b.Finish();
		Blame blame = b.Blame();
		std::vector<Episode> episodes = FindEpisodes(&blame);
		return FindTcp(b.run, blame, &episodes);
	}
};

} // namespace

TEST_CASE("the time until a segment was sent again explains the network")
{
	IdleSecond run;
	run.Event(FT_TCP_DROPPED, 111 * ms, kClient, kPort, "QDISC_DROP");
	run.Event(FT_TCP_RETRANSMITTED, 313 * ms, kClient, kPort);
	run.Event(FT_TCP_RETRANSMITTED, 460 * ms, kPort, kClient);
	const TcpFacts facts = run.Facts();
	CHECK(facts.network_ns == 400 * ms - 10 * ms);
	CHECK(facts.retransmitted == 2);
	CHECK(facts.first_after_ns == 203 * ms);
	CHECK(facts.retransmission_ns == 360 * ms);
	CHECK(
	    TcpText(facts, run.b.run) ==
	    "2 segments were retransmitted, the first after 203 ms; this host dropped 1 packet (QDISC_DROP)");
}

TEST_CASE("other connections and other times explain nothing")
{
	IdleSecond run;
	run.Event(FT_TCP_RETRANSMITTED, 313 * ms, kOther, kPort);
	run.Event(FT_TCP_RETRANSMITTED, 313 * ms, kClient, kPort + 1);
	run.Event(FT_TCP_RETRANSMITTED, 50 * ms, kClient, kPort);
	run.Event(FT_TCP_RETRANSMITTED, 501 * ms, kClient, kPort);
	const TcpFacts facts = run.Facts();
	CHECK(!facts.any());
	CHECK(TcpText(facts, run.b.run).empty());
}

TEST_CASE("a full window is the reader's, and only for as long as it was full")
{
	IdleSecond run;
	run.State(80 * ms, 480 * ms).receiver_limited_us = 250'000;
	const TcpFacts facts = run.Facts();
	CHECK(facts.client_window_ns == 230 * ms); // 20 ms of the look are before the request
	CHECK(facts.server_window_ns == 0);
	CHECK(
	    TcpText(facts, run.b.run) ==
	    "the client's receive window was full for 230 ms of the requests' time: the client did not read");
}

TEST_CASE("unsent bytes behind an unacknowledged segment are Nagle's algorithm")
{
	IdleSecond run;
	run.b.run.targets.push_back({kServer, "proxy", "", {"tcp:6379"}});
	run.Nagle(300 * ms);
	const TcpFacts facts = run.Facts();
	CHECK(facts.nagle_ns == 250 * ms); // no delayed ACK lasts longer
	CHECK(TcpText(facts, run.b.run) ==
	      "replies of proxy (100) waited in the server's kernel for the client's delayed ACK (Nagle's "
	      "algorithm; seen 1 time, up to 24.0 ms)");
}

TEST_CASE("other reasons to hold bytes back are not Nagle's algorithm")
{
	IdleSecond run;
	run.Nagle(300 * ms);
	ft_tcp_state &s = run.b.run.tcp_states.back();
	CHECK(WaitsForDelayedAck(s));
	SECTION("a full congestion window")
	{
		s.congestion_window = 1;
	}
	SECTION("a full receive window")
	{
		s.window_bytes = 1448;
	}
	SECTION("a whole segment")
	{
		s.unsent_bytes = 1448;
	}
	SECTION("a lost segment")
	{
		s.timeouts = 1;
	}
	SECTION("just sent")
	{
		s.sent_ms = 0;
	}
	SECTION("nothing before it")
	{
		s.unacked = 0;
	}
	CHECK(!WaitsForDelayedAck(s));
	CHECK(!run.Facts().any());
}

TEST_CASE("a reset that both ends saw is one")
{
	IdleSecond run;
	run.Event(FT_TCP_RESET_SENT, 300 * ms, kPort, kClient);
	run.Event(FT_TCP_RESET_RECEIVED, 300 * ms + 20 * us, kClient, kPort);
	const TcpFacts facts = run.Facts();
	CHECK(facts.resets_by_server == 1);
	CHECK(facts.resets_by_client == 0);
}
