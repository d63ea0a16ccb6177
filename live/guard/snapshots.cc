// SPDX-License-Identifier: MIT
// When snapshots are taken, saved, explained and deleted.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/files.h"
#include "common/format.h"
#include "common/json.h"
#include "jobs.h"
#include "live/guard.h"
#include "live/snapshot.h"

namespace forktail::live::guard
{

namespace
{

constexpr uint64_t kTakeNs = 120'000'000'000;
constexpr size_t kMostWaiting = 10;

const std::string kUnfinished = ".explain.";

// The JSON result that the child process writes for the guard.
std::string TakeInChild(const snapshot::SnapshotRequest &asked)
{
	snapshot::SnapshotResult taken;
	std::string error;
	const snapshot::SnapshotWhy why = snapshot::TakeSnapshot(asked, &taken, &error);
	return common::Json{{"why", static_cast<int>(why)},
			    {"error", error},
			    {"bytes", taken.bytes},
			    {"copied", taken.copied},
			    {"segments", taken.segments}}
	    .dump(-1, ' ', false, common::Json::error_handler_t::replace);
}

// The first line of an explanation, from its JSON; "" if that cannot be read.
std::string AnswerIn(const std::string &path)
{
	std::ifstream file(path);
	return common::Text(common::ParseMember(file, "answer"), "answer");
}

std::string Because(const Plan &plan)
{
	const Firing &first = plan.fired[0];
	std::string text = first.trigger + ": " + first.what;
	if (!first.server.empty())
		text += " on " + first.server;
	if (plan.count > 1)
		text += ", and " + common::FormatCount(plan.count - 1) + " more";
	return text;
}

common::Json FiredJson(const Plan &plan, uint64_t first_realtime_ns)
{
	common::Json list = common::Json::array();
	for (const Firing &f : plan.fired)
		list.push_back({{"trigger", f.trigger},
				{"server", f.server},
				{"what", f.what},
				{"start_ns", f.start_ns},
				{"end_ns", f.end_ns},
				{"realtime_ns", first_realtime_ns + f.start_ns - plan.fired[0].start_ns}});
	return {{"from_ns", plan.from_ns}, {"to_ns", plan.to_ns}, {"count", plan.count}, {"fired", list}};
}

std::string MarkerText(const std::string &directory, const std::string &name, const Plan &plan,
		       uint64_t realtime_ns)
{
	common::Json marker = FiredJson(plan, realtime_ns);
	marker["name"] = name;
	marker["number"] = NextNumber(directory);
	return marker.dump(1, '\t', false, common::Json::error_handler_t::replace) + "\n";
}

void RemoveUnfinished(const std::string &path)
{
	std::error_code ec;
	std::vector<std::filesystem::path> left;
	for (const auto &entry : std::filesystem::directory_iterator(path, ec))
		if (entry.path().filename().string().starts_with(kUnfinished))
			left.push_back(entry.path());
	for (const auto &file : left)
		std::filesystem::remove(file, ec);
}

// "took longer than 30 s and was killed", "ended with status 3", "was killed by signal 9 (Killed)".
std::string How(const common::Child &child)
{
	if (child.timed_out)
		return "took longer than " + common::FormatDuration(child.command.limit_ns) +
		       " and was killed";
	if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == common::kNotStarted)
		return "could not be started";
	return common::HowItEnded(child);
}

} // namespace

SnapshotJobs::SnapshotJobs(const std::string &ring, const std::string &forktail, Runner *runner)
    : ring_(ring), directory_(ring + "/snapshots"), forktail_(forktail), runner_(*runner)
{
}

SnapshotJobs::~SnapshotJobs()
{
	common::EndChild(&taker_);
}

bool SnapshotJobs::Full()
{
	const std::vector<SavedSnapshot> saved = SnapshotsIn(directory_);
	uint64_t bytes = 0;
	size_t count = 0;
	for (const SavedSnapshot &k : saved) {
		bytes += k.kept ? 0 : k.bytes;
		count += !k.kept;
	}
	return count >= limits_.count || bytes >= limits_.bytes;
}

bool SnapshotJobs::Take(const Plan &plan, uint64_t realtime_ns, const std::vector<CommandOf> &commands)
{
	last_trigger_ = plan.fired[0].trigger;
	last_made_ = false;
	if (limits_.stop_when_full && Full()) {
		figures_.refused++;
		if (!refusal_reported_)
			Say(Level::Warning,
			    directory_ + " is full and when-full is \"stop\": no snapshot is taken. Remove "
					 "old snapshots.");
		refusal_reported_ = true;
		return false;
	}
	refusal_reported_ = false;
	mkdir(directory_.c_str(), 0700);
	taking_ = {plan, realtime_ns, SnapshotName(realtime_ns, plan.fired[0]), "", commands, 0};
	const std::string name = taking_.name;
	std::error_code ec;
	for (int n = 2; std::filesystem::exists(directory_ + "/" + taking_.name, ec); n++)
		taking_.name = name + "-" + std::to_string(n);
	taking_.path = directory_ + "/" + taking_.name;
	snapshot::SnapshotRequest asked;
	asked.ring = ring_;
	asked.from_ns = plan.from_ns;
	asked.to_ns = plan.to_ns;
	asked.why = Because(plan);
	asked.out = taking_.path;
	// A snapshot without it would never be removed, so it appears with it.
	asked.files = {{kMarker, MarkerText(directory_, taking_.name, plan, realtime_ns)}};
	std::string error;
	const common::Command command = {.name = "the snapshot",
					 .work = [asked] { return TakeInChild(asked); },
					 .out = common::kPipe,
					 .err = STDERR_FILENO,
					 .limit_ns = kTakeNs};
	if (common::ForkChild(command, &taker_, &error))
		return true;
	figures_.failed++;
	Say(Level::Error, error);
	return false;
}

