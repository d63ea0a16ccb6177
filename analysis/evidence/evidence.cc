// SPDX-License-Identifier: MIT
// Finds evidence for episodes: one scene for each process with a cause, and sentences about these scenes.
#include <algorithm>
#include <map>
#include <numeric>

#include "analysis/blame/hops.h"
#include "analysis/run/hosts.h"
#include "common/format/units.h"
#include "culprit.h"
#include "host_counters.h"
#include "locks.h"
#include "scene.h"
#include "sentences.h"
#include "server_reports.h"

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
	std::vector<CulpritFinder> finders;
	if (culprits)
		for (const auto &[cause, culprit] : *culprits)
			finders.emplace_back(cause);
	std::vector<const SlowRequest *> worst(episodes->size());
	for (const SlowRequest &r : blame.slow)
		if (!worst[r.episode] || r.latency_ns > worst[r.episode]->latency_ns)
			worst[r.episode] = &r;
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
			scene.timelines = &timelines;
			scene.threads = &threads;
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
				text =
				    HopNameOf(run, timelines, HopOf(timelines, scene), blame.from_iterations)
					.text() +
				    ": " + text;
			e.evidence.push_back(std::move(text));
			e.evidence_of.push_back(cause.cause);
		}
		if (std::string text = StealSentence(run, e.since_ns, e.end_ns, e.worst_ns); !text.empty())
			e.evidence.push_back(std::move(text));
		for (std::string &text : MemoryEventSentences(run, e.since_ns, e.end_ns))
			e.evidence.push_back(std::move(text));
		for (std::string &text :
		     ServerReportSentences(run, e.since_ns, e.end_ns, e.worst_ns, kServerReports))
			e.evidence.push_back(std::move(text));
	}
	for (const CulpritFinder &finder : finders) {
		Culprit &culprit = (*culprits)[finder.cause()] = finder.Result();
		if (!culprit.clause.empty() && order.size() < episodes->size())
			culprit.clause += " in the " + common::FormatCount(order.size()) + " worst of " +
					  common::FormatCount(episodes->size()) + " episodes";
	}
}

} // namespace forktail::analysis
