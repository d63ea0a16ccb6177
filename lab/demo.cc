// SPDX-License-Identifier: MIT
// The demo's course of events; see demo.h. Every figure chosen here has its reason beside it.
#include "lab/demo.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/units.h"
#include "lab/machine.h"
#include "lab/programs.h"
#include "lab/progress.h"
#include "lab/redis.h"
#include "recording/recording.h"

namespace forktail
{
namespace
{

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Values that make a key take about a quarter of a page: one SET copies one page.
constexpr uint64_t kValueBytes = 1000;
// What Redis 7.0 needs for such a key: used_memory_bytes over keys in a demo's run.json.
constexpr uint64_t kBytesPerKey = 1115;
// One set to one get: each set during a snapshot may copy a page.
constexpr const char *kRatio = "1:1";
constexpr int kConnections = 50; // redis-benchmark's number, and every published table's
// Filling with the AOF on takes no longer than filling without and having Redis write all of it afterwards,
// and goes through the path that is measured. Redis must not rewrite it by itself meanwhile, nor take
// snapshots: forks come when the demo says.
const std::vector<std::string> kConfig = {
    "--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--auto-aof-rewrite-percentage", "0"};
const char *const kShownConfig[] = {"appendonly",
				    "appendfsync",
				    "save",
				    "auto-aof-rewrite-percentage",
				    "aof-use-rdb-preamble",
				    "no-appendfsync-on-rewrite",
				    "rdbcompression",
				    "io-threads",
				    "maxmemory",
				    "disable-thp"};

// A child process that the server forks when asked to, and what INFO calls it.
struct Job {
	const char *command; // and, in small letters, the kind of its server report
	const char *kind;
	const char *running, *status, *cow; // in INFO
	double at;			    // of the load's duration
};
constexpr Job kJobs[] = {
    {"BGSAVE", "bgsave", "rdb_bgsave_in_progress", "rdb_last_bgsave_status", "rdb_last_cow_size", 0.25},
    {"BGREWRITEAOF", "bgrewriteaof", "aof_rewrite_in_progress", "aof_last_bgrewrite_status",
     "aof_last_cow_size", 0.625},
};
constexpr size_t kJobCount = std::size(kJobs);
constexpr double kJobSeconds = 30; // how long one may go on when the load is over

struct Demo {
	Session *session;
	DemoOptions options;
	std::string programs; // directory of forktail and its sisters
	std::string run;      // directory
	uint64_t size_mb = 0;
	uint64_t keys = 0;
	std::string data; // the server's directory
	Redis redis;
	time_t started_unix = 0;
	std::vector<std::string> commands;
	Json reports = Json::array();
	size_t next_job = 0;
	bool job_runs = false; // kJobs[next_job] does
	uint64_t job_asked_ns = 0;
};

double SecondsSince(uint64_t start_ns)
{
	return static_cast<double>(ft_now_ns() - start_ns) / 1e9;
}

std::string Quantity(double value)
{
	char text[32];
	snprintf(text, sizeof(text), "%.10g", value);
	return text;
}

Child *StartProgram(Demo *demo, const Command &command, std::string *error)
{
	demo->commands.push_back(CommandLine(command.argv));
	return Start(demo->session, command, error);
}

bool MakeRunDirectory(Demo *demo, std::string *error)
{
	demo->run = demo->options.out;
	if (demo->run.empty()) {
		time_t now = time(nullptr);
		char name[64];
		strftime(name, sizeof(name), "runs/demo-%Y%m%d-%H%M%S", localtime(&now));
		demo->run = name;
	}
	std::error_code ec;
	fs::path path = fs::absolute(demo->run, ec);
	fs::create_directories(path.parent_path(), ec);
	if (mkdir(path.c_str(), 0755) != 0) {
		*error = "can't make the run directory " + demo->run + ": " + std::strerror(errno);
		return false;
	}
	// Half a run is of no use: it goes unless the recordings get done.
	KeepDirectory(demo->session->keeper, path);
	return true;
}

bool StartServer(Demo *demo, std::string *error)
{
	std::string why;
	DiskRoom room = RoomIn(demo->data);
	demo->size_mb = ChooseSizeMb(demo->options.size_mb, AvailableMemoryBytes(), room, &why);
	if (demo->size_mb == 0) {
		*error = why + ": that is too little for a demo";
		return false;
	}
	demo->keys = (demo->size_mb << 20) / kBytesPerKey;
	RedisOptions server;
	server.command.name = "redis-server";
	server.command.argv = {"redis-server"};
	server.command.output = demo->run + "/redis.log";
	server.directory = demo->data;
	server.config = kConfig;
	if (!StartRedis(demo->session, server, &demo->redis, error))
		return false;
	demo->commands.push_back(CommandLine(demo->redis.child->argv));
	RedisInfo info;
	if (!ReadInfo(demo->session, &demo->redis, &info, error))
		return false;
	Say("redis-server " + info["redis_version"] + ", pid " + std::to_string(demo->redis.child->pid) +
	    ", on a Unix socket in " + demo->data);
	if (!why.empty())
		Say("the data set is " + std::to_string(demo->size_mb) + " MiB instead of " +
		    std::to_string(demo->options.size_mb) + ": " + why);
	return true;
}

bool Fill(Demo *demo, std::string *error)
{
	Say("filling it with " + FormatCount(demo->keys) + " keys of " + FormatCount(kValueBytes) +
	    " bytes, about " + std::to_string(demo->size_mb) + " MiB");
	Command fill;
	fill.name = "forktail-load --fill";
	fill.argv = {demo->programs + "/forktail-load", "-s", demo->redis.socket,	  "--fill",
		     std::to_string(demo->keys),	"-d", std::to_string(kValueBytes)};
	fill.output = "/dev/null";
	fill.on_line = SayMeanwhile;
	Child *child = StartProgram(demo, fill, error);
	if (!child)
		return false;
	while (!child->ended)
		if (!Step(demo->session, 100, error))
			return false;
	RedisInfo info;
	if (!Succeeded(*child, error) || !ReadInfo(demo->session, &demo->redis, &info, error))
		return false;
	Say("the server uses " + FormatBytes(Number(info, "used_memory")) + ", resident " +
	    FormatBytes(Number(info, "used_memory_rss")));
	return true;
}

// Asks for the next job, and notes what Redis says of its fork.
bool StartJob(Demo *demo, std::string *error)
{
	const Job &job = kJobs[demo->next_job];
	demo->job_asked_ns = ft_now_ns();
	std::vector<std::string> reply;
	if (!Ask(demo->session, &demo->redis, {job.command}, &reply, error))
		return false;
	// The fork is over when the reply is here, so INFO speaks of it.
	uint64_t replied_ns = ft_now_ns();
	RedisInfo info;
	if (!ReadInfo(demo->session, &demo->redis, &info, error))
		return false;
	uint64_t fork_us = Number(info, "latest_fork_usec");
	demo->reports.push_back({{"t_ns", replied_ns},
				 {"kind", job.kind},
				 {"asked_ns", demo->job_asked_ns},
				 {"latest_fork_usec", fork_us},
				 {"used_memory", Number(info, "used_memory")},
				 {"used_memory_rss", Number(info, "used_memory_rss")}});
	demo->job_runs = true;
	Say(std::string(job.command) + " started; Redis says its fork took " +
	    FormatDuration(fork_us * 1000));
	return true;
}

// Sees whether the job has ended, and notes what Redis says of its copied pages.
bool CheckJob(Demo *demo, RedisInfo *info, std::string *error)
{
	const Job &job = kJobs[demo->next_job];
	if (!ReadInfo(demo->session, &demo->redis, info, error))
		return false;
	if (Number(*info, job.running) != 0)
		return true;
	const std::string &status = (*info)[job.status];
	if (status != "ok") {
		*error = std::string(job.command) + " failed (" + job.status + " is " + status + ")" +
			 LastWords(*demo->redis.child);
		return false;
	}
	Json &report = demo->reports.back();
	report["ended_ns"] = ft_now_ns();
	report[job.cow] = Number(*info, job.cow);
	Say(std::string(job.command) + " done after " + FormatDuration(ft_now_ns() - demo->job_asked_ns) +
	    "; Redis says " + FormatBytes(Number(*info, job.cow)) + " were copied on write");
	demo->job_runs = false;
	demo->next_job++;
	return true;
}

bool RunLoad(Demo *demo, std::string *error)
{
	const DemoOptions &options = demo->options;
	Say("load: " + FormatCount(static_cast<uint64_t>(options.rate)) + " requests/s for " +
	    Quantity(options.seconds) + " s, open loop, " + std::to_string(kConnections) +
	    " connections, SET to GET " + kRatio);
	Command load;
	load.name = "forktail-load";
	load.argv = {demo->programs + "/forktail-load",
		     "--progress",
		     "-s",
		     demo->redis.socket,
		     "-c",
		     std::to_string(kConnections),
		     "--rate",
		     Quantity(options.rate),
		     "--arrival",
		     "poisson",
		     "--duration",
		     Quantity(options.seconds),
		     "--ratio",
		     kRatio,
		     "-r",
		     std::to_string(demo->keys),
		     "-d",
		     std::to_string(kValueBytes),
		     "-o",
		     demo->run + "/load.forktail"};
	load.output = demo->run + "/load.txt";
	load.on_line = SayMeanwhile;
	Child *child = StartProgram(demo, load, error);
	if (!child)
		return false;

	uint64_t start_ns = ft_now_ns();
	while (!child->ended) {
		// Often enough to be on time, and rarely enough that INFO is no load of its own.
		if (!Step(demo->session, 100, error))
			return false;
		if (demo->job_runs) {
			RedisInfo info;
			if (!CheckJob(demo, &info, error))
				return false;
		} else if (demo->next_job < kJobCount &&
			   SecondsSince(start_ns) >= options.seconds * kJobs[demo->next_job].at) {
			if (!StartJob(demo, error))
				return false;
		}
	}
	if (!Succeeded(*child, error))
		return false;
	if (demo->next_job + demo->job_runs < kJobCount)
		Say("note: the load was over before " + std::string(kJobs[kJobCount - 1].command) +
		    " could begin");
	return true;
}

// The child may outlive the load. What it copied is known when it has ended, and only then.
bool FinishJob(Demo *demo, std::string *error)
{
	if (!demo->job_runs)
		return true;
	const Job &job = kJobs[demo->next_job];
	uint64_t start_ns = ft_now_ns(), shown_ns = start_ns;
	Say(std::string("waiting for ") + job.command + " to end");
	while (demo->job_runs && SecondsSince(start_ns) < kJobSeconds) {
		RedisInfo info;
		if (!Step(demo->session, 100, error) || !CheckJob(demo, &info, error))
			return false;
		uint64_t total = Number(info, "current_save_keys_total");
		if (demo->job_runs && total && SecondsSince(shown_ns) >= 1) {
			shown_ns = ft_now_ns();
			SayMeanwhile(
			    std::to_string(100 * Number(info, "current_save_keys_processed") / total) +
			    " % of the keys are written");
		}
	}
	if (demo->job_runs)
		Say(std::string(job.command) + " is not done after " + Quantity(kJobSeconds) +
		    " s and is ended");
	return true;
}

// What analysis reads of it is in docs/data-flow.md.
bool WriteRunJson(Demo *demo, std::string *error)
{
	std::vector<std::string> words = {"CONFIG", "GET"}, reply;
	for (const char *name : kShownConfig)
		words.push_back(name);
	RedisInfo info;
	if (!Ask(demo->session, &demo->redis, words, &reply, error) ||
	    !ReadInfo(demo->session, &demo->redis, &info, error))
		return false;
	Json config = Json::object();
	for (size_t i = 0; i + 1 < reply.size(); i += 2)
		config[reply[i]] = reply[i + 1];
	Json run = {{"host", HostName()},
		    {"kernel", KernelRelease()},
		    {"versions", {{"forktail", FORKTAIL_VERSION}, {"redis", info["redis_version"]}}},
		    {"commands", demo->commands},
		    {"redis_config", config},
		    {"keys", demo->keys},
		    {"value_bytes", kValueBytes},
		    {"used_memory_bytes", Number(info, "used_memory")},
		    {"rss_bytes", Number(info, "used_memory_rss")},
		    {"server_reports", demo->reports},
		    {"started_unix", demo->started_unix}};
	std::string path = demo->run + "/run.json";
	std::ofstream out(path);
	out << run.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
	out.close();
	if (!out) {
		*error = "can't write " + path + ": " + std::strerror(errno);
		return false;
	}
	return true;
}

bool Record(Demo *demo, std::string *error)
{
	if (!StartServer(demo, error) || !Fill(demo, error))
		return false;
	Say("starting the recorder");
	Child *recorder = StartRecorder(demo->session, demo->programs, {demo->redis.child->pid}, false,
					demo->run + "/server.forktail", error);
	if (!recorder)
		return false;
	demo->commands.push_back(CommandLine(recorder->argv));
	return RunLoad(demo, error) && WaitForEnd(demo->session, recorder, SIGINT, 20, error) &&
	       Succeeded(*recorder, error) && FinishJob(demo, error) && WriteRunJson(demo, error) &&
	       WaitForEnd(demo->session, demo->redis.child, SIGTERM, 20, error);
}

} // namespace

bool RunDemo(Session *session, const DemoOptions &options, std::string *error)
{
	Demo demo;
	demo.session = session;
	demo.options = options;
	demo.started_unix = time(nullptr);
	if (!FindPrograms(&demo.programs, error) || !MakeRunDirectory(&demo, error) ||
	    !MakeTempDirectory(session, &demo.data, error) || !Record(&demo, error))
		return false;
	ReleaseDirectory(session->keeper, fs::absolute(demo.run));

	Say("explaining " + demo.run);
	std::string report = demo.run + "/report.html";
	// Not the 99th percentile: what the fork delays is a few hundred requests, and on a busy machine
	// others may be slower still. At this load anything over a few milliseconds had a cause worth a name.
	const std::string slow = "5ms";
	if (!RunForktail(session, demo.programs, {"explain", demo.run, "--slow", slow}, "", error) ||
	    !RunForktail(session, demo.programs, {"report", demo.run, "--slow", slow, "-o", report},
			 "/dev/null", error)) {
		*error += "\nThe recordings are in " + demo.run;
		return false;
	}
	printf("\nreport: %s\n", report.c_str());
	return true;
}

} // namespace forktail
