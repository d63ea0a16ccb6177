// SPDX-License-Identifier: MIT
// Prints one episode, one request or one cause in full.
#include "analysis/text.h"

#include <algorithm>
#include <cmath>

#include "analysis/blame.h"
#include "common/format.h"
#include "sentences.h"

namespace forktail::analysis
{

namespace
{

constexpr size_t kRequestsOfEpisode = 10, kRequestsAhead = 12;
constexpr double kWorthListing = 0.01; // episodes with a smaller share of the cause are not listed

struct ViewLines {
	const Explanation &e;
	const Style &style;
	std::string out;

	void Line(const std::string &text, size_t indent = 0)
	{
		out += std::string(indent, ' ') + Wrap(text, indent, indent + 2, style.columns);
	}
	void Title(const std::string &text) { out += (out.empty() ? "" : "\n") + style.Strong(text) + "\n"; }
	std::string Hop(uint16_t hop) const
	{
		return hop == kNoHop ? ""
				     : HopNameOf(e.run, e.hop_threads, hop, e.blame.from_iterations).text();
	}
};

double Fraction(uint64_t part, uint64_t whole)
{
	return static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(whole, 1));
}

// The width of bars next to `taken` columns of text.
size_t BarColumns(const Style &style, size_t taken)
{
	return std::clamp<size_t>(style.columns - std::min(style.columns, taken), 8, 40);
}

std::string InstantText(const Explanation &e, uint64_t t_ns)
{
	std::string clock = ClockText(e, t_ns);
	return common::FormatOffset(t_ns, e.zero_ns) + (clock.empty() ? "" : " (" + clock + ")");
}

void EpisodeCauses(const Episode &episode, ViewLines *s)
{
	s->Title(PadRight("cause", 16) + PadLeft("share", 8) + PadLeft("time", 10) +
		 PadLeft("thread time", 13));
	const size_t bar = BarColumns(s->style, 49);
	for (const EpisodeCause &c : episode.causes) {
		std::string hop = s->e.blame.hops.size() > 1 ? s->Hop(c.hop) : "";
		s->out += PadRight(CauseName(c.cause), 16) + PadLeft(common::FormatPercent(c.share), 8) +
			  PadLeft(common::FormatDuration(c.time_ns), 10) +
			  PadLeft(c.thread_ns ? common::FormatDuration(c.thread_ns) : "-", 13) + "  " +
			  s->style.Tinted(c.cause, Bar(c.share, bar, s->style)) + "\n";
		if (!hop.empty())
			s->Line("at " + hop, 4);
	}
}

// A request in one line. --request prints it in full.
std::string RequestLine(const ViewLines &s, const SlowRequest &r)
{
	const Explanation &e = s.e;
	std::string line = PadLeft(std::to_string(r.index), 10) +
			   PadLeft(common::FormatOffset(r.due_ns, e.zero_ns), 13) +
			   PadLeft(common::FormatDuration(r.latency_ns), 10) + "  ";
	if (!e.blame.from_iterations)
		line += PadRight(r.op < e.run.ops.size() ? e.run.ops[r.op] : "", 8) +
			PadLeft(std::to_string(r.connection), 6) + "  ";
	for (size_t p = 0; p < std::min<size_t>(r.part_count, 3); p++) {
		const Part &part = e.blame.parts[r.first_part + p];
		std::string one = std::string(p ? ", " : "") + CauseName(part.cause) + " " +
				  common::FormatShare(Fraction(part.total_ns(), r.latency_ns));
		if (p && DisplayWidth(line + one) > s.style.columns)
			break;
		line += one;
	}
	return line;
}

void EpisodeRequests(uint32_t index, ViewLines *s)
{
	std::vector<const SlowRequest *> worst;
	for (const SlowRequest &r : s->e.blame.slow)
		if (r.episode == index)
			worst.push_back(&r);
	const size_t shown = std::min(kRequestsOfEpisode, worst.size());
	std::partial_sort(worst.begin(), worst.begin() + static_cast<ptrdiff_t>(shown), worst.end(),
			  [](const SlowRequest *a, const SlowRequest *b) {
				  return a->latency_ns != b->latency_ns ? a->latency_ns > b->latency_ns
									: a->index < b->index;
			  });
	s->Title(PadLeft(s->e.blame.from_iterations ? "iteration" : "request", 10) +
		 PadLeft(s->e.blame.from_iterations ? "began" : "due", 13) + PadLeft("latency", 10) +
		 (s->e.blame.from_iterations ? "" : "  " + PadRight("op", 8) + PadLeft("conn", 6)) +
		 "  causes");
	for (size_t i = 0; i < shown; i++)
		s->out += RequestLine(*s, *worst[i]) + "\n";
	if (shown < worst.size())
		s->Line("(the " + common::FormatCount(shown) + " longest of " +
			common::FormatCount(worst.size()) + ")");
}

// A mark at an instant, or a bar between two, on a line as long as the request.
struct Track {
	uint64_t latency_ns;
	size_t columns;

