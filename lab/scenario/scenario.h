// SPDX-License-Identifier: MIT
// A scenario is an experiment as data: which servers, what load, what happens meanwhile, what is recorded,
// which tables and charts are made of it, and what was published about the same experiment elsewhere. It is
// read from a TOML file, whose reference is docs/reference/scenarios.md; a mistake in it is refused with
// file, line and reason.
//
// Texts marked "template" may hold {name}: the value of a sweep's variable, of a size or of a constant; and
// {name*2/3}: arithmetic with them, rounded down to a whole number (see Expand).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace forktail::lab
{

// Points that something is for: sweep variable -> the values that it may have. Empty: all points.
using Filter = std::map<std::string, std::vector<std::string>>;

// A point of a sweep: variable -> value, and sizes and constants too.
using Values = std::map<std::string, std::string>;

struct Size {
	std::string name;
	double full = 0;    // at scale 1
	double least = 0;   // never less than this
	bool fixed = false; // `full` at every scale
};

struct Sweep {
	std::string name, title;
	std::vector<std::string> values;
	std::map<std::string, std::vector<std::string>>
	    also; // further names that go with the values, in their order
	std::map<std::string, std::vector<std::string>> at; // fewer, at a named scale: "small"
	int line = 0;
	bool keep_servers = false; // servers and their data stay from one value to the next
};

struct ServerSpec {
	std::string name;	  // instances of several are name1, name2 ...
	std::string kind;	  // redis, redis8, valkey, keydb, memcached, nutcracker, haproxy, sentinel
	std::string count = "1";  // template
	std::string program = {}; // in place of the kind's own; not in files
	std::vector<std::string>
	    config; // templates: further arguments (nutcracker: lines of its pool; haproxy: of `global`)
	std::string listen = "unix"; // template: unix or tcp
	std::string cpus;   // template: "0-1"; "each": instance i on CPU i modulo their number; "": all
	std::string memory; // template: limit of a cgroup around all instances together, "256MiB"
	std::string of; // nutcracker, haproxy: the servers behind it; sentinel: the primary that it watches
	std::string replica_of;
	std::string replicas; // template; with cluster: replicas of each primary
	bool cluster = false; // the instances form a Redis Cluster
	bool later = false;   // not started before a step or event says so
	bool say = false;     // tell which program it is and where it listens
	Filter only;
	int line = 0;
};

// One thing done to a server. Exactly one of the first group is set.
struct Action {
	std::string ask;	// template: a Redis command, "BGSAVE", sent to each instance of `server`
	std::string start;	// a server that is `later`
	std::string kill;	// kill -9 of an instance
	std::string move_slots; // template: how many, from `server` (an instance) to `to`
	std::string await;	// what to wait for: snapshot, rewrite, replicas
	std::string spread;	// "on" or "off": soft interrupts over all CPUs (RPS and XPS)
	std::string wait;	// "2s"
	std::string note;	// name: the figures of all servers now
	std::string server, to;
	// The command of `ask` makes the server fork: what it says of its child is told, and kept with the
	// recording.
	bool report = false;
	std::string say; // told when it is done, see Told
	std::string at;	 // of an event: "25%" of the load's duration or requests, or "2s"
	Filter only;
	int line = 0;
};

// When a server said something: the first line of its instances' logs with this text, after the load's first
// event.
struct LogMark {
	std::string name; // of the figure
	std::string server, text;
	Filter only;
	int line = 0;
};

// One step of a point: a load, or an action.
struct StepSpec {
	std::string name; // what its figures are called
	std::string load; // template: forktail-load's own words, without the server and without outputs
	std::string to;	  // template: the server, proxy, cluster, or Sentinels that are asked
	std::string by = "forktail-load"; // template; or redis-benchmark, whose words `load` then holds
	std::string cpus;		  // template: of the load generator
	bool record = false;		  // record the servers, log all requests, explain
	bool client = true;		  // record the load generator, too
	std::string slow;		  // what explain takes for slow, "5ms"; "": its default
	std::string say;		  // told in place of the load's words, see Told
	bool errors = false;		  // requests may fail: a load that lost its server is no failure
	std::vector<Action> events;
	std::vector<LogMark> logs;
	Action action; // if there is no load
	Filter only;
	int line = 0;
};

// How a figure is printed. Figures of times are ns, of sizes bytes, whatever their unit here.
enum class Format { kNumber, kCount, kDecimals1, kDecimals2, kPercent, kMs, kUs, kSeconds, kBytes, kText };

// The name of a figure that is text, or a formula of figures: "run.SET.rps / 1000". {row} stands for the
// row's name. `base.` before a figure takes it from the point that `against` leads to, so that "run.rps /
// base.run.rps" is a gain. A formula whose figure is missing has no value ("-").
struct Column {
	std::string title, value;
	Format format = Format::kCount;
	Filter where;				 // the point of the row: variable -> one value
	Values against;				 // of `base.`: other values of variables
	std::map<std::string, double> published; // row -> figure in the unit that is printed
	int line = 0;
};

// Rows are names, or the points of some variables ("8/tcp": their values joined by "/"), or for each point
// all names. Each column has its value, and the published one beside it where there is any.
struct Table {
	std::string title, note;
	std::vector<std::string> names; // rows by name; {row} in formulas
	std::vector<std::string> by;	// rows by variables
	Filter where;
	std::vector<Column> columns;
	int line = 0;
};

// Lines over a variable's values (numbers: an axis; else bars).
struct Chart {
	std::string title, x, y; // x: the variable; y: what the axis says
	bool log_x = false, log_y = false;
	std::vector<std::string> each; // a chart per name, which is {row}; empty: one
	Filter where;
	std::vector<Column> series; // `published`: by the variable's value, drawn dashed
	int line = 0;
};

struct SwapSpec {
	std::string kind; // zram, file, or empty: no swap of its own
	std::string size; // template: "512MiB"
	Filter only;
	int line = 0;
};

struct Scenario {
	std::string name; // the file's name without .toml
	std::string file;
	std::string title, about;
	// What is printed is not tables but what explain says of the one recorded step of the one point.
	bool explanation = false;
	std::string
	    fit; // a size, in MiB of data, that is made smaller where memory or disk is short; or none
	std::string report, source;	      // "A", and what was published: hardware and versions
	std::string question;		      // what the report left open; may be empty
	std::map<std::string, double> scales; // small, tiny
	std::vector<Size> sizes;
	Values constants;
	std::vector<Sweep> sweeps;
	SwapSpec swap;
	std::vector<ServerSpec> servers;
	std::vector<StepSpec> steps;
	std::vector<Table> tables;
	std::vector<Chart> charts;
};

// Reads and checks a file; `settings` are constants and sizes with values other than the file's. False:
// *error is "FILE:LINE: reason".
bool ReadScenario(const std::string &path, Scenario *scenario, std::string *error,
		  const Values &settings = {});
// The same of what was in it.
bool ParseScenario(const std::string &text, const std::string &path, Scenario *scenario, std::string *error,
		   const Values &settings = {});

// What a scenario is run at: a factor, or one of its named scales.
struct Scale {
	std::string name; // "" if it is a mere number
	double factor = 1;
};

// "small", "0.1". False: *error says why.
bool ParseScale(const Scenario &scenario, const std::string &text, Scale *scale, std::string *error);

// All points of the sweeps at a scale, the last variable fastest. Each has all variables, sizes and
// constants. A scenario without sweeps has one point.
std::vector<Values> PointsOf(const Scenario &scenario, const Scale &scale);

bool Matches(const Filter &filter, const Values &values);

// The text with every {...} replaced. False: *error says which name is not known, or which formula is wrong.
bool Expand(const std::string &text, const Values &values, std::string *expanded, std::string *error);

// A text for people: as a template, but a name may also be a figure, and {name:count} is written as "94,042",
// {name:bytes} as "106 MB".
bool Told(const std::string &text, const Values &values,
	  const std::function<std::optional<double>(const std::string &)> &figure, std::string *told,
	  std::string *error);

// What a table or a chart calls a variable: the title of its sweep, else its name.
std::string TitleOf(const Scenario &scenario, const std::string &variable);

} // namespace forktail::lab
