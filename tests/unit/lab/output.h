// SPDX-License-Identifier: MIT
// A small scenario and its results, for the tests of tables, charts, pages and comparisons.
#pragma once

#include "lab/run/results.h"
#include "lab/scenario/scenario.h"

namespace forktail::test
{

inline lab::Column MakeColumn(const std::string &title, const std::string &value,
			      lab::Format format = lab::Format::kCount)
{
	lab::Column column;
	column.title = title;
	column.value = value;
	column.format = format;
	return column;
}

// Two sweeps: clients 8 and 20, listen unix and tcp. run.SET.rps is 1000 times the clients; over tcp it is
// half of that.
inline lab::Scenario SampleScenario()
{
	lab::Scenario scenario;
	scenario.name = "sample";
	scenario.title = "A sample";
	scenario.about = "What a test needs.";
	lab::Sweep clients, listen;
	clients.name = "clients";
	clients.title = "connections";
	clients.values = {"8", "20"};
	listen.name = "listen";
	listen.values = {"unix", "tcp"};
	scenario.sweeps = {clients, listen};
	lab::StepSpec step;
	step.name = "run";
	step.load = "-t set";
	step.record = true;
	scenario.steps = {step};
	return scenario;
}

inline lab::Results SampleResults()
{
	lab::Results results;
	results.scenario = "sample";
	results.title = "A sample";
	results.host = "box";
	results.kernel = "6.1.0";
	results.cpu = "Some CPU";
	results.versions = {{"forktail", "0.1.0"}, {"redis", "7.0.15"}};
	results.scale = "small";
	results.command = "forktail lab run sample --scale small";
	results.seconds = 12.5;
	results.started_unix = 1700000000;
	results.notes = {"no zram here: the module is missing"};
	for (const char *clients : {"8", "20"})
		for (const char *listen : {"unix", "tcp"}) {
			lab::Point point;
			point.values = {{"clients", clients}, {"listen", listen}, {"keys", "5000"}};
			double rps = std::stod(clients) * (std::string(listen) == "tcp" ? 500 : 1000);
			point.numbers = {{"run.SET.rps", rps},
					 {"run.SET.p99_9", rps * 1234},
					 {"run.LRANGE_100.rps", rps / 10},
					 {"run.redis.cpu_percent", 61.44},
					 {"run.redis.used_memory", 84e6}};
			point.texts = {
			    {"run.causes", "fork 61 %, run queue 20 %"},
			    {"run.worst",
			     "the fork held the server for 58.9 ms\n  it copied page tables\nanother\n"}};
			point.recorded = {std::string("point-") + clients + "-" + listen};
			results.points.push_back(point);
		}
	return results;
}

} // namespace forktail::test