	size_t At(uint64_t ns) const
	{
		double at = Fraction(std::min(ns, latency_ns), latency_ns) * static_cast<double>(columns);
		return std::min(static_cast<size_t>(std::lround(at)), columns);
	}
	std::string Span(uint64_t from_ns, uint64_t to_ns, Cause cause, const Style &style) const
	{
		size_t from = std::min(At(from_ns), columns - 1), to = std::max(At(to_ns), from + 1);
		return std::string(from, ' ') + style.Tinted(cause, Bar(1, to - from, style));
	}
};

void RequestParts(const SlowRequest &r, ViewLines *s)
{
	size_t name = 16;
	for (size_t p = 0; p < r.part_count; p++)
		name = std::max(name, DisplayWidth(CauseName(s->e.blame.parts[r.first_part + p].cause)) + 2);
	const Track track = {r.latency_ns, BarColumns(s->style, name + 32)};
	s->Title(PadRight("part", name) + PadLeft("direct", 10) + PadLeft("queued", 10) + PadLeft("sum", 10));
	uint64_t sum_ns = 0;
	for (size_t p = 0; p < r.part_count; p++) {
		const Part &part = s->e.blame.parts[r.first_part + p];
		const std::string queued = part.queued_ns ? common::FormatDuration(part.queued_ns) : "-",
				  direct = part.direct_ns ? common::FormatDuration(part.direct_ns) : "-";
		s->out += PadRight(CauseName(part.cause), name) + PadLeft(direct, 10) + PadLeft(queued, 10) +
			  PadLeft(common::FormatDuration(part.total_ns()), 10) + "  " +
			  track.Span(sum_ns, sum_ns + part.total_ns(), part.cause, s->style) + "\n";
		if (std::string hop = s->e.blame.hops.size() > 1 ? s->Hop(part.hop) : ""; !hop.empty())
			s->Line("at " + hop, 4);
		sum_ns += part.total_ns();
	}
	s->out += PadRight("latency", name) + PadLeft("", 20) + PadLeft(common::FormatDuration(sum_ns), 10) +
		  "  " + common::FormatCount(sum_ns) + " ns\n";
}

// The legs of a request between two hosts, as far as the clocks can separate them.
void RequestLegs(const SlowRequest &r, ViewLines *s)
{
	const Legs legs = LegsOf(s->e.blame, r);
	const uint32_t server = r.hop < s->e.hop_threads.size() ? s->e.hop_threads[r.hop] : UINT32_MAX;
	const uint64_t bound_ns = ClocksBound(s->e.run, r.connection, server);
	if (!bound_ns)
		return;
	s->Title("Legs between the hosts (clocks known to within " + common::FormatDuration(bound_ns) + ")");
	auto leg = [&](const char *what, uint64_t ns) {
		s->out += PadRight(what, 30) + PadLeft(ns ? common::FormatDuration(ns) : "-", 10) + "\n";
	};
	leg("late at the client's host", legs.late_ns);
	leg("request on the network", legs.there_ns);
	leg("at the server", legs.server_ns);
	leg(r.arrived ? "reply on the network" : "reply on the network or unread", legs.back_ns);
	if (r.arrived)
		leg("reply unread", legs.unread_ns);
	leg("not assigned to a leg", legs.unknown_ns);
}

// Slow requests sent before a request and unanswered when it was due, the last due first: on its connection,
// and on other connections of its serving thread.
struct SlowAhead {
	std::vector<const SlowRequest *> same, others;
};

SlowAhead FindAhead(const Explanation &e, const SlowRequest &r)
{
	auto server = [&](const SlowRequest &of) {
		return of.connection < e.run.connections.size() ? e.run.connections[of.connection].server : 0;
	};
	SlowAhead ahead;
	for (const SlowRequest &other : e.blame.slow) {
		if (other.due_ns > r.due_ns)
			break;
		if (other.index == r.index || other.end_ns() <= r.due_ns || other.sent_ns > r.sent_ns ||
		    (other.sent_ns == r.sent_ns && other.index >= r.index))
			continue;
		if (other.connection == r.connection)
			ahead.same.insert(ahead.same.begin(), &other);
		else if (other.hop == r.hop && server(other) == server(r))
			ahead.others.insert(ahead.others.begin(), &other);
	}
	return ahead;
}

void RequestsAhead(const SlowRequest &r, ViewLines *s)
{
	const SlowAhead ahead = FindAhead(s->e, r);
	std::vector<const SlowRequest *> all = ahead.same;
	all.insert(all.end(), ahead.others.begin(), ahead.others.end());
	if (all.empty()) {
		s->out += "\n";
		s->Line("No slow request was ahead of it. Requests that were not slow are not listed.");
		return;
	}
	const Track track = {r.latency_ns, BarColumns(s->style, 63)};
	s->Title("Ahead of it: " + common::Plural(ahead.same.size(), "slow request", "slow requests") +
		 " on its connection, " + common::FormatCount(ahead.others.size()) +
		 " on other connections of its thread");
	s->out += PadLeft("request", 10) + PadLeft("due", 13) + PadLeft("latency", 10) + "  " +
		  PadRight("op", 8) + PadLeft("conn", 6) + PadLeft("answered", 12) + "\n";
	const size_t shown = std::min(kRequestsAhead, all.size());
	for (size_t i = 0; i < shown; i++) {
		const SlowRequest &other = *all[i];
		const uint64_t left_ns = std::min(other.end_ns() - r.due_ns, r.latency_ns);
		s->out += PadLeft(std::to_string(other.index), 10) +
			  PadLeft(common::FormatOffset(other.due_ns, s->e.zero_ns), 13) +
			  PadLeft(common::FormatDuration(other.latency_ns), 10) + "  " +
			  PadRight(other.op < s->e.run.ops.size() ? s->e.run.ops[other.op] : "", 8) +
			  PadLeft(std::to_string(other.connection), 6) +
			  PadLeft("+" + common::FormatDuration(other.end_ns() - r.due_ns), 12) + "  " +
			  track.Span(0, left_ns, s->e.blame.parts[other.first_part].cause, s->style) + "\n";
	}
	if (shown < all.size())
		s->Line("(the last " + common::FormatCount(shown) + " of " + common::FormatCount(all.size()) +
			")");
	s->Line(
	    "These requests were sent before it and were unanswered when it was due. Each bar ends when that "
	    "request was answered. Requests that were not slow are not listed.");
}

void Instants(const SlowRequest &r, ViewLines *s)
{
	auto at = [&](const char *what, uint64_t t_ns) {
		s->out += PadRight(what, 10) + PadLeft(common::FormatOffset(t_ns, s->e.zero_ns), 13) +
			  PadLeft("+" + common::FormatDuration(t_ns - std::min(t_ns, r.due_ns)), 12) + "\n";
	};
	if (s->e.blame.from_iterations) {
		at("began", r.due_ns);
		at("ended", r.end_ns());
		return;
	}
	at("due", r.due_ns);
	at("sent", r.sent_ns);
	if (r.arrived)
		at("arrived", r.end_ns() - r.unread_ns);
	at(IsError(r.status) ? "ended" : "answered", r.end_ns());
}

const char *StatusText(uint8_t status)
{
	static const char *const texts[] = {"ok",    "ok, nothing found", "error reply", "timed out",
					    "reset", "refused",		  "wrong",	 "never sent"};
	return status < std::size(texts) ? texts[status] : "of an unknown kind";
}

// Episodes with the cause, by its time in them.
std::vector<std::pair<uint32_t, const EpisodeCause *>> EpisodesWith(const Explanation &e, Cause cause)
{
	std::vector<std::pair<uint32_t, const EpisodeCause *>> with;
	for (uint32_t i = 0; i < e.episodes.size(); i++)
		for (const EpisodeCause &c : e.episodes[i].causes)
			if (c.cause == cause)
				with.emplace_back(i, &c);
	std::stable_sort(with.begin(), with.end(),
			 [](const auto &a, const auto &b) { return a.second->time_ns > b.second->time_ns; });
	return with;
}

void CauseEpisodes(Cause cause, size_t most, ViewLines *s)
{
	const auto with = EpisodesWith(s->e, cause);
	const std::vector<uint32_t> worst = WorstEpisodes(s->e.episodes, s->e.episodes.size());
	std::vector<size_t> number(worst.size());
	for (size_t i = 0; i < worst.size(); i++)
		number[worst[i]] = i + 1;
	s->Title("In " + common::FormatCount(with.size()) + " of " +
		 common::Plural(s->e.episodes.size(), "episode", "episodes") +
		 (with.empty() ? "" : ", most affected first"));
	size_t shown = 0;
	for (const auto &[index, c] : with) {
		if (shown == most || (shown && c->share < kWorthListing))
			break;
		shown++;
		const Episode &episode = s->e.episodes[index];
		s->Line(Format("%-3zu %s  %s of %s (%s), ", number[index],
			       common::FormatOffset(episode.start_ns, s->e.zero_ns).c_str(),
			       common::FormatDuration(c->time_ns).c_str(),
			       common::FormatDuration(episode.time_ns).c_str(),
			       common::FormatShare(c->share).c_str()) +
			common::Plural(episode.requests, "request", "requests") + ", worst " +
			common::FormatDuration(episode.worst_ns));
		for (size_t i = 0; i < episode.evidence_of.size(); i++)
			if (episode.evidence_of[i] == cause)
				s->Line(episode.evidence[i], 4);
	}
	if (shown < with.size())
		s->Line("(" + common::Plural(with.size() - shown, "more episode", "more episodes") +
			", less affected: --top " + std::to_string(with.size()) + ")");
}

} // namespace

