// SPDX-License-Identifier: MIT
// A scenario describes an experiment: servers, load, events, recording, tables, charts, and published figures
// to compare with. It is a TOML file (docs/reference/lab-and-scenarios.md). Errors have file, line and
// reason.
//
// Texts marked "template" may contain {name}, the value of a sweep's variable, a size or a constant, and
// {name*2/3}, arithmetic rounded down to a whole number (see Expand).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace forktail::lab
{

// Selects points: sweep variable -> allowed values. Empty: all points.
using Filter = std::map<std::string, std::vector<std::string>>;

// A point of a sweep: values of variables, sizes and constants.
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
	std::map<std::string, std::vector<std::string>> also; // further names with one value per value
	std::map<std::string, std::vector<std::string>> at;   // fewer values at a named scale: "small"
	int line = 0;
	bool keep_servers = false; // servers and their data remain from one value to the next
};

struct ServerSpec {
	std::string name;	  // instances of several are name1, name2 ...
	std::string kind;	  // redis, redis8, valkey, keydb, memcached, nutcracker, haproxy, sentinel
	std::string count = "1";  // template
	std::string program = {}; // instead of the kind's program; not in files
	std::vector<std::string>
	    config; // templates: further arguments (nutcracker: lines of its pool; haproxy: of `global`)
	std::string listen = "unix"; // template: unix or tcp
	std::string cpus;   // template: "0-1"; "each": instance i on CPU i modulo their number; "": all
	std::string memory; // template: limit of a cgroup around all instances together, "256MiB"
	std::string of; // nutcracker, haproxy: the servers behind it; sentinel: the primary that it watches
	std::string replica_of;
	std::string replicas; // template; with cluster: replicas of each primary
	bool cluster = false; // the instances form a Redis Cluster
	bool later = false;   // started by a step or event
	bool say = false;     // print its program and address
	Filter only;
	int line = 0;
};

// An action on a server. Exactly one of the first group is set.
struct Action {
	std::string ask;	// template: a Redis command, "BGSAVE", sent to each instance of `server`
	std::string start;	// a server that is `later`
	std::string kill;	// kill -9 of an instance
	std::string move_slots; // template: the number of slots, from `server` (an instance) to `to`
	std::string await;	// what to wait for: snapshot, rewrite, replicas
	std::string spread;	// "on" or "off": soft interrupts over all CPUs (RPS and XPS)
	std::string wait;	// "2s"
	std::string note;	// name: the figures of all servers now
	std::string server, to;
	// The command of `ask` forks: the server's report about the child is printed and stored with the
	// recording.
	bool report = false;
	std::string say; // printed when it is done, see ExpandText
	std::string at;	 // of an event: "25%" of the load's duration or requests, or "2s"
	Filter only;
	int line = 0;
};

// The time of a log message: the first line with this text in the logs of the server's instances, after the
// load's first event.
struct LogMark {
	std::string name; // of the figure
	std::string server, text;
	Filter only;
	int line = 0;
};

// One step of a point: a load, or an action.
struct StepSpec {
	std::string name;		  // the prefix of its figures
	std::string load;		  // template: arguments of forktail-load, without server and outputs
	std::string to;			  // template: the server, proxy, cluster or Sentinels
	std::string by = "forktail-load"; // template; or redis-benchmark, then `load` has its arguments
	std::string cpus;		  // template: of the load generator
	bool record = false;		  // record the servers, log all requests, explain
	bool client = true;		  // record the load generator, too
	std::string requests;		  // sample of `--requests`, "1/16"; "": the kernel logs no requests
	std::string slow;		  // threshold of slow requests for explain, "5ms"; "": the default
	std::string say;		  // printed instead of the load's arguments, see ExpandText
	bool errors = false;		  // requests may fail: a load that lost its server is not a failure
	std::vector<Action> events;
	std::vector<LogMark> logs;
	Action action; // if there is no load
	Filter only;
	int line = 0;
};

// Print format of a figure. Figures of times are stored in ns, of sizes in bytes.
enum class Format { kNumber, kCount, kDecimals1, kDecimals2, kPercent, kMs, kUs, kSeconds, kBytes, kText };

// `value` is the name of a text, or a formula of figures: "run.SET.rps / 1000". {row} is the row's name.
// `base.` takes a figure from the point selected by `against`, so "run.rps / base.run.rps" is a ratio. A
// formula with a missing figure has no value ("-").
struct Column {
	std::string title, value;
	Format format = Format::kCount;
	Filter where;				 // the point of the row: variable -> one value
	Values against;				 // of `base.`: changed values of variables
	std::map<std::string, double> published; // row -> figure in the printed unit
	int line = 0;
};

// Rows are names, or points of some variables ("8/tcp": their values joined by "/"), or all names for each
// point. Each column has its value and, if there is one, the published value.
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
	std::string title, x, y; // x: the variable; y: the title of the axis
	bool log_x = false, log_y = false;
	std::vector<std::string> each; // one chart per name, which is {row}; empty: one chart
	Filter where;
	std::vector<Column> series; // `published`: by the variable's value, drawn dashed
	int line = 0;
};

struct SwapSpec {
	std::string kind; // zram, file, or empty: no own swap
	std::string size; // template: "512MiB"
	Filter only;
	int line = 0;
};

struct Scenario {
	std::string name; // the file's name without .toml
	std::string file;
	std::string title, about;
	// Prints the explanation of the only recorded step instead of tables.
	bool explanation = false;
	std::string fit;	    // a size in MiB that is reduced if memory or disk is short; or ""
	std::string report, source; // "A", and its source: hardware and versions
	std::string question;	    // the open question of the report; may be empty
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

// Reads and checks a file; `settings` changes constants and sizes. False: *error is "FILE:LINE: reason".
bool ReadScenario(const std::string &path, Scenario *scenario, std::string *error,
		  const Values &settings = {});
// The same for the content of a file.
bool ParseScenario(const std::string &text, const std::string &path, Scenario *scenario, std::string *error,
		   const Values &settings = {});

// The scale of a run: a factor, or one of the named scales.
struct Scale {
	std::string name; // "" for a number
	double factor = 1;
};

// Parses "small" or "0.1". False: *error is one sentence.
bool ParseScale(const Scenario &scenario, const std::string &text, Scale *scale, std::string *error);

// All points of the sweeps at a scale, the last variable fastest. Each has all variables, sizes and
// constants. A scenario without sweeps has one point.
std::vector<Values> PointsOf(const Scenario &scenario, const Scale &scale);

bool Matches(const Filter &filter, const Values &values);

// Replaces every {...} in the text. False: *error names the unknown name or invalid formula.
bool Expand(const std::string &text, const Values &values, std::string *expanded, std::string *error);

// Expands a message: like a template, but a name may also be a figure, {name:count} becomes "94,042" and
// {name:bytes} "106 MB".
bool ExpandText(const std::string &text, const Values &values,
		const std::function<std::optional<double>(const std::string &)> &figure,
		std::string *expanded, std::string *error);

// The title of a variable in tables and charts: the title of its sweep, else its name.
std::string TitleOf(const Scenario &scenario, const std::string &variable);

} // namespace forktail::lab
