// SPDX-License-Identifier: MIT
// The culprit: the event, code or process behind a run's first cause, named in one clause for the first line
// of an answer: "fork() for BGREWRITEAOF took 43.7 ms".
//
// An episode's evidence says what happened in that episode. The culprit adds up all episodes that have
// evidence, so that the first line speaks of the whole run.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "own_code.h"
#include "scene.h"

namespace forktail::analysis
{

class CulpritFinder
{
public:
	explicit CulpritFinder(Cause cause) : cause_(cause) {}
	// Adds a scene of the cause. Scenes of one timeline are added in order of time.
	void Add(const Scene &scene, const EpisodeCause &cause);
	// The clause, without a full stop; "" if no scene named anything.
	std::string Text() const;

private:
	// The total of one actor. Its clause has placeholders: \1 the time, \2 how often, \3 the CPU; \4
	// begins a clause of page faults. Names in clauses are sanitized: they hold no control characters.
	struct Actor {
		uint64_t ns = 0, longest_ns = 0, times = 0;
		std::set<int> cpus;
		std::set<uint32_t> tids; // of CPU holders
	};
	Actor &Note(const std::string &clause, uint64_t ns, uint64_t times);
	void AddForks(const Scene &scene);
	void AddFaults(const Scene &scene);
	void AddFiles(const Scene &scene);
	void AddFsyncs(const Scene &scene);
	void AddWaits(const Scene &scene);
	void AddInterrupts(const Scene &scene);
	void AddBlocked(const Scene &scene);
	void AddBusy(const Scene &scene);
	void AddClient(const Scene &scene, uint64_t late_ns);
	std::string ForksText() const;
	std::string WaitsText() const;
	std::string BusyText() const;
	const std::pair<const std::string, Actor> *Top() const;

	Cause cause_;
	std::map<std::string, Actor>
	    actors_; // by clause; by purpose, holder or activity for fork, run-queue, server-busy
	std::map<const Timeline *, uint64_t> until_ns_; // the end of what was added, by timeline
	std::string thread_;				// the thread that waited or ran
	uint64_t all_ns_ = 0;				// total time of that thread
	uint64_t iterations_ = 0;			// in which the server ran its own code; 0: unknown
	uint64_t accepted_ = 0;				// connections accepted in them
	bool many_ = false;				// a span may stand for several iterations
};

} // namespace forktail::analysis