bool EpisodeView(const Explanation &e, const Style &style, size_t number, std::string *text,
		 std::string *error)
{
	if (number == 0 || number > e.episodes.size()) {
		*error = "no episode " + std::to_string(number) + ": the run has " +
			 common::Plural(e.episodes.size(), "episode", "episodes") + ", and 1 is the worst";
		return false;
	}
	const uint32_t index = WorstEpisodes(e.episodes, number).back();
	const Episode &episode = e.episodes[index];
	ViewLines s = {e, style, {}};
	s.Title("Episode " + std::to_string(number) + " of " + common::FormatCount(e.episodes.size()));
	s.Line("From " + InstantText(e, episode.start_ns) + ", for " +
	       common::FormatDuration(episode.end_ns - episode.start_ns) + ": " +
	       common::Plural(episode.requests, "slow request", "slow requests") + ", " +
	       common::FormatDuration(episode.time_ns) + " of their time, worst " +
	       common::FormatDuration(episode.worst_ns));
	if (episode.since_ns < episode.start_ns)
		s.Line("The delay began at " + common::FormatOffset(episode.since_ns, e.zero_ns));
	if (const EpisodeAnswers &a = episode.answers; a.known)
		s.Line("Replies were unread at the client for " + common::FormatDuration(a.unread_ns) +
		       " in total, the longest for " + common::FormatDuration(a.longest_unread_ns));
	EpisodeCauses(episode, &s);
	s.Title("Evidence");
	for (const std::string &sentence : episode.evidence)
		s.Line(sentence, 2);
	if (episode.evidence.empty())
		s.Line("none", 2);
	if (e.blame.hops.size() > 1 && !episode.hops.empty()) {
		s.Title("By hop");
		for (const EpisodeHop &h : episode.hops)
			s.Line(common::FormatPercent(h.share) + ", " + common::FormatDuration(h.time_ns) +
				   ", at " + s.Hop(h.hop),
			       2);
	}
	if (!episode.own_code.activities.empty()) {
		s.Title("On-CPU time by function");
		for (const ActivityTime &a : episode.own_code.activities)
			s.Line(PadLeft(common::FormatPercent(a.share), 8) +
			       PadLeft(common::FormatDuration(a.time_ns), 10) + "  " + a.name +
			       (a.stack.empty() ? "" : ": " + a.stack));
	}
	EpisodeRequests(index, &s);
	*text = s.out;
	return true;
}

