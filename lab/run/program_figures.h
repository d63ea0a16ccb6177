// SPDX-License-Identifier: MIT
// Figures from the output of other programs: forktail-load --json, redis-benchmark --csv, forktail explain
// --json. Times become ns. docs/reference/lab-and-scenarios.md lists the names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "results.h"

namespace forktail::lab
{

// Adds `step`.rps, .p99, .errors, .SET.rps, .bucket_25ms, .outage ..., and for each of several servers
// `step`.redis1.p99; `names` maps their addresses to names. False: *error is one sentence, as below.
bool AddLoadFigures(const std::string &step, const std::string &path,
		    const std::map<std::string, std::string> &names, Point *point, std::string *error);

// The same names, as far as redis-benchmark prints them.
bool AddBenchmarkFigures(const std::string &step, const std::string &path, Point *point, std::string *error);

// A part of a run in which forktail-load's search ran a rate: the highest that held, or the next that failed.
struct SearchedRate {
	std::string name;	  // "highest", "beyond"
	std::string since, until; // seconds since 1970
	bool client_at_limit = false;
};

// Adds `step`.highest and .beyond (requests per second), .highest.runs and .highest.held, .rps (answers per
// second at the highest rate), and the text `step`.search (its result), if the load searched; *rates: those
// with a run.
bool AddSearch(const std::string &step, const std::string &path, Point *point,
	       std::vector<SearchedRate> *rates, std::string *error);

// Adds the text `name`.named, from what AddExplanation added under the same name: the largest cause, of
// server-busy with the own code that took most, or that the client was at its limit.
void NameCause(const std::string &name, bool client_at_limit, Point *point);

// Adds `step`.cause.fork.share, .explained ...; texts `step`.causes (the largest), `step`.own (the server's
// own code), and `step`.worst (the worst episodes and their evidence).
bool AddExplanation(const std::string &step, const std::string &path,
		    const std::map<std::string, std::string> &names, Point *point, std::string *error);

} // namespace forktail::lab
