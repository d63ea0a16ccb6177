// SPDX-License-Identifier: MIT
// One host's part of a run.
//
// Between events the rank sleeps, except for a heartbeat every two seconds.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/process.h"
#include "host_run.h"
#include "recording/recording.h"

namespace forktail::hosts
{

namespace
{

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kReadyNs = 30 * kSecondNs, kLoadEndsNs = 30 * kSecondNs, kHeardNs = 2 * kSecondNs;

std::string PathOf(const HostRun &host_run, const std::string &name, const char *extension)
{
	return host_run.directory + "/" + name + extension;
}

// The path of a program of forktail; "": not found.
std::string FindOf(const HostRun &host_run, const std::string &program)
{
	return common::FindProgram(program,
				   host_run.programs.empty() ? common::ProgramPath() : host_run.programs);
}

// The version in a program's output "forktail-load 0.1.0"; "" without one.
std::string VersionOf(const std::string &path)
{
	const std::vector<std::string> lines = common::LinesOf(
	    {.name = path, .argv = {path, "--version"}, .err = common::kNull, .limit_ns = 10 * kSecondNs});
	return lines.empty() ? "" : lines[0].substr(lines[0].find(' ') + 1);
}

bool CheckProgram(const HostRun &host_run, const std::string &program, std::string *error)
{
	const std::string path = FindOf(host_run, program);
	if (path.empty()) {
		*error = "cannot find " + program + " " +
			 (host_run.programs.empty() ? "next to forktail-rank or on PATH"
						    : "in " + host_run.programs);
		return false;
	}
	const std::string version = VersionOf(path);
	if (version == FORKTAIL_VERSION)
		return true;
	*error = path + " has version " + (version.empty() ? "unknown" : version) +
		 ", but this run needs " FORKTAIL_VERSION ": install the same version on all hosts";
	return false;
}

bool StartJob(HostRun *host_run, const Job &job, std::string *error)
{
	auto running = std::make_unique<RunningJob>();
	running->job = job;
	common::Command command{.name = job.name,
				.argv = job.argv,
				.output = PathOf(*host_run, job.name, ".log"),
				.kept = host_run->lock,
				.death_signal = SIGTERM};
	command.argv[0] = FindOf(*host_run, job.argv[0]);
	Message message = NewMessage("started", host_run->host);
	message["name"] = job.name;
	message["argv"] = job.argv;
	if (!common::StartChild(command, &running->child, error))
		return false;
	host_run->running.push_back(std::move(running));
	Send(message);
	return true;
}

// "; its last messages: one line / another", of the lines in child.last; "" without any.
std::string LastWords(const common::Child &child)
{
	std::string text;
	for (const std::string &line : child.last)
		text += (text.empty() ? "; its last messages: " : " / ") + line;
	return text;
}

// Writes a program's lines to its log and reports them.
void ReadLines(HostRun *host_run, RunningJob *r)
{
	for (const std::string &line : r->child.err.Read(r->child.ended)) {
		const bool progress = r->job.is_load() && line.find("/s  ") != std::string::npos;
		std::ofstream(PathOf(*host_run, r->job.name, ".log"), std::ios::app) << line << '\n';
		for (const char *begins :
		     {"recording ", "forktail-clock: comparing clocks with", "forktail-clock: answering on"})
			r->ready = r->ready || line.rfind(begins, 0) == 0;
		Message message = NewMessage(progress ? "progress" : "said", host_run->host);
		message["name"] = r->job.name;
		message["line"] = line;
		Send(message);
		if (!progress)
			common::Remember(&r->child, line);
	}
}

void NoteEnd(HostRun *host_run, RunningJob *r)
{
	if (r->child.ended || !common::HasEnded(&r->child))
		return;
	ReadLines(host_run, r);
	Message message = NewMessage("ended", host_run->host);
	message["name"] = r->job.name;
	message["kind"] = r->job.kind;
	message["well"] = common::EndedWell(r->child) && (r->child.asked || r->job.is_load());
	message["asked"] = r->child.asked;
	message["how"] = common::HowItEnded(r->child) + LastWords(r->child);
	common::CloseStreams(&r->child);
	Send(message);
}

// Waits for events and reports them.
void Look(HostRun *host_run, std::vector<int> fds)
{
	for (const auto &r : host_run->running)
		if (!r->child.ended)
			fds.insert(fds.end(), {r->child.err.fd, r->child.pidfd});
	common::WaitForAny(fds, 500);
	for (const auto &r : host_run->running) {
		ReadLines(host_run, r.get());
		NoteEnd(host_run, r.get());
	}
}

bool AllEnded(const HostRun &host_run, bool loads)
{
	return std::all_of(host_run.running.begin(), host_run.running.end(),
			   [&](const auto &r) { return r->child.ended || r->job.is_load() != loads; });
}

void SignalAll(HostRun *host_run, bool loads, int signal)
{
	for (const auto &r : host_run->running)
		if (r->job.is_load() == loads)
			common::SignalChild(&r->child, signal);
}

// True if the run must stop.
bool StopRequested(common::Lines *words)
{
	for (const std::string &line : words->Read())
		if (line == "end")
			return true;
	return words->fd < 0 || common::Stops() > 0;
}

void EndKind(HostRun *host_run, bool loads)
{
	SignalAll(host_run, loads, SIGTERM);
	for (const uint64_t limit = ft_now_ns() + kLoadEndsNs; !AllEnded(*host_run, loads);) {
		Look(host_run, {});
		if (ft_now_ns() > limit)
			SignalAll(host_run, loads, SIGKILL);
	}
}

} // namespace

bool ReadPlan(const std::string &text, Plan *plan)
{
	const Message json = Message::parse(text, nullptr, false);
	try {
		json.at("duration_ns").get_to(plan->duration_ns);
		json.at("settle_ns").get_to(plan->settle_ns);
		for (const Message &one : json.at("hosts")) {
			PlanHost host = {one.at("name"), one.at("programs"), one.at("directory"), {}};
			for (const Message &job : one.at("jobs"))
				host.jobs.push_back({job.at("kind"), job.at("name"), job.at("argv")});
			for (const Job &job : host.jobs)
				if (job.argv.empty())
					return false;
			plan->hosts.push_back(host);
		}
	} catch (const nlohmann::json::exception &) {
		return false;
	}
	return true;
}

const PlanHost *FindHost(const Plan &plan, const std::string &name)
{
	for (const PlanHost &host : plan.hosts)
		if (host.name == name)
			return &host;
	return nullptr;
}

bool PrepareHostRun(const PlanHost &host, HostRun *host_run, std::string *error)
{
	host_run->host = host.name;
	host_run->programs = host.programs;
	host_run->directory = host.directory;
	std::vector<std::string> seen;
	for (const Job &job : host.jobs) {
		if (std::find(seen.begin(), seen.end(), job.argv[0]) == seen.end() &&
		    !CheckProgram(*host_run, job.argv[0], error))
			return false;
		seen.push_back(job.argv[0]);
	}
	// Fails if the directory exists, regardless of its owner.
	if (mkdir(host_run->directory.c_str(), 0700) != 0) {
		*error = "cannot create " + host_run->directory + ": " + strerror(errno);
		return false;
	}
	const std::string lock = host_run->directory + "/" + kLockFile;
	host_run->lock = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (host_run->lock >= 0 && flock(host_run->lock, LOCK_SH) == 0)
		return true;
	*error = "cannot write " + lock + ": " + strerror(errno);
	return false;
}

bool StartRecorders(HostRun *host_run, const PlanHost &host, std::string *error)
{
	for (const Job &job : host.jobs)
		if (job.is_load())
			host_run->loads.push_back(job);
		else if (!StartJob(host_run, job, error))
			return false;
	const uint64_t limit = ft_now_ns() + kReadyNs;
	for (;;) {
		bool waiting = false;
		for (const auto &r : host_run->running) {
			waiting = waiting || !r->ready;
			if (!r->child.ended)
				continue;
			*error = r->job.argv[0] + " " + common::HowItEnded(r->child) + LastWords(r->child);
			return false;
		}
		if (!waiting)
			return true;
		if (ft_now_ns() > limit || common::Stops() > 0) {
			*error = common::Stops() > 0 ? "stopped by a signal"
						     : "a program was not ready after 30 s";
			return false;
		}
		Look(host_run, {});
	}
}

void RunLoads(HostRun *host_run, uint64_t start_ns, uint64_t deadline_ns)
{
	char at[40];
	std::string error;
	snprintf(at, sizeof(at), "%llu.%09llu", static_cast<unsigned long long>(start_ns / kSecondNs),
		 static_cast<unsigned long long>(start_ns % kSecondNs));
	for (Job &job : host_run->loads) {
		job.argv.insert(job.argv.begin() + 1, {"--start-at", at});
		if (StartJob(host_run, job, &error))
			continue;
		Message message = NewMessage("ended", host_run->host);
		message["name"] = job.name;
		message["kind"] = job.kind;
		message["well"] = message["asked"] = false;
		message["how"] = error;
		Send(message);
	}
	common::Lines words;
	words.fd = STDIN_FILENO;
	fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
	bool loading = true;
	for (uint64_t heard = ft_now_ns(); !StopRequested(&words) && ft_now_ns() < deadline_ns;) {
		Look(host_run, {words.fd});
		if (loading && AllEnded(*host_run, true)) {
			loading = false;
			Send(NewMessage("loaded", host_run->host));
		}
		if (ft_now_ns() - heard < kHeardNs)
			continue;
		heard = ft_now_ns();
		Send(NewMessage("here", host_run->host));
	}
	EndHostRun(host_run);
}

void EndHostRun(HostRun *host_run)
{
	EndKind(host_run, true);
	EndKind(host_run, false);
}

// A line must be shorter than PIPE_BUF to be written atomically, so long texts are cut.

namespace
{

constexpr size_t kLongest = 4000, kLongestText = 1500;

} // namespace

Message NewMessage(const std::string &what, const std::string &host)
{
	return {{"forktail", what}, {"host", host}};
}

void Send(const Message &message)
{
	auto line = [](const Message &t) {
		return t.dump(-1, ' ', true, Message::error_handler_t::replace) + "\n";
	};
	std::string text = line(message);
	if (text.size() > kLongest) {
		Message cut = message;
		for (auto &member : cut)
			if (member.is_string() && member.get_ref<const std::string &>().size() > kLongestText)
				member = member.get_ref<const std::string &>().substr(0, kLongestText);
			else if (member.is_array() && member.dump().size() > kLongestText)
				member = Message::array();
		text = line(cut);
	}
	for (size_t at = 0; at < text.size();) {
		ssize_t n = write(STDOUT_FILENO, text.data() + at, text.size() - at);
		if (n <= 0)
			return; // the reader is gone; the end of standard input reports that, too
		at += static_cast<size_t>(n);
	}
}

} // namespace forktail::hosts
