// SPDX-License-Identifier: MIT
// See host_run.h. Between events the rank sleeps, except for a heartbeat every two seconds.
#include "host_run.h"

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

#include "common/process/stops.h"
#include "common/process/words.h"
#include "rank_protocol.h"
#include "recording/recording.h"

namespace forktail::hosts
{
namespace
{

constexpr uint64_t kReadyNs = 30 * kSecondNs, kLoadEndsNs = 30 * kSecondNs, kHeardNs = 2 * kSecondNs;

std::string PathOf(const Work &work, const std::string &name, const char *extension)
{
	return work.directory + "/" + name + extension;
}

// The path of a program of forktail; "": not found.
std::string FindOf(const Work &work, const std::string &program)
{
	return common::FindProgram(program, work.programs.empty() ? common::ProgramPath() : work.programs);
}

// The version in a program's output "forktail-load 0.1.0"; "" if there is none.
std::string VersionOf(const std::string &path)
{
	const std::vector<std::string> lines = common::LinesOf(
	    {.name = path, .argv = {path, "--version"}, .err = common::kNull, .limit_ns = 10 * kSecondNs});
	return lines.empty() ? "" : lines[0].substr(lines[0].find(' ') + 1);
}

bool CheckProgram(const Work &work, const std::string &program, std::string *error)
{
	const std::string path = FindOf(work, program);
	if (path.empty()) {
		*error = "cannot find " + program + " " +
			 (work.programs.empty() ? "next to forktail-rank or on PATH" : "in " + work.programs);
		return false;
	}
	const std::string version = VersionOf(path);
	if (version == FORKTAIL_VERSION)
		return true;
	*error = path + " has version " + (version.empty() ? "unknown" : version) +
		 ", but this run needs " FORKTAIL_VERSION ": install the same version on all hosts";
	return false;
}

bool StartJob(Work *work, const Job &job, std::string *error)
{
	auto running = std::make_unique<Running>();
	running->job = job;
	common::Command command{.name = job.name,
				.argv = job.argv,
				.output = PathOf(*work, job.name, ".log"),
				.kept = work->lock,
				.death_signal = SIGTERM};
	command.argv[0] = FindOf(*work, job.argv[0]);
	Told told = Tell("started", work->host);
	told["name"] = job.name;
	told["argv"] = job.argv;
	if (!common::StartChild(command, &running->child, error))
		return false;
	work->running.push_back(std::move(running));
	Send(told);
	return true;
}

const char *KindOf(const Job &job)
{
	return job.kind == Job::kLoad ? "load" : job.kind == Job::kRecorder ? "recorder" : "clock";
}

// Writes a program's lines to its log and reports them.
void ReadLines(Work *work, Running *r)
{
	for (const std::string &line : r->child.err.Read(r->child.ended)) {
		const bool progress = r->job.kind == Job::kLoad && line.find("/s  ") != std::string::npos;
		std::ofstream(PathOf(*work, r->job.name, ".log"), std::ios::app) << line << '\n';
		for (const char *begins :
		     {"recording ", "forktail-clock: comparing with", "forktail-clock: answering on"})
			r->ready = r->ready || line.rfind(begins, 0) == 0;
		Told told = Tell(progress ? "progress" : "said", work->host);
		told["name"] = r->job.name;
		told["line"] = line;
		Send(told);
		if (!progress)
			common::Remember(&r->child, line);
	}
}

void NoteEnd(Work *work, Running *r)
{
	if (r->child.ended || !common::HasEnded(&r->child))
		return;
	ReadLines(work, r);
	Told told = Tell("ended", work->host);
	told["name"] = r->job.name;
	told["kind"] = KindOf(r->job);
	told["well"] = common::EndedWell(r->child) && (r->child.asked || r->job.kind == Job::kLoad);
	told["asked"] = r->child.asked;
	told["how"] = common::HowItEnded(r->child) + LastWords(r->child);
	common::CloseStreams(&r->child);
	Send(told);
}

// Waits for events and reports them.
void Look(Work *work, std::vector<int> fds)
{
	for (const auto &r : work->running)
		if (!r->child.ended)
			fds.insert(fds.end(), {r->child.err.fd, r->child.pidfd});
	common::WaitForAny(fds, 500);
	for (const auto &r : work->running) {
		ReadLines(work, r.get());
		NoteEnd(work, r.get());
	}
}

bool AllEnded(const Work &work, bool loads)
{
	return std::all_of(work.running.begin(), work.running.end(), [&](const auto &r) {
		return r->child.ended || (r->job.kind == Job::kLoad) != loads;
	});
}

void SignalAll(Work *work, bool loads, int signal)
{
	for (const auto &r : work->running)
		if ((r->job.kind == Job::kLoad) == loads)
			common::SignalChild(&r->child, signal);
}

// True if the run must stop.
bool Asked(common::Lines *words)
{
	for (const std::string &line : words->Read())
		if (line == "end")
			return true;
	return words->fd < 0 || common::Stops() > 0;
}

void EndKind(Work *work, bool loads)
{
	SignalAll(work, loads, SIGTERM);
	for (const uint64_t limit = ft_now_ns() + kLoadEndsNs; !AllEnded(*work, loads);) {
		Look(work, {});
		if (ft_now_ns() > limit)
			SignalAll(work, loads, SIGKILL);
	}
}

} // namespace

std::string DirectoryOf(const Plan &plan, const std::string &token, const std::string &host)
{
	return plan.scratch + "/forktail-hosts-" + token + "-" + host;
}

bool PrepareWork(const Plan &plan, const PlanHost &host, const std::string &token, Work *work,
		 std::string *error)
{
	work->host = host.name;
	work->programs = host.programs;
	work->directory = DirectoryOf(plan, token, host.name);
	std::vector<std::string> seen;
	for (const Job &job : JobsOf(plan, host, work->directory)) {
		if (std::find(seen.begin(), seen.end(), job.argv[0]) == seen.end() &&
		    !CheckProgram(*work, job.argv[0], error))
			return false;
		seen.push_back(job.argv[0]);
	}
	// Fails if the directory exists, whoever owns it.
	if (mkdir(work->directory.c_str(), 0700) != 0) {
		*error = "cannot create " + work->directory + ": " + strerror(errno);
		return false;
	}
	const std::string lock = work->directory + "/" + kLockFile;
	work->lock = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (work->lock >= 0 && flock(work->lock, LOCK_SH) == 0)
		return true;
	*error = "cannot write " + lock + ": " + strerror(errno);
	return false;
}

bool StartRecorders(Work *work, const Plan &plan, const PlanHost &host, std::string *error)
{
	for (const Job &job : JobsOf(plan, host, work->directory))
		if (job.kind == Job::kLoad)
			work->loads.push_back(job);
		else if (!StartJob(work, job, error))
			return false;
	const uint64_t limit = ft_now_ns() + kReadyNs;
	for (;;) {
		bool waiting = false;
		for (const auto &r : work->running) {
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
		Look(work, {});
	}
}

void RunLoads(Work *work, uint64_t start_ns, uint64_t deadline_ns)
{
	char at[40];
	std::string error;
	snprintf(at, sizeof(at), "%llu.%09llu", static_cast<unsigned long long>(start_ns / kSecondNs),
		 static_cast<unsigned long long>(start_ns % kSecondNs));
	for (Job &job : work->loads) {
		job.argv.insert(job.argv.begin() + 1, {"--start-at", at});
		if (StartJob(work, job, &error))
			continue;
		Told told = Tell("ended", work->host);
		told["name"] = job.name;
		told["kind"] = KindOf(job);
		told["well"] = told["asked"] = false;
		told["how"] = error;
		Send(told);
	}
	common::Lines words;
	words.fd = STDIN_FILENO;
	fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
	bool loading = true;
	for (uint64_t heard = ft_now_ns(); !Asked(&words) && ft_now_ns() < deadline_ns;) {
		Look(work, {words.fd});
		if (loading && AllEnded(*work, true)) {
			loading = false;
			Send(Tell("loaded", work->host));
		}
		if (ft_now_ns() - heard < kHeardNs)
			continue;
		heard = ft_now_ns();
		Send(Tell("here", work->host));
	}
	EndWork(work);
}

void EndWork(Work *work)
{
	EndKind(work, true);
	EndKind(work, false);
}

std::string LastWords(const common::Child &child)
{
	std::string text;
	for (const std::string &line : child.last)
		text += (text.empty() ? "; its last messages: " : " / ") + line;
	return text;
}

} // namespace forktail::hosts
