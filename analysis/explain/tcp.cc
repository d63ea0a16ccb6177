// SPDX-License-Identifier: MIT
// What TCP did with the connections of slow requests: divides their time on the network among segments that
// were sent again, full windows and Nagle's algorithm, as far as the kernel of a recorded host saw it.
//
// A request's connection is found by its two ports. Only what happened there while the request waited counts,
// so that other connections' losses explain nothing.
#include <algorithm>
#include <unordered_map>

#include "analysis/evidence.h"
#include "analysis/run.h"
#include "common/format.h"

namespace forktail::analysis
{

namespace
{

// A receiver delays an acknowledgment by 40 ms at least, and by 200 ms at most, if it has nothing to send.
constexpr uint64_t kLeastDelayedAckNs = 35'000'000, kMostDelayedAckNs = 250'000'000;
// Looks see only a part of short waits: a connection that was seen to wait this often within this time did so
// between two looks too.
constexpr size_t kUsualSightings = 2;
constexpr uint64_t kUsualNs = 5'000'000'000;
// Between two looks at a connection, also where there are very many.
constexpr uint64_t kLongestPauseNs = 20'000'000'000;
// The time since the last segment, in the kernel's ms, from which it is not only on its way.
constexpr uint32_t kQuietMs = 4;
// TCP's first time-out is the round trip and 200 ms or more; it doubles up to two minutes.
constexpr uint64_t kFirstTimeoutNs = 1'000'000'000, kLongestTimeoutNs = 120'000'000'000;
// Events over the limit are recorded by a tick of the recorder.
constexpr uint64_t kTickNs = 500'000'000;
// A reset that one end sent and the other received on the same host is one reset.
constexpr uint64_t kSameResetNs = 1'000'000;

struct History {
	std::vector<const ft_tcp_event *> events;
	std::vector<const ft_tcp_state *> states;
};

uint32_t KeyOf(uint32_t client_port, uint32_t server_port)
{
	return client_port << 16 | (server_port & UINT16_MAX);
}

// By the client's and the server's port. Which of the two ends is the server's is not known, so each record
// is there twice.
class Histories
{
public:
	explicit Histories(const Run &run)
	{
		for (const ft_tcp_event &e : run.tcp_events)
			for (History *h : Both(e.ends))
				h->events.push_back(&e);
		for (const ft_tcp_state &s : run.tcp_states)
			for (History *h : Both(s.ends))
				h->states.push_back(&s);
	}
	// nullptr: nothing is known of it.
	const History *Of(uint32_t client_port, uint32_t server_port) const
	{
		const auto found = all_.find(KeyOf(client_port, server_port));
		return found == all_.end() ? nullptr : &found->second;
	}

private:
	std::array<History *, 2> Both(const ft_tcp_ends &ends)
	{
		return {&all_[KeyOf(ends.local_port, ends.peer_port)],
			&all_[KeyOf(ends.peer_port, ends.local_port)]};
	}
	std::unordered_map<uint32_t, History> all_; // by time
};

// Records of [from_ns, to_ns], by their t_ns.
template <typename T>
std::pair<size_t, size_t> Within(const std::vector<T> &all, uint64_t from_ns, uint64_t to_ns)
{
	const auto first = std::partition_point(all.begin(), all.end(),
						[&](const auto *r) { return r->t_ns < from_ns; }),
		   last = std::partition_point(first, all.end(),
					       [&](const auto *r) { return r->t_ns <= to_ns; });
	return {static_cast<size_t>(first - all.begin()), static_cast<size_t>(last - all.begin())};
}

std::string ReasonOf(const ft_tcp_event &e)
{
	return std::string(e.reason, strnlen(e.reason, sizeof e.reason));
}

uint64_t NetworkNs(const Blame &blame, const SlowRequest &r)
{
	uint64_t ns = 0;
	for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++)
		if (blame.parts[p].cause == Cause::Network)
			ns += blame.parts[p].total_ns();
	return ns;
}

// A slow request whose connection is known.
struct Waiting {
	const SlowRequest &request;
	uint32_t server_port;
	uint64_t left_ns; // of its time on the network: not explained so far
	uint64_t Take(uint64_t ns)
	{
		ns = std::min(ns, left_ns);
		left_ns -= ns;
		return ns;
	}
};

// Adds each event of the episode once, although several requests may have waited for it.
class Counter
{
public:
	explicit Counter(TcpFacts *facts) : facts_(*facts) {}
	void Add(const ft_tcp_event &e, const Waiting &w)
	{
		if (!seen_.insert(&e).second)
			return;
		switch (e.what) {
		case FT_TCP_RETRANSMITTED:
			facts_.retransmitted++;
			if (e.t_ns < first_ns_) {
				first_ns_ = e.t_ns;
				facts_.first_after_ns = e.t_ns - std::min(e.t_ns, w.request.sent_ns);
			}
			connections_.insert(w.request.connection);
			facts_.connections = connections_.size();
			break;
		case FT_TCP_RESET_SENT:
		case FT_TCP_RESET_RECEIVED:
			AddReset(e, w);
			break;
		case FT_TCP_DROPPED:
			facts_.dropped[ReasonOf(e)]++;
			break;
		default:
			break; // of a later version
		}
	}
	void Add(const ft_tcp_state &s, const Waiting &w)
	{
		if (!looked_.insert(&s).second)
			return;
		facts_.nagle_seen++;
		facts_.nagle_longest_ns = std::max(facts_.nagle_longest_ns, s.sent_ms * uint64_t{1'000'000});
		facts_.nagle_at[s.ends.local_port == w.server_port ? w.server_port : 0]++;
	}

private:
	void AddReset(const ft_tcp_event &e, const Waiting &w)
	{
		uint64_t &last_ns = resets_[w.request.connection];
		if (last_ns && e.t_ns - std::min(e.t_ns, last_ns) < kSameResetNs)
			return;
		last_ns = e.t_ns;
		const bool at_server = e.ends.local_port == w.server_port;
		(at_server == (e.what == FT_TCP_RESET_SENT) ? facts_.resets_by_server
							    : facts_.resets_by_client)++;
	}

