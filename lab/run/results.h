// SPDX-License-Identifier: MIT
// What came out of a scenario's points: figures and texts by name. The runner makes them, tables and charts
// read them, and they are kept in the run's results.json, so that a run can be printed again, compared, and
// resumed.
//
// A name says the step that gave it and what it is of: run.SET.p99 (ns), run.redis.cpu_percent,
// before.redis.used_memory (bytes). docs/reference/scenarios.md lists them. In names anything but letters and
// digits is
// "_" between dots: run.p99_9, run.READ_MODIFY_WRITE.rps.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/scenario/scenario.h"

namespace forktail::lab
{

struct Point {
	Values values;			       // variables, sizes and constants
	std::map<std::string, double> numbers; // figure -> value; with repeats the median
	std::map<std::string, std::string> texts;
	// With repeats: of each the smallest and the largest.
	std::map<std::string, double> least, most;
	std::vector<std::string> recorded; // run directories under the scenario's, one per recorded step
	int repeats = 1;
};

struct Results {
	std::string scenario, title;
	std::string host, kernel, cpu;		     // where
	std::map<std::string, std::string> versions; // forktail, redis ...
	std::string scale;
	std::string command; // as typed
	double seconds = 0;  // that it took
	long started_unix = 0;
	std::vector<std::string> notes; // what could not be done here, and why
	std::vector<Point> points;	// in the order of PointsOf
};

bool WriteResults(const std::string &path, const Results &results, std::string *error);
bool ReadResults(const std::string &path, Results *results, std::string *error);

} // namespace forktail::lab
