// SPDX-License-Identifier: MIT
// Figures from the output of other programs: forktail-load --json, redis-benchmark --csv, forktail explain
// --json. Times become ns. docs/reference/lab-and-scenarios.md lists the names.
#pragma once

#include <map>
#include <string>

#include "results.h"

namespace forktail::lab
{

// Adds `step`.rps, .p99, .errors, .SET.rps, .bucket_25ms, .outage ..., and for each of several servers
// `step`.redis1.p99; `names` maps their addresses to names. False: *error is one sentence, as below.
bool AddLoadFigures(const std::string &step, const std::string &path,
		    const std::map<std::string, std::string> &names, Point *point, std::string *error);

// The same names, as far as redis-benchmark prints them.
bool AddBenchmarkFigures(const std::string &step, const std::string &path, Point *point, std::string *error);

// Adds `step`.cause.fork.share, .explained ...; texts `step`.causes (the largest) and `step`.worst (the worst
// episodes and their evidence).
bool AddExplanation(const std::string &step, const std::string &path,
		    const std::map<std::string, std::string> &names, Point *point, std::string *error);

} // namespace forktail::lab