	TcpFacts &facts_;
	uint64_t first_ns_ = UINT64_MAX; // of the first retransmission
	std::set<const ft_tcp_event *> seen_;
	std::set<const ft_tcp_state *> looked_;
	std::set<uint32_t> connections_;
	std::map<uint32_t, uint64_t> resets_; // by connection: the last one
};

// The time until the last segment was sent again; what follows is its way. How long the first of them had
// been lost is not recorded: at most a usual time-out, unless it is not the first of its kind.
void AddEvents(const History &h, Waiting *w, Counter *counter, TcpFacts *facts)
{
	const auto [first, last] = Within(h.events, w->request.due_ns, w->request.end_ns());
	uint64_t lost_ns = 0, before_ns = 0; // the last retransmission before
	for (size_t i = first; i-- > 0 && !before_ns;)
		if (h.events[i]->what == FT_TCP_RETRANSMITTED)
			before_ns = h.events[i]->t_ns;
	for (size_t i = first; i < last; i++) {
		const ft_tcp_event &e = *h.events[i];
		counter->Add(e, *w);
		if (e.what != FT_TCP_RETRANSMITTED)
			continue;
		const bool again = before_ns && before_ns + kLongestTimeoutNs > e.t_ns;
		lost_ns += std::min(e.t_ns - std::max(before_ns, w->request.due_ns),
				    again ? kLongestTimeoutNs : kFirstTimeoutNs);
		before_ns = e.t_ns;
	}
	facts->retransmission_ns += w->Take(lost_ns);
}

// A look has the time since the look before in which a window was full, not when in it: what is longer than
// the rest of that time was in the request's. `left`: of looks, what no request of the episode took.
void AddFullWindows(const History &h, Waiting *w, std::map<const ft_tcp_state *, uint64_t> *left,
		    TcpFacts *facts)
{
	const SlowRequest &r = w->request;
	const auto [first, last] = Within(h.states, r.due_ns, r.end_ns() + kLongestPauseNs);
	for (size_t i = first; i < last; i++) {
		const ft_tcp_state *s = h.states[i];
		const uint64_t limited_ns = s->receiver_limited_us * uint64_t{1000};
		if (!limited_ns || s->before_ns > r.end_ns())
			continue;
		const uint64_t both_ns = std::min(s->t_ns, r.end_ns()) - std::max(s->before_ns, r.due_ns);
		const uint64_t outside_ns = s->t_ns - s->before_ns - both_ns;
		uint64_t &left_ns = left->insert({s, limited_ns}).first->second;
		const uint64_t ns =
		    w->Take(std::min(left_ns, limited_ns > outside_ns ? limited_ns - outside_ns : 0));
		left_ns -= ns;
		(s->ends.local_port == w->server_port ? facts->client_window_ns : facts->server_window_ns) +=
		    ns;
	}
}

void AddNagle(const History &h, Waiting *w, Counter *counter, TcpFacts *facts)
{
	const SlowRequest &r = w->request;
	auto count = [&](uint64_t from_ns, uint64_t to_ns, bool note) {
		size_t seen = 0;
		const auto [first, last] = Within(h.states, from_ns, to_ns);
		for (size_t i = first; i < last; i++)
			if (WaitsForDelayedAck(*h.states[i])) {
				seen++;
				if (note)
					counter->Add(*h.states[i], *w);
			}
		return seen;
	};
	const size_t seen = count(r.due_ns, r.end_ns(), true);
	const bool usual =
	    w->left_ns >= kLeastDelayedAckNs && w->left_ns <= kMostDelayedAckNs &&
	    count(r.due_ns - std::min(r.due_ns, kUsualNs), r.end_ns() + kUsualNs, false) >= kUsualSightings;
	if (!seen && !usual)
		return;
	if (!seen)
		count(r.due_ns - std::min(r.due_ns, kUsualNs), r.end_ns() + kUsualNs, true);
	facts->nagle_ns += w->Take(std::max<size_t>(seen, 1) * kMostDelayedAckNs);
}

// "python3 (4711)": the only target that listens on the port; "" without one.
std::string ListenerOn(const Run &run, uint32_t port)
{
	std::string name;
	for (const Target &t : run.targets)
		if (std::ranges::find(t.listens, "tcp:" + std::to_string(port)) != t.listens.end()) {
			if (!name.empty())
				return "";
			name = t.comm + " (" + std::to_string(OwnId(run, t.pid)) + ")";
		}
	return name;
}

std::string DroppedText(const TcpFacts &f)
{
	uint64_t count = 0;
	std::string reasons;
	for (const auto &[reason, n] : f.dropped) {
		count += n;
		if (!reason.empty())
			reasons += (reasons.empty() ? "" : ", ") + reason;
	}
	return count ? "this host dropped " + common::Plural(count, "packet", "packets") +
			   (reasons.empty() ? "" : " (" + reasons + ")")
		     : "";
}

std::string RetransmittedText(const TcpFacts &f)
{
	if (!f.retransmitted)
		return "";
	return common::Plural(f.retransmitted, "segment was", "segments were") + " retransmitted" +
	       (f.connections > 1 ? " on " + common::Plural(f.connections, "connection", "connections")
				  : "") +
	       ", the first after " + common::FormatDuration(f.first_after_ns);
}

std::string NagleText(const TcpFacts &f, const Run &run)
{
	if (!f.nagle_seen)
		return "";
	const auto most = std::ranges::max_element(f.nagle_at, {}, [](const auto &p) { return p.second; });
	const std::string at = most->first ? ListenerOn(run, most->first) : "";
	return (most->first
		    ? (at.empty() ? "replies" : "replies of " + at) +
			  " waited in the server's kernel for the client's delayed ACK"
		    : std::string("requests waited in the client's kernel for the server's delayed ACK")) +
	       " (Nagle's algorithm; seen " + common::Plural(f.nagle_seen, "time", "times") + ", up to " +
	       common::FormatDuration(f.nagle_longest_ns) + ")";
}

std::string WindowText(const TcpFacts &f)
{
	if (!f.client_window_ns && !f.server_window_ns)
		return "";
	const bool client = f.client_window_ns >= f.server_window_ns;
	const std::string who = client ? "the client" : "the server";
	return who + "'s receive window was full for " +
	       common::FormatDuration(client ? f.client_window_ns : f.server_window_ns) +
	       " of the requests' time: " + who + " did not read";
}

std::string ResetsText(const TcpFacts &f)
{
	auto text = [](uint64_t count, const char *who) {
		return count ? common::Plural(count, "connection was", "connections were") +
				   " reset by the " + who
			     : "";
	};
	const std::string server = text(f.resets_by_server, "server's host"),
			  client = text(f.resets_by_client, "client's host");
	return server + (server.empty() || client.empty() ? "" : ", ") + client;
}

// Events of [from_ns, to_ns], and of the recorder's tick after it, that were only counted.
uint64_t OnlyCountedIn(const Run &run, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t count = 0;
	for (auto e = std::ranges::lower_bound(run.tcp_events, from_ns, {}, &ft_tcp_event::t_ns);
	     e != run.tcp_events.end() && e->t_ns <= to_ns + kTickNs; ++e)
		if (e->what == FT_TCP_BEYOND_LIMIT)
			count += e->count;
	return count;
}

// One episode's slow requests, [first, end) of blame.slow.
TcpFacts FactsOf(const Run &run, const Blame &blame, const Histories &histories, size_t first, size_t end)
{
	TcpFacts facts;
	Counter own(&facts);
	std::map<const ft_tcp_state *, uint64_t> left;
	uint64_t from_ns = UINT64_MAX, to_ns = 0;
	for (size_t i = first; i < end; i++) {
		const SlowRequest &r = blame.slow[i];
		from_ns = std::min(from_ns, r.due_ns);
		to_ns = std::max(to_ns, r.end_ns());
		Waiting w = {r, 0, NetworkNs(blame, r)};
		facts.network_ns += w.left_ns;
		if (r.connection >= run.connections.size())
			continue;
		const Connection &c = run.connections[r.connection];
		w.server_port = c.server < run.servers.size() ? PortOf(run.servers[c.server]) : 0;
		const History *h =
		    c.local_port && w.server_port ? histories.Of(c.local_port, w.server_port) : nullptr;
		if (!h)
			continue;
		AddFullWindows(*h, &w, &left, &facts); // counted by the kernel, so first
		AddEvents(*h, &w, &own, &facts);
		AddNagle(*h, &w, &own, &facts);
	}
	facts.only_counted = OnlyCountedIn(run, from_ns, to_ns);
	return facts;
}

} // namespace

