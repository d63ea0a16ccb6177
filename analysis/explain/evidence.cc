// SPDX-License-Identifier: MIT
// Finds evidence for episodes: one scene for each process with a cause, and sentences about these scenes.
#include "analysis/evidence.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "analysis/blame.h"
#include "analysis/run.h"
#include "analysis/timeline.h"
#include "common/format.h"
#include "scene.h"

namespace forktail::analysis
{

namespace
{

// A cause below this share of an episode gets no sentence, unless it is the first.
constexpr double kMinEvidenceShare = 0.03;
// Evidence may begin this long before an episode, or end this long after it.
constexpr uint64_t kEvidenceMarginNs = 1'000'000'000;
// At most this many of the server's own reports per episode.
constexpr size_t kServerReports = 2;

// The index of the scene's timeline.
uint16_t HopOf(const std::vector<Timeline> &timelines, const Scene &scene)
{
	for (size_t i = 0; i < timelines.size(); i++)
		if (&timelines[i] == &scene.timeline)
			return static_cast<uint16_t>(i);
	return kNoHop;
}

// How long other threads waited for the scene's thread, for a cause that is only on their timelines.
uint64_t ForeignNs(const Scene &scene, const std::vector<Timeline> &timelines, Cause cause)
{
	uint64_t ns = 0;
	for (const Timeline &t : timelines)
		EachForeign(t, scene.from_ns, scene.to_ns, [&](const Foreign &f, uint64_t there_ns) {
			if (f.cause == cause && f.thread == scene.timeline.thread)
				ns += there_ns;
		});
	return ns;
}

void FindLandmarks(const Run &run, Landmarks *landmarks)
{
	*landmarks = {};
	for (uint32_t i = 0; i < run.spans.size(); i++) {
		const ft_span &s = run.spans[i];
		// A whole call where system calls were traced; otherwise each wait in the call.
		if (s.owner == FT_FSYNC && (!s.off_cpu || s.depth == 0))
			landmarks->fsyncs.push_back(i);
		else if (s.owner == FT_FORK && !s.off_cpu)
			landmarks->forks.push_back(i);
	}
}

bool IsEvidentNetwork(const EpisodeCause &cause)
{
	return cause.cause == Cause::Network && cause.share >= kMinEvidenceShare;
}

// The connections of slow requests with the end of the last one, by episode.
std::vector<std::map<uint32_t, uint64_t>> SlowConnections(const Blame &blame, size_t episodes)
{
	std::vector<std::map<uint32_t, uint64_t>> connections(episodes);
	for (const SlowRequest &r : blame.slow)
		if (episodes)
			connections[r.episode][r.connection] =
			    std::max(connections[r.episode][r.connection], r.end_ns());
	return connections;
}

} // namespace

std::vector<uint32_t> WorstEpisodes(const std::vector<Episode> &episodes, size_t limit)
{
	std::vector<uint32_t> order(episodes.size());
	std::iota(order.begin(), order.end(), 0u);
	limit = std::min(limit, order.size());
	std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(limit), order.end(),
			  [&](uint32_t a, uint32_t b) {
				  return episodes[a].time_ns != episodes[b].time_ns
					     ? episodes[a].time_ns > episodes[b].time_ns
					     : a < b;
			  });
	order.resize(limit);
	return order;
}

void FindEvidence(const Run &run, const std::vector<Timeline> &timelines, const Blame &blame,
		  const Activities &activities, size_t limit, size_t episodes_limit,
		  std::vector<Episode> *episodes, const Clients &clients, const Cover &cover,
		  Culprits *culprits)
{
	SlowLog slow_log(run);
	slow_log.Add(run, activities, 0, UINT64_MAX);
	FindEvidenceWith(CommandsOf(run, slow_log), run, timelines, blame, activities, limit, episodes_limit,
			 episodes, clients, cover, culprits);
}

