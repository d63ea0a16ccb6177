// SPDX-License-Identifier: MIT
// See begin.h. Messages between rank 0 and another rank: "hello VERSION" / "plan TEXT" / "ready" or "cannot"
// / "measure", then round trips / "go NANOSECONDS" by the other's CLOCK_MONOTONIC. Rank 0 may send "stop"
// instead of any message.
#include "begin.h"

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <vector>

#include "common/process/stops.h"
#include "hosts/host_run.h"
#include "hosts/rank_protocol.h"
#include "recording/recording.h"
#include "talk.h"

namespace forktail::hosts
{
namespace
{

constexpr uint64_t kSecond = 1'000'000'000, kSpare = 90 * kSecond;
constexpr double kPatience = 60;

bool Begins(const std::string &text, const char *with, std::string *rest)
{
	const std::string start = std::string(with) + " ";
	if (text.rfind(start, 0) != 0)
		return false;
	*rest = text.substr(start.size());
	return true;
}

int Cannot(const std::string &host, const std::string &why)
{
	Told told = Tell("cannot", host);
	told["why"] = why;
	Send(told);
	return 3;
}

int StopAll(int ranks)
{
	for (int i = 1; i < ranks; i++)
		SendText(i, "stop");
	EndTalk();
	return 3;
}

// True if all ranks have this version; else the difference is reported.
bool SameVersions(int ranks)
{
	bool same = true;
	for (int i = 1; i < ranks; i++) {
		std::string text, said, host;
		if (!ReceiveText(i, kPatience, &text) || !Begins(text, "hello", &said))
			return false;
		std::istringstream words(said);
		words >> said >> host;
		if (said == FORKTAIL_VERSION)
			continue;
		Cannot(host, "its forktail-rank has version " + said +
				 ", but this run needs " FORKTAIL_VERSION
				 ": install the same version on all hosts");
		same = false;
	}
	return same;
}

void TellWho(const std::string &host)
{
	char boot[40];
	struct utsname u;
	uname(&u);
	ft_boot_id(boot);
	Told told = Tell("hello", host);
	told["pid"] = getpid();
	told["parent"] = getppid();
	told["boot_id"] = boot;
	told["host_name"] = u.nodename;
	told["kernel"] = u.release;
	told["version"] = FORKTAIL_VERSION;
	Send(told);
}

uint64_t RealtimeAt(uint64_t monotonic_ns)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	const uint64_t real =
	    static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
	return real + (monotonic_ns - ft_now_ns());
}

// Prepares this host and gets the start time. False: the run does not start, and the reason is reported.
bool Agree(Work *work, const std::string &token, const std::string &host, Plan *plan, uint64_t *begin_ns)
{
	std::string text, rest, error;
	SendText(0, "hello " FORKTAIL_VERSION " " + host);
	if (!ReceiveText(0, kPatience, &text) || !Begins(text, "plan", &rest))
		return false;
	const PlanHost *mine = ParsePlan(rest, "the plan", plan, &error) ? FindHost(*plan, host) : nullptr;
	if (!mine && error.empty())
		error = "the plan has no host " + host;
	const bool can = mine && PrepareWork(*plan, *mine, token, work, &error) &&
			 StartRecorders(work, *plan, *mine, &error);
	if (!can)
		Cannot(host, error);
	SendText(0, can ? "ready" : "cannot");
	// Other hosts may need time until their recorders are ready.
	if (!ReceiveText(0, kPatience, &text) || text != "measure")
		return false;
	AnswerMeasure();
	if (!ReceiveText(0, kPatience, &text) || !Begins(text, "go", &rest))
		return false;
	*begin_ns = strtoull(rest.c_str(), nullptr, 10);
	return true;
}

} // namespace

int Lead(const std::string &plan_path, int ranks)
{
	std::ifstream in(plan_path);
	std::stringstream text;
	text << in.rdbuf();
	Plan plan;
	std::string error, answer;
	if (!ParsePlan(text.str(), plan_path, &plan, &error)) {
		Cannot("", error);
		return StopAll(ranks);
	}
	if (!SameVersions(ranks))
		return StopAll(ranks);
	for (int i = 1; i < ranks; i++)
		SendText(i, "plan " + text.str());
	bool all = true;
	for (int i = 1; i < ranks; i++)
		all = ReceiveText(i, kPatience, &answer) && answer == "ready" && all;
	if (!all || common::Stops() > 0)
		return StopAll(ranks);
	std::vector<int64_t> ahead(static_cast<size_t>(ranks));
	for (int i = 1; i < ranks; i++) {
		SendText(i, "measure");
		ahead[static_cast<size_t>(i)] = MeasureAhead(i);
	}
	const uint64_t begin = ft_now_ns() + plan.settle_ns;
	for (int i = 1; i < ranks; i++)
		SendText(i, "go " +
				std::to_string(begin + static_cast<uint64_t>(ahead[static_cast<size_t>(i)])));
	Told told = Tell("go", "");
	told["seconds"] = static_cast<double>(plan.settle_ns) * 1e-9;
	Send(told);
	EndTalk();
	return 0;
}

int Follow(const std::string &token, const std::string &host)
{
	// This rank and its programs end when mpirun's daemon dies.
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	TellWho(host);
	Work work;
	Plan plan;
	uint64_t begin_ns = 0;
	const bool go = Agree(&work, token, host, &plan, &begin_ns);
	if (common::Stops() == 0) // else the other ranks may be gone
		EndTalk();
	if (go)
		RunLoads(&work, RealtimeAt(begin_ns), begin_ns + plan.duration_ns + kSpare);
	else
		EndWork(&work);
	Send(Tell("over", host));
	return go ? 0 : 3;
}

} // namespace forktail::hosts