bool RequestView(const Explanation &e, const Style &style, uint64_t id, std::string *text, std::string *error)
{
	const auto r = std::find_if(e.blame.slow.begin(), e.blame.slow.end(),
				    [&](const SlowRequest &one) { return one.index == id; });
	if (r == e.blame.slow.end()) {
		*error = "request " + std::to_string(id) + " is not one of the " +
			 common::Plural(e.blame.slow.size(), "slow request", "slow requests") + " of " +
			 common::FormatDuration(std::max(e.blame.threshold_ns, e.blame.kept_from_ns)) +
			 " or more: --slow sets another limit, --json --requests lists them";
		return false;
	}
	ViewLines s = {e, style, {}};
	s.Title(std::string(e.blame.from_iterations ? "Iteration " : "Request ") + std::to_string(id) + ": " +
		common::FormatDuration(r->latency_ns));
	if (!e.blame.from_iterations) {
		std::string line = (r->op < e.run.ops.size() ? e.run.ops[r->op] : "an unknown operation") +
				   " on connection " + std::to_string(r->connection) + ", " +
				   StatusText(r->status);
		if (const SlowKey *key = KeyOf(e.run, *r))
			line += ", of " + KeyText(*key);
		if (std::string hop = s.Hop(r->hop); !hop.empty())
			line += ", served by " + hop;
		if (r->behind)
			line += ", behind the proxy by " + e.run.behind[r->behind - 1].address;
		s.Line(line);
	}
	s.Line("Due at " + InstantText(e, r->due_ns));
	s.out += "\n";
	Instants(*r, &s);
	RequestParts(*r, &s);
	s.out += "\n";
	s.Line("Each bar is one part, longest first. Direct: the cause ran while the request waited. Queued: "
	       "the request waited behind others that the cause delayed. The parts add up to the latency.");
	if (!e.blame.from_iterations) {
		RequestLegs(*r, &s);
		RequestsAhead(*r, &s);
	}
	*text = s.out;
	return true;
}