void SnapshotJobs::Taken()
{
	const std::vector<std::string> lines = taker_.out.Read(true);
	const common::Json result = common::ParseObject(lines.empty() ? "" : lines[0]);
	const auto why = static_cast<snapshot::SnapshotWhy>(common::Whole(result, "why"));
	if (!common::EndedWell(taker_)) {
		figures_.failed++;
		Say(Level::Error, "the snapshot " + taking_.name + " " + How(taker_));
		return;
	}
	if (why != snapshot::SnapshotWhy::Done) {
		figures_.failed++;
		figures_.disk_full += why == snapshot::SnapshotWhy::DiskFull;
		if (why != snapshot::SnapshotWhy::DiskFull || !disk_full_reported_)
			Say(Level::Error, "cannot take the snapshot " + taking_.name + ": " +
					      common::Text(result, "error"));
		disk_full_reported_ |= why == snapshot::SnapshotWhy::DiskFull;
		return;
	}
	disk_full_reported_ = false;
	last_made_ = true;
	figures_.taken[taking_.plan.fired[0].trigger]++;
	Say(Level::Notice, "snapshot " + taking_.path + " (" +
			       common::FormatBytes(common::Whole(result, "bytes")) +
			       "): " + Because(taking_.plan));
	if (!limits_.stop_when_full)
		figures_.removed += MakeRoom(directory_, limits_.count, limits_.bytes, taking_.name);
	after_.push_back(taking_);
	if (after_.size() > kMostWaiting) {
		// The second, because the first is in progress.
		Say(Level::Warning,
		    "too many snapshots wait for an explanation: " + after_[1].name + " is not explained");
		figures_.not_explained++;
		after_.erase(after_.begin() + 1);
	}
	Continue();
}

bool SnapshotJobs::BeginExplaining(const Job &job)
{
	std::string error;
	const bool good = runner_.Explain(job.name, limits_.explain_ns, &error);
	if (!good)
		Say(Level::Error, error);
	return good;
}

bool SnapshotJobs::BeginCommand(const Job &job, const CommandOf &command)
{
	const std::string &name = command.command.argv[0];
	if (geteuid() == 0) {
		figures_.commands_failed++;
		Say(Level::Error,
		    name + " is not run because root owns the ring. Start the recorder with --user.");
		return false;
	}
	std::string error;
	const bool good = runner_.RunCommand(job.name, command.trigger, name, limits_.command_ns, &error);
	if (!good)
		Say(Level::Error, error);
	figures_.commands++;
	return good;
}

bool SnapshotJobs::BeginStep(Job *job)
{
	std::error_code ec;
	if (!std::filesystem::exists(job->path, ec))
		return false; // it was removed by MakeRoom()
	for (; job->step < 1 + job->commands.size(); job->step++) {
		if (job->step == 0 && (forktail_.empty() || !limits_.explain))
			continue;
		const bool begun =
		    job->step == 0 ? BeginExplaining(*job) : BeginCommand(*job, job->commands[job->step - 1]);
		if (begun)
			return true;
	}
	return false;
}

void SnapshotJobs::StepEnded(const Job &job)
{
	const bool good = common::EndedWell(runner_.program()), command = job.step > 0;
	if (!command) {
		if (good)
			for (const char *file : kExplanations)
				rename((job.path + "/." + file).c_str(), (job.path + "/" + file).c_str());
		else
			RemoveUnfinished(job.path);
		if (std::string answer = good ? AnswerIn(job.path + "/" + kExplanations[1]) : "";
		    !answer.empty())
			Say(Level::Notice, job.name + ": " + answer);
		figures_.explained += good;
		figures_.not_explained += !good;
	}
	figures_.commands_failed += command && !good;
	if (!good)
		Say(Level::Warning,
		    runner_.program().command.name + " of " + job.name + " " + How(runner_.program()));
}

void SnapshotJobs::Continue()
{
	while (!after_.empty() && !runner_.running()) {
		if (BeginStep(&after_[0]))
			return;
		after_.pop_front();
	}
}

bool SnapshotJobs::Look()
{
	if (runner_.HasEnded()) {
		StepEnded(after_[0]);
		after_[0].step++;
		Continue();
	}
	if (!taker_.running() || !common::HasEnded(&taker_))
		return false;
	Taken();
	return true;
}