std::set<Cause> FindEvidenceWith(const Commands &commands, const Run &run,
				 const std::vector<Timeline> &timelines, const Blame &blame,
				 const Activities &activities, size_t limit, size_t episodes_limit,
				 std::vector<Episode> *episodes, const Clients &clients, const Cover &cover,
				 Culprits *culprits)
{
	std::vector<CulpritFinder> finders;
	if (culprits)
		for (const auto &[cause, culprit] : *culprits)
			finders.emplace_back(cause);
	std::vector<const SlowRequest *> worst(episodes->size());
	for (const SlowRequest &r : blame.slow)
		if (!worst[r.episode] || r.latency_ns > worst[r.episode]->latency_ns)
			worst[r.episode] = &r;
	const std::vector<std::map<uint32_t, uint64_t>> connections =
	    SlowConnections(blame, run.load_tcp.empty() ? 0 : episodes->size());
	Landmarks landmarks;
	FindLandmarks(run, &landmarks);

	ThreadTimelines threads(run);
	static const Thread no_thread;
	static const Timeline no_timeline;
	// In order of time, so that each stretch is read once.
	std::vector<uint32_t> order = WorstEpisodes(*episodes, episodes_limit);
	std::sort(order.begin(), order.end());
	for (uint32_t index : order) {
		Episode &e = (*episodes)[index];
		if (cover && cover(e.since_ns - std::min(e.since_ns, kEvidenceMarginNs),
				   e.end_ns + kEvidenceMarginNs)) {
			threads = ThreadTimelines(run);
			FindLandmarks(run, &landmarks);
		}
		const auto requests = std::ranges::equal_range(blame.slow, index, {}, &SlowRequest::episode);
		uint16_t served_by = worst[index]->hop;
		const Timeline *served = served_by < timelines.size() ? &timelines[served_by] : nullptr;
		int32_t client = blame.from_iterations ? -1 : clients.Of(worst[index]->connection);
		const Timeline &c = client < 0 ? no_timeline : clients.timelines[static_cast<size_t>(client)];
		Scene client_scene = {run,	 c,	     client < 0 ? no_thread : run.threads[c.thread],
				      landmarks, e.since_ns, e.end_ns,
				      {},	 {}};
		if (client >= 0)
			Gather(&client_scene);
		// One scene for each process with a cause. Causes at no process use the scene of the serving
		// thread.
		std::map<const Timeline *, Scene> scenes;
		auto scene_of = [&](uint16_t hop) -> const Scene & {
			const Timeline *t = hop < timelines.size() ? &timelines[hop] : served;
			if (auto known = scenes.find(t); known != scenes.end())
				return known->second;
			bool known = t && t->thread < run.threads.size();
			Scene &scene = scenes
					   .try_emplace(t, Scene{run,
								 t ? *t : no_timeline,
								 known ? run.threads[t->thread] : no_thread,
								 landmarks,
								 e.since_ns,
								 e.end_ns,
								 {},
								 {},
								 {}})
					   .first->second;
			Gather(&scene);
			scene.activities = &activities;
			scene.answers = &e.answers;
			scene.tcp = &e.tcp;
			scene.timelines = &timelines;
			scene.threads = &threads;
			scene.commands = &commands;
			scene.requests = {requests.begin(), requests.end()};
			scene.own_code = OwnCodeIn(scene, scene.from_ns, scene.to_ns);
			scene.client = client >= 0 ? &client_scene : nullptr;
			return scene;
		};
		uint16_t busy_hop = kNoHop;
		for (EpisodeCause &cause : e.causes) {
			const Scene &scene = scene_of(cause.hop);
			CauseTimes on_thread = {};
			AddTimes(scene.timeline, e.since_ns, e.end_ns, &on_thread);
			on_thread[Index(Cause::Network)] += on_thread[Index(Cause::Idle)];
			cause.thread_ns = on_thread[static_cast<size_t>(Index(cause.cause))];
			if (cause.cause == Cause::IoThread)
				cause.thread_ns = ForeignNs(scene, timelines, cause.cause);
			if (cause.cause == Cause::LockWait) // the lock holder's own timeline has no such wait
				cause.thread_ns += LockWaiterNs(scene, cause.cause);
			if (cause.cause == Cause::ServerBusy)
				busy_hop = cause.hop;
			for (CulpritFinder &finder : finders)
				if (finder.cause() == cause.cause)
					finder.Add(scene, cause);
		}
		e.own_code = scene_of(busy_hop).own_code;
		for (const EpisodeCause &cause : e.causes) {
			if (e.evidence.size() >= limit ||
			    (!e.evidence.empty() && cause.share < kMinEvidenceShare))
				break;
			const Scene &scene = scene_of(cause.hop);
			std::string text = Sentence(scene, cause);
			if (text.empty())
				text = ShareSentence(cause);
			if (text.empty())
				continue;
			if (std::string waited = cause.cause == Cause::LockWait
						     ? "" // its sentence already names the waiting thread
						     : LockWaiterText(scene, cause.cause);
			    !waited.empty())
				text += "; " + waited;
			if ((blame.hops.size() > 1 || SeveralHosts(run)) && cause.hop != kNoHop)
				text = HopNameOf(run, HopThreads(timelines), HopOf(timelines, scene),
						 blame.from_iterations)
					   .text() +
				       ": " + text;
			e.evidence.push_back(std::move(text));
			e.evidence_of.push_back(cause.cause);
		}
		if (std::string text =
			!connections.empty() && std::ranges::any_of(e.causes, IsEvidentNetwork)
			    ? LoadTcpSentence(run, connections[index], e.start_ns, e.end_ns, e.worst_ns)
			    : "";
		    !text.empty())
			e.evidence.push_back(std::move(text));
		if (std::string text = StealSentence(run, e.since_ns, e.end_ns, e.worst_ns); !text.empty())
			e.evidence.push_back(std::move(text));
		for (std::string &text : MemoryEventSentences(run, e.since_ns, e.end_ns))
			e.evidence.push_back(std::move(text));
		for (std::string &text :
		     ServerReportSentences(run, commands, e.since_ns, e.end_ns, e.worst_ns, kServerReports))
			e.evidence.push_back(std::move(text));
	}
	std::set<Cause> own_sends;
	for (const CulpritFinder &finder : finders) {
		if (finder.OfOwnSends())
			own_sends.insert(finder.cause());
		Culprit &culprit = (*culprits)[finder.cause()] = finder.Result();
		if (!culprit.clause.empty() && order.size() < episodes->size())
			culprit.clause += " in the " + common::FormatCount(order.size()) + " worst of " +
					  common::FormatCount(episodes->size()) + " episodes";
	}
	return own_sends;
}