bool WaitsForDelayedAck(const ft_tcp_state &s)
{
	constexpr uint8_t established = 1, close_wait = 8;
	const uint64_t window =
	    s.window_bytes == static_cast<uint32_t>(FT_TCP_UNKNOWN_WINDOW) ? UINT64_MAX : s.window_bytes;
	return (s.state == established || s.state == close_wait) && s.ca_state == 0 && !s.timeouts &&
	       !s.probes && s.unsent_bytes && s.unacked && s.unsent_bytes < s.segment_bytes &&
	       s.unacked < s.congestion_window &&
	       uint64_t{s.unacked} * s.segment_bytes + s.unsent_bytes <= window && s.sent_ms >= kQuietMs;
}

void TcpFacts::Add(const TcpFacts &other)
{
	if (!retransmitted && other.retransmitted)
		first_after_ns = other.first_after_ns;
	network_ns += other.network_ns;
	retransmission_ns += other.retransmission_ns;
	client_window_ns += other.client_window_ns;
	server_window_ns += other.server_window_ns;
	nagle_ns += other.nagle_ns;
	retransmitted += other.retransmitted;
	connections = std::max(connections, other.connections);
	resets_by_server += other.resets_by_server;
	resets_by_client += other.resets_by_client;
	nagle_seen += other.nagle_seen;
	nagle_longest_ns = std::max(nagle_longest_ns, other.nagle_longest_ns);
	only_counted += other.only_counted;
	for (const auto &[reason, n] : other.dropped)
		dropped[reason] += n;
	for (const auto &[port, n] : other.nagle_at)
		nagle_at[port] += n;
}

