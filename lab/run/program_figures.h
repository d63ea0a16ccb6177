// SPDX-License-Identifier: MIT
// Figures out of what other programs wrote: forktail-load's --json, redis-benchmark's --csv, forktail
// explain's
// --json. Times become ns. docs/reference/lab-and-scenarios.md lists the names.
#pragma once

#include <map>
#include <string>

#include "results.h"

namespace forktail::lab
{

// `step`.rps, .p99, .errors, .SET.rps, .bucket_25ms, .outage ..., and of each of several servers
// `step`.redis1.p99; `names` are these servers' by their addresses. False: *error is one sentence, as below.
bool AddLoadFigures(const std::string &step, const std::string &path,
		    const std::map<std::string, std::string> &names, Point *point, std::string *error);

// The same names, as far as redis-benchmark says them.
bool AddBenchmarkFigures(const std::string &step, const std::string &path, Point *point, std::string *error);

// `step`.cause.fork.share, .explained ...; texts `step`.causes (the largest of them) and `step`.worst (the
// worst moments and their evidence).
bool AddExplanation(const std::string &step, const std::string &path,
		    const std::map<std::string, std::string> &names, Point *point, std::string *error);

} // namespace forktail::lab