// One pass over slow requests by start. A request begins a new episode if it is due more than a gap after the
// end of all requests of the episode before. Time is also added up by cause and hop, because each cause is
// printed with the process where most of it was spent. That table holds one episode at a time: there can be
// as many episodes as slow requests.

namespace
{

// An episode's time by cause, and by hop and cause for time spent at a hop.
struct Times {
	std::array<uint64_t, kCauses> by_cause = {};
	std::map<std::pair<uint16_t, Cause>, uint64_t> by_hop;
};

double ShareOf(const Episode &e, uint64_t ns)
{
	return static_cast<double>(ns) / static_cast<double>(e.time_ns);
}

void SetCauses(const Times &times, Episode *e)
{
	e->causes.reserve(static_cast<size_t>(
	    std::count_if(times.by_cause.begin(), times.by_cause.end(), [](uint64_t ns) { return ns > 0; })));
	for (int c = 0; c < kCauses; c++)
		if (uint64_t ns = times.by_cause[static_cast<size_t>(c)])
			e->causes.push_back({static_cast<Cause>(c), kNoHop, ns, ShareOf(*e, ns)});
	std::stable_sort(e->causes.begin(), e->causes.end(),
			 [](const EpisodeCause &a, const EpisodeCause &b) { return a.time_ns > b.time_ns; });
}

void SetHops(const Times &times, Episode *e)
{
	std::map<uint16_t, uint64_t> hops;
	for (const auto &[where, ns] : times.by_hop)
		hops[where.first] += ns;
	e->hops.reserve(hops.size());
	for (const auto &[hop, ns] : hops)
		e->hops.push_back({hop, ns, ShareOf(*e, ns)});
	std::stable_sort(e->hops.begin(), e->hops.end(),
			 [](const EpisodeHop &a, const EpisodeHop &b) { return a.time_ns > b.time_ns; });
	for (EpisodeCause &cause : e->causes) {
		uint64_t most = 0;
		for (const auto &[where, ns] : times.by_hop) {
			if (where.second != cause.cause || ns <= most)
				continue;
			most = ns;
			cause.hop = where.first;
		}
	}
}

void AddAnswer(const SlowRequest &r, EpisodeAnswers *answers)
{
	if (!r.arrived)
		return;
	answers->known++;
	answers->unread_ns += r.unread_ns;
	answers->longest_unread_ns = std::max(answers->longest_unread_ns, r.unread_ns);
	answers->way.request_ns += r.way.request_ns;
	answers->way.answer_ns += r.way.answer_ns;
}

void AddRequest(const SlowRequest &r, const std::vector<Part> &parts, Times *times, Episode *e)
{
	e->end_ns = std::max(e->end_ns, r.end_ns());
	e->since_ns = std::min(e->since_ns, r.since_ns);
	e->requests++;
	e->worst_ns = std::max(e->worst_ns, r.latency_ns);
	e->time_ns += r.latency_ns;
	AddAnswer(r, &e->answers);
	for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++) {
		const Part &part = parts[p];
		times->by_cause[static_cast<size_t>(Index(part.cause))] += part.total_ns();
		if (part.hop != kNoHop)
			times->by_hop[{part.hop, part.cause}] += part.total_ns();
	}
}