std::string TcpText(const TcpFacts &f, const Run &run)
{
	std::vector<std::pair<uint64_t, std::string>> parts = {
	    {f.retransmission_ns, RetransmittedText(f)},
	    {f.client_window_ns + f.server_window_ns, WindowText(f)},
	    {f.nagle_ns, NagleText(f, run)},
	    {0, DroppedText(f)},
	    {0, ResetsText(f)},
	};
	std::stable_sort(parts.begin(), parts.end(),
			 [](const auto &a, const auto &b) { return a.first > b.first; });
	std::string text;
	for (const auto &[ns, part] : parts)
		if (!part.empty())
			text += (text.empty() ? "" : "; ") + part;
	if (!text.empty() && f.only_counted)
		text += "; " + common::Plural(f.only_counted, "more TCP event", "more TCP events") +
			" on ports of the servers and their peers at this time " +
			(f.only_counted == 1 ? "was" : "were") + " only counted";
	return text;
}

TcpFacts FindTcp(const Run &run, const Blame &blame, std::vector<Episode> *episodes)
{
	TcpFacts all;
	if (run.tcp_events.empty() && run.tcp_states.empty())
		return all;
	const Histories histories(run);
	for (size_t i = 0; i < blame.slow.size();) {
		const size_t first = i;
		while (i < blame.slow.size() && blame.slow[i].episode == blame.slow[first].episode)
			i++;
		Episode &e = (*episodes)[blame.slow[first].episode];
		e.tcp = FactsOf(run, blame, histories, first, i);
		all.Add(e.tcp);
	}
	return all;
}

} // namespace forktail::analysis
