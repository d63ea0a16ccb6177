// SPDX-License-Identifier: MIT
// See session.h.
#include "session.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include "common/text/visible.h"
#include "recording/recording.h"

namespace forktail::hosts
{
namespace
{

constexpr uint64_t kQuietly = 5 * kSecondNs;

void Wipe(Session *session)
{
	if (session->open)
		fputs("\r\033[K", stderr);
	session->open = false;
}

// Handles the end of a program. True: the run must end.
bool TakeEnd(Session *session, const Plan &plan, const Told &told, const std::string &host)
{
	session->loads.erase(host + "/" + TextOf(told, "name"));
	if (told.value("well", false) || told.value("asked", false) || session->ending)
		return false;
	Trouble(session, host + ": the " + TextOf(told, "kind") + " (" + TextOf(told, "name") + ") " +
			     TextOf(told, "how"));
	return !plan.go_on && TextOf(told, "kind") != "clock"; // the comparison up to then is usable
}

bool Every(const Session &session, const Plan &plan, bool HostState::*what)
{
	return std::all_of(plan.hosts.begin(), plan.hosts.end(), [&](const PlanHost &host) {
		auto found = session.hosts.find(host.name);
		return found != session.hosts.end() && found->second.*what;
	});
}

} // namespace

void Say(Session *session, const std::string &sentence)
{
	Wipe(session);
	fputs("forktail: ", stderr);
	put_visible(stderr, sentence.c_str());
	fputc('\n', stderr);
}

void Trouble(Session *session, const std::string &sentence)
{
	std::vector<std::string> &known = session->troubles;
	if (std::find(known.begin(), known.end(), sentence) != known.end())
		return; // collecting is tried twice
	known.push_back(sentence);
	Say(session, sentence);
}

bool Take(Session *session, const Plan &plan, const Told &told)
{
	const std::string what = TextOf(told, "forktail"), host = TextOf(told, "host");
	if (what == "go") {
		session->go_ns = ft_now_ns();
		Say(session, "all hosts are ready; the load starts in " +
				 std::to_string(told.value("seconds", 0.0)).substr(0, 4) + " s");
		return false;
	}
	if (what == "cannot") {
		session->cannot = true;
		Trouble(session, (host.empty() ? "" : host + ": ") + TextOf(told, "why"));
		return false;
	}
	if (!FindHost(plan, host))
		return false;
	HostState *state = &session->hosts[host];
	state->heard_ns = ft_now_ns();
	if (what == "hello")
		state->hello = told;
	else if (what == "started")
		state->started.push_back(
		    {{"name", TextOf(told, "name")}, {"argv", told.value("argv", Told::array())}});
	else if (what == "progress")
		ReadProgress(TextOf(told, "line"), &session->loads[host + "/" + TextOf(told, "name")]);
	else if (what == "ended")
		return TakeEnd(session, plan, told, host);
	else if (what == "loaded")
		state->loaded = true;
	else if (what == "over")
		state->over = state->loaded = true;
	else if (what == "left" && !TextOf(told, "why").empty())
		Trouble(session, host + ": " + TextOf(told, "why"));
	return false;
}

void ShowProgress(Session *session, const Plan &plan)
{
	const uint64_t now = ft_now_ns();
	const bool terminal = isatty(STDERR_FILENO);
	// The first line covers all loads, unless one is late.
	const bool begun = session->shown_ns || session->loads.size() == plan.loads.size() ||
			   (session->go_ns && now > session->go_ns + plan.settle_ns + kQuietly);
	if (!begun || session->loads.empty() || now - session->shown_ns < (terminal ? kSecondNs : kQuietly))
		return;
	session->shown_ns = now;
	fprintf(stderr, "%s%s%s", terminal ? "\r\033[K" : "", MergedProgress(session->loads).c_str(),
		terminal ? "" : "\n");
	fflush(stderr);
	session->open = terminal;
}

bool AllLoaded(const Session &session, const Plan &plan)
{
	// Without loads the run records for the planned duration.
	if (plan.loads.empty() &&
	    (!session.go_ns || ft_now_ns() < session.go_ns + plan.settle_ns + plan.duration_ns))
		return false;
	return Every(session, plan, &HostState::loaded);
}

bool AllOver(const Session &session, const Plan &plan)
{
	return Every(session, plan, &HostState::over);
}

} // namespace forktail::hosts