// Sets the episode of each slow request. Returns the number of episodes.
uint32_t Number(Blame *blame)
{
	uint32_t count = 0;
	uint64_t end_ns = 0;
	for (SlowRequest &r : blame->slow) { // by start
		if (!count || r.due_ns > end_ns + kEpisodeGapNs) {
			count++;
			end_ns = 0;
		}
		r.episode = count - 1;
		end_ns = std::max(end_ns, r.end_ns());
	}
	return count;
}

} // namespace

std::vector<Episode> FindEpisodes(Blame *blame)
{
	std::vector<Episode> episodes(Number(blame));
	const std::vector<SlowRequest> &slow = blame->slow;
	for (size_t i = 0; i < slow.size();) {
		Episode &e = episodes[slow[i].episode];
		e.start_ns = e.since_ns = slow[i].due_ns;
		Times times;
		for (uint32_t episode = slow[i].episode; i < slow.size() && slow[i].episode == episode; i++)
			AddRequest(slow[i], blame->parts, &times, &e);
		SetCauses(times, &e);
		SetHops(times, &e);
	}
	return episodes;
}

// Fills a scene in one pass over the pieces and one over the tallies of its interval.

namespace
{

constexpr uint64_t kCloneThread = 0x10000; // CLONE_THREAD
constexpr uint64_t kForkSlack =
    1'000'000; // a child's record may begin up to this long before its fork's span

// Adds the threads that held the CPU during a wait, as far as known.
void NoteHolders(const ft_span &s, Scene *scene)
{
	for (const WaitHolder &one : WaitHolders(scene->run, s, scene->from_ns, scene->to_ns)) {
		Holder &holder = scene->holders[one.tid];
		holder.ns += one.ns;
		holder.name = one.name;
		holder.cpu = s.cpu;
	}
}

void GatherPieces(Scene *scene)
{
	const Timeline &t = scene->timeline;
	uint64_t from = std::max(scene->from_ns, t.start_ns()), to = std::min(scene->to_ns, t.end_ns());
	if (t.empty() || from >= to)
		return;
	// Skip intervals that belong to another thread. Pieces are cut at their bounds.
	auto foreign = std::partition_point(t.foreign.begin(), t.foreign.end(),
					    [&](const Foreign &f) { return f.end_ns <= from; });
	for (uint32_t i = PieceAt(t, from); t.pieces[i].start_ns < to; i++) {
		const Piece &p = t.pieces[i];
		while (foreign != t.foreign.end() && foreign->end_ns <= p.start_ns)
			++foreign;
		if (p.span == kNoSpan || (foreign != t.foreign.end() && foreign->start_ns <= p.start_ns))
			continue;
		uint64_t ns = std::min(to, t.pieces[i + 1].start_ns) - std::max(from, p.start_ns);
		CauseTotal &total = scene->totals[static_cast<size_t>(Index(p.cause))];
		total.ns += ns;
		// A span with inner spans has several pieces. An off-CPU span inside a frame belongs to the
		// frame, unless it has another cause.
		const ft_span &span = scene->run.spans[p.span];
		if (p.span != total.last &&
		    (!span.off_cpu || span.depth == 0 || p.cause != CauseOfOwner(span.owner))) {
			total.spans++;
			total.last = p.span;
			if (p.cause == Cause::RunQueue)
				NoteHolders(span, scene);
		}
		if (ns > total.longest_ns) {
			total.longest_ns = ns;
			total.longest = p.span;
		}
	}
}

void GatherTallies(Scene *scene)
{
	const ft_tally *first = scene->run.tallies.data() + scene->thread.first_tally;
	const ft_tally *end = first + scene->thread.tally_count;
	// Windows do not overlap, so their ends are sorted like their starts.
	const ft_tally *t =
	    std::partition_point(first, end, [&](const ft_tally &x) { return x.end_ns <= scene->from_ns; });
	for (; t < end && t->start_ns < scene->to_ns; t++) {
		if (t->end_ns <= t->start_ns)
			continue;
		uint64_t from = std::max(t->start_ns, scene->from_ns), to = std::min(t->end_ns, scene->to_ns);
		double part = static_cast<double>(to - from) / static_cast<double>(t->end_ns - t->start_ns);
		CauseTotal &total = scene->totals[static_cast<size_t>(Index(CauseOfOwner(t->owner)))];
		total.tallied += part * t->count;
		total.tallied_ns += part * static_cast<double>(t->total_ns);
	}
}

} // namespace