std::string SnapshotsView(const Explanation &e, const Style &style)
{
	ViewLines s = {e, style, {}};
	if (e.snapshots.all.empty()) {
		s.Line(
		    "No snapshot, AOF rewrite or full synchronization of a replica began in the recording.");
		return s.out;
	}
	for (const Snapshot &one : e.snapshots.all)
		s.Line(SnapshotText(e.run, e.snapshots, one, e.zero_ns) + ".");
	if (e.snapshots.all.size() == kMostSnapshots)
		s.Line("Further snapshots are not listed: --since and --until limit what is explained.");
	return s.out;
}

std::string CauseView(const Explanation &e, const Style &style, Cause cause, size_t episodes)
{
	ViewLines s = {e, style, {}};
	s.Title(std::string(CauseName(cause)) + ": " + InfoOf(cause).meaning);
	const CauseRow &row = e.blame.RowOf(cause);
	const char *things = e.blame.from_iterations ? "iterations" : "requests";
	if (!row.requests) {
		s.Line("It affected none of the " + common::FormatCount(e.blame.slow_count) + " slow " +
		       things + ".");
		return s.out;
	}
	s.Line("It affected " + common::FormatCount(row.requests) + " of " +
	       common::FormatCount(e.blame.slow_count) + " slow " + things + " and took " +
	       common::FormatDuration(row.total_ns()) + ", " + common::FormatPercent(row.share) +
	       " of the slow " + things + "' time: " + common::FormatDuration(row.direct_ns) + " direct, " +
	       common::FormatDuration(row.queued_ns) + " queued behind others that it delayed.");
	if (cause != Cause::Unknown) {
		const Latencies &with = e.blame.latencies, &without = row.without;
		s.Title(PadRight("", 10) + PadLeft("p99", 10) + PadLeft("p99.9", 10) + PadLeft("p99.99", 10) +
			PadLeft("max", 10));
		for (const auto &[name, l] : {std::pair{"now", &with}, std::pair{"without", &without}})
			s.out += PadRight(name, 10) + PadLeft(common::FormatDuration(l->p99), 10) +
				 PadLeft(common::FormatDuration(l->p99_9), 10) +
				 PadLeft(common::FormatDuration(l->p99_99), 10) +
				 PadLeft(common::FormatDuration(l->max), 10) + "\n";
	}
	CauseEpisodes(cause, episodes, &s);
	return s.out;
}

} // namespace forktail::analysis
