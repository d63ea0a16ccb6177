// SPDX-License-Identifier: MIT
// The culprit: the event, code or process behind a cause, named in one clause for the first line
// of an answer: "fork() for BGREWRITEAOF took 43.7 ms".
//
// An episode's evidence says what happened in that episode. The culprit adds up all episodes that have
// evidence, so that the first line speaks of the whole run.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "own_code.h"
#include "scene.h"

namespace forktail::analysis
{

class CulpritFinder
{
public:
	explicit CulpritFinder(Cause cause) : cause_(cause) {}
	Cause cause() const { return cause_; }
	// Adds a scene of the cause. Scenes of one timeline are added in order of time.
	void Add(const Scene &scene, const EpisodeCause &cause);
	// Empty if no scene named anything.
	Culprit Result() const;

private:
	// The total of one actor. Its clause has placeholders: \1 the time, \2 how often, \3 the CPU. Names
	// in clauses are sanitized: they hold no control characters.
	struct Actor {
		uint64_t ns = 0, longest_ns = 0, times = 0;
		std::set<int> cpus;
		std::set<uint32_t> tids; // of CPU holders
		std::string advice;
	};
	using Named = std::pair<const std::string, Actor>;
	Actor &Note(const std::string &clause, uint64_t ns, uint64_t times);
	void AddForks(const Scene &scene);
	void AddFaults(const Scene &scene);
	void AddFiles(const Scene &scene);
	void AddFsyncs(const Scene &scene);
	void AddWaits(const Scene &scene);
	void AddInterrupts(const Scene &scene);
	void AddBlocked(const Scene &scene);
	void AddLock(const Scene &scene);
	void AddBusy(const Scene &scene);
	void AddClient(const Scene &scene, uint64_t late_ns);
	void AddOutage(const Scene &scene);
	void AddStalledTarget(const Scene &scene);
	void AddOf(const Scene &scene, const EpisodeCause &cause, uint64_t ns);
	std::string ForksText() const;
	std::string FaultsText() const;
	std::string WaitsText() const;
	std::string BusyText() const;
	std::string ActorText(const Named &actor) const;
	std::string ThreadsText() const;
	bool Several() const;		// no thread has most of the time
	bool IsMost(uint64_t ns) const; // of all_ns_
	std::vector<const Named *> Ranked() const;
	Actor Sum() const;

	Cause cause_;
	// By clause; for forks by purpose, for faults by child, for waits by CPU holder, for own code by
	// activity.
	std::map<std::string, Actor> actors_;
	std::map<const Timeline *, uint64_t> until_ns_; // the end of what was added, by timeline
	std::map<std::string, uint64_t> threads_;	// time in the cause, by thread
	uint64_t all_ns_ = 0;				// of all these threads
	std::set<std::pair<uint32_t, uint64_t>> forks_; // counted, by thread and start
	uint64_t iterations_ = 0;			// in which the server ran its own code; 0: unknown
	uint64_t accepted_ = 0;				// connections accepted in them
	bool many_ = false;				// a span may contain several iterations
};

} // namespace forktail::analysis