namespace
{

// The longest delay until the recorder writes an event, and how long the planner waits for a recorder that
// writes nothing.
constexpr uint64_t kWrittenNs = 1'200'000'000, kPatienceNs = 6'000'000'000;

uint64_t Before(uint64_t t_ns, uint64_t ns)
{
	return t_ns > ns ? t_ns - ns : 0;
}

} // namespace

FireResult Planner::Fire(const Firing &fired, uint64_t before_ns, uint64_t after_ns)
{
	const bool begins = plan_.empty();
	if (begins && fired.end_ns + before_ns < cool_ns_) {
		counted_++;
		return FireResult::Counted;
	}
	const uint64_t from_ns = Before(fired.start_ns, before_ns), to_ns = fired.end_ns + after_ns;
	plan_.from_ns = begins ? from_ns : std::min(plan_.from_ns, from_ns);
	const uint64_t most_ns = begins ? to_ns : plan_.fired[0].end_ns + kMostAfterNs;
	plan_.to_ns = std::max(plan_.to_ns, std::min(to_ns, std::max(most_ns, plan_.to_ns)));
	plan_.count++;
	if (plan_.fired.size() < kMostFirings)
		plan_.fired.push_back(fired);
	return begins ? FireResult::Begun : FireResult::Added;
}

Plan Planner::Due(uint64_t newest_ns, uint64_t now_ns)
{
	Plan due;
	if (plan_.empty() || making_ || now_ns < cool_ns_ ||
	    (newest_ns < plan_.to_ns + kWrittenNs && now_ns < plan_.to_ns + kPatienceNs))
		return due;
	std::swap(due, plan_);
	making_ = true;
	return due;
}

void Planner::Made(uint64_t now_ns)
{
	making_ = false;
	cool_ns_ = now_ns + cooldown_ns_;
}

namespace
{

constexpr size_t kMostName = 100;
constexpr size_t kMostMarker = 1 << 20; // bytes

// The marker of a snapshot; an empty object: none.
common::Json MarkerIn(const std::filesystem::path &snapshot)
{
	std::string text;
	return common::ReadRegular(snapshot / kMarker, kMostMarker, &text) ? common::ParseObject(text)
									   : common::Json::object();
}

uint64_t BytesIn(const std::filesystem::path &directory)
{
	std::error_code ec;
	uint64_t bytes = 0;
	for (const auto &entry : std::filesystem::directory_iterator(directory, ec))
		if (const uint64_t size = entry.is_regular_file(ec) ? entry.file_size(ec) : 0; !ec)
			bytes += size;
	return bytes;
}

} // namespace

std::string SnapshotName(uint64_t realtime_ns, const Firing &first)
{
	const time_t seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
	char when[32] = "";
	struct tm utc = {};
	gmtime_r(&seconds, &utc);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &utc);
	std::string name = when;
	for (const std::string &part : {first.server, first.trigger})
		if (!part.empty())
			name += "-" + part;
	std::string out;
	for (const char c : name)
		if (isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.')
			out += c;
		else if (out.back() != '-')
			out += '-';
	return out.substr(0, kMostName);
}

std::vector<SavedSnapshot> SnapshotsIn(const std::string &directory)
{
	std::vector<SavedSnapshot> saved;
	std::error_code ec;
	for (const auto &entry : std::filesystem::directory_iterator(directory, ec)) {
		if (entry.is_symlink(ec) || !entry.is_directory(ec))
			continue;
		const std::string name = entry.path().filename();
		const common::Json marker = MarkerIn(entry.path());
		if (const uint64_t number = common::Whole(marker, "number");
		    number && common::Text(marker, "name") == name)
			saved.push_back({name, number, BytesIn(entry.path()),
					 std::filesystem::exists(entry.path() / kKeepFile, ec)});
	}
	std::ranges::sort(saved, {}, &SavedSnapshot::number);
	return saved;
}

uint64_t NextNumber(const std::string &directory)
{
	const std::vector<SavedSnapshot> saved = SnapshotsIn(directory);
	return saved.empty() ? 1 : saved.back().number + 1;
}

size_t MakeRoom(const std::string &directory, uint64_t count, uint64_t bytes, const std::string &keep)
{
	std::vector<SavedSnapshot> saved = SnapshotsIn(directory);
	std::erase_if(saved, [](const SavedSnapshot &s) { return s.kept; });
	size_t left = saved.size(), gone = 0;
	uint64_t total = 0;
	for (const SavedSnapshot &k : saved)
		total += k.bytes;
	for (const SavedSnapshot &k : saved) {
		if (left <= count && total <= bytes)
			break;
		std::error_code ec;
		if (k.name == keep)
			continue;
		std::filesystem::remove_all(directory + "/" + k.name, ec);
		left--;
		total -= k.bytes;
		gone += !ec;
	}
	return gone;
}

} // namespace forktail::live::guard
