// SPDX-License-Identifier: MIT
// The results of a scenario's points: figures and texts by name, stored in results.json, so that a run can be
// printed again, compared and resumed.
//
// A name has the step and the figure: run.SET.p99 (ns), run.redis.cpu_percent, before.redis.used_memory
// (bytes). docs/reference/lab-and-scenarios.md lists them. Characters other than letters and digits become
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
	// With repeats: the smallest and the largest value.
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
	double seconds = 0;  // duration
	long started_unix = 0;
	std::vector<std::string> notes; // what this host does not support, and why
	std::vector<Point> points;	// in the order of PointsOf
};

bool WriteResults(const std::string &path, const Results &results, std::string *error);
bool ReadResults(const std::string &path, Results *results, std::string *error);

} // namespace forktail::lab