void Gather(Scene *scene)
{
	GatherPieces(scene);
	GatherTallies(scene);
}

OwnCode OwnCodeIn(const Scene &scene, uint64_t from_ns, uint64_t to_ns)
{
	OwnCodeCount count(scene.run, *scene.activities);
	CauseTimes times = {};
	count.Add(scene.thread, from_ns, to_ns);
	AddTimes(scene.timeline, from_ns, to_ns, &times);
	return count.Result(times[Index(Cause::ServerBusy)]);
}

std::string SyscallText(const Scene &scene, int number)
{
	if (number < 0)
		return "the kernel";
	std::string name = SyscallName(scene.run, number);
	return name.empty() ? "system call " + std::to_string(number) : name + "()";
}

int SyncCall(const ft_span &s)
{
	return s.off_cpu ? s.syscall : static_cast<int>(s.arg[1]);
}

std::string OtherFsyncText(const Scene &scene, uint64_t from_ns, uint64_t to_ns)
{
	const ft_span *longest = nullptr;
	const Thread *whose = nullptr;
	for (uint32_t i : scene.landmarks.fsyncs) {
		const ft_span &s = scene.run.spans[i];
		if (s.start_ns >= to_ns || SpanEnd(s) <= from_ns || s.tid == scene.thread.tid ||
		    (longest && longest->duration_ns >= s.duration_ns))
			continue;
		for (const Thread &t : scene.run.threads) {
			if (t.tid == s.tid &&
			    (t.tgid == scene.thread.tgid || t.parent_tgid == scene.thread.tgid)) {
				longest = &s;
				whose = &t;
			}
		}
	}
	if (!longest)
		return "";
	return "; " + (whose->role.empty() ? whose->comm : whose->role) + " (" +
	       std::to_string(OwnId(scene.run, whose->tid)) + ") was in " +
	       SyscallText(scene, SyncCall(*longest)) + FileOfSync(scene.run, *whose, *longest) + " for " +
	       common::FormatDuration(longest->duration_ns);
}

std::string NameOfThread(const Run &run, const Thread &thread)
{
	std::string name = thread.role.empty() ? thread.comm : thread.role;
	for (const Thread &t : run.threads)
		if (t.tid == thread.tgid && t.tgid == thread.tgid && t.tid != thread.tid && !t.comm.empty() &&
		    t.comm != name)
			name = t.comm + "'s " + name;
	return (name.empty() ? "thread" : name) + " (" + std::to_string(OwnId(run, thread.tid)) + ")";
}

// Decided by the child's record. If its event was dropped, by clone's flags; clone3 passes none in registers.
bool MadeThread(const Scene &scene, const ft_span &fork)
{
	for (const Thread &t : scene.run.threads)
		if (t.tid == fork.arg[0] && t.start_ns + kForkSlack >= fork.start_ns &&
		    t.start_ns <= SpanEnd(fork))
			return t.tgid == scene.thread.tgid;
	return fork.arg[1] & kCloneThread;
}

const Thread *ChildOf(const Scene &scene, const ft_span &fork)
{
	for (const Thread &t : scene.run.threads)
		if (t.tid == fork.arg[0] && (t.flags & FT_THREAD_CHILD))
			return &t;
	return nullptr;
}

const ft_span *LongestFrame(const Scene &scene, const std::vector<uint32_t> &frames)
{
	const ft_span *longest = nullptr;
	for (uint32_t i : frames) {
		const ft_span &s = scene.run.spans[i];
		if (s.tid == scene.thread.tid && s.start_ns < scene.to_ns && SpanEnd(s) > scene.from_ns &&
		    (!longest || s.duration_ns > longest->duration_ns))
			longest = &s;
	}
	return longest;
}

std::string ForkCommandOf(const Thread &child)
{
	return child.role == "snapshot child"	    ? "BGSAVE"
	       : child.role == "AOF rewrite child"  ? "BGREWRITEAOF"
	       : child.role == "replica sync child" ? "a replica's full synchronization"
						    : "";
}

namespace
{

// A synchronization without a file begins this long after the replica asked for it: the server waits for
// others (repl-diskless-sync-delay, 5 s). A replica that was dropped asks at once.
constexpr uint64_t kBeforeSync = 10'000'000'000;

// "sync_full rose from 0 to 1", if INFO's counter did between the last value before from_ns and the first
// from to_ns on; else "". Only if one server's INFO was recorded.
std::string InfoRise(const Run &run, const std::string &field, uint64_t from_ns, uint64_t to_ns)
{
	const Series *of_field = nullptr;
	for (const Series &series : run.series) {
		if (series.name != "redis." + field)
			continue;
		if (of_field)
			return "";
		of_field = &series;
	}
	if (!of_field)
		return "";
	const std::vector<Sample> &samples = of_field->samples;
	const auto at = [&](uint64_t t_ns) {
		return std::ranges::lower_bound(samples, t_ns, {}, &Sample::t_ns);
	};
	const auto before = at(from_ns), after = at(to_ns);
	if (before == samples.begin() || after == samples.end() || after->value <= (before - 1)->value)
		return "";
	return field + " rose from " + common::FormatCount(static_cast<uint64_t>((before - 1)->value)) +
	       " to " + common::FormatCount(static_cast<uint64_t>(after->value));
}

} // namespace

std::string SyncText(const Scene &scene, const ft_span &fork, const Thread &child)
{
	const bool only_sync = child.role == "replica sync child";
	if ((child.role != "snapshot child" && !only_sync) || scene.run.targets.size() > 1)
		return "";
	const uint64_t early_ns = fork.start_ns - std::min(fork.start_ns, kBeforeSync);
	const std::string sync = InfoRise(scene.run, "sync_full", only_sync ? early_ns : fork.start_ns,
					  SpanEnd(fork)),
			  limit = InfoRise(scene.run, "client_output_buffer_limit_disconnections", early_ns,
					   SpanEnd(fork));
	if (sync.empty())
		return "";
	return "INFO: " + (limit.empty() ? "" : limit + ", ") + sync +
	       (only_sync ? "" : ", a replica's full synchronization");
}

const Thread *LiveChild(const Scene &scene)
{
	for (const Thread &t : scene.run.threads)
		if ((t.flags & FT_THREAD_CHILD) && (t.flags & FT_THREAD_MAIN) &&
		    t.parent_tgid == scene.thread.tgid && t.start_ns < scene.to_ns &&
		    t.end_ns > scene.from_ns)
			return &t;
	return nullptr;
}

} // namespace forktail::analysis
