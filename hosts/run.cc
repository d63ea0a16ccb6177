// SPDX-License-Identifier: MIT
// A run on several hosts from start to end.
//
// The end of a run: when all loads have ended, a program died or a signal arrived, every rank gets "end"
// through mpirun's standard input. Ranks on this host do not get that input and receive SIGTERM. Ranks end
// their programs and exit, then mpirun exits. If it does not, it is killed, and daemons and ranks end because
// their parent died.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/random.h>
#include <unistd.h>

#include "common/process.h"
#include "common/text.h"
#include "hosts/hosts.h"
#include "recording/recording.h"

namespace forktail::hosts
{

namespace
{

namespace fs = std::filesystem;

constexpr uint64_t kSilent = 20 * kSecondNs, kLeaveNs = 75 * kSecondNs, kLeaving = 15 * kSecondNs,
		   kGathering = 600 * kSecondNs, kOneHost = 60 * kSecondNs;

std::string NewToken()
{
	uint64_t random = 0;
	char text[20];
	if (getrandom(&random, sizeof(random), 0) < 0)
		random = ft_now_ns() ^ static_cast<uint64_t>(getpid());
	snprintf(text, sizeof(text), "%012llx", static_cast<unsigned long long>(random & 0xffffffffffff));
	return text;
}

// A running mpirun and its state.
struct Mpi {
	common::Child child;
	uint64_t ended_ns = 0; // when "end" was sent; 0: not yet
	uint64_t over_ns = 0;  // when all ranks had finished
	int stops = 0;	       // stop signals before its start
};

// Of the ranks that our mpirun started itself, only rank 0 gets standard input.
bool IsLocal(const Mpi &mpi, const Message &hello)
{
	char boot[40];
	ft_boot_id(boot);
	if (TextOf(hello, "boot_id") != boot || hello.value("parent", 0) != mpi.child.pid)
		return false;
	std::ifstream stat("/proc/" + std::to_string(hello.value("pid", 0)) + "/stat");
	std::string text;
	std::getline(stat, text);
	int parent = 0;
	const size_t comm = text.rfind(')');
	return comm != std::string::npos && sscanf(text.c_str() + comm + 1, " %*c %d", &parent) == 1 &&
	       parent == mpi.child.pid;
}

void SendEnd(Session *session, Mpi *mpi)
{
	if (mpi->ended_ns)
		return;
	mpi->ended_ns = ft_now_ns();
	session->ending = true;
	mpi->child.asked = true;
	if (write(mpi->child.in, "end\n", 4) != 4)
		return; // it has ended or will be killed
	for (const auto &[name, host] : session->hosts)
		if (IsLocal(*mpi, host.hello))
			kill(host.hello.value("pid", 0), SIGTERM);
}

// Processes lines of ranks; others are mpirun's own. True: the run must end.
bool Listen(Session *session, const Plan &plan, Mpi *mpi)
{
	bool end = false;
	Message message;
	common::WaitForAny({mpi->child.out.fd, mpi->child.err.fd, mpi->child.pidfd}, 500);
	for (common::Lines *lines : {&mpi->child.out, &mpi->child.err})
		for (const std::string &line : lines->Read()) {
			if (ParseMessage(line, &message))
				end = Take(session, plan, message) || end;
			else if (line.find_first_not_of("- ") != std::string::npos)
				common::Remember(&mpi->child, line);
		}
	return end;
}

// "mpirun noticed that process rank 2 with PID 77 on node b exited on signal 9 (Killed)."
void NameDeadRank(Session *session, const Plan &plan, const common::Child &mpirun)
{
	for (const std::string &line : mpirun.last) {
		size_t rank = 0;
		int signal = 0;
		const char *on = strstr(line.c_str(), "exited on signal ");
		const char *which = strstr(line.c_str(), "process rank ");
		if (!on || !which || sscanf(which, "process rank %zu", &rank) != 1 ||
		    rank > plan.hosts.size() || sscanf(on, "exited on signal %d", &signal) != 1)
			continue;
		const std::string who = rank == 0 ? "rank 0, on this host,"
						  : "the rank on " + plan.hosts[rank - 1].name + " (" +
							RolesOf(plan, plan.hosts[rank - 1]) + ")";
		return Trouble(session, who + " was killed by signal " + std::to_string(signal) +
					    "; the programs of all hosts were stopped");
	}
	Trouble(session, "mpirun " + common::HowItEnded(mpirun) + LastWords(mpirun));
}

// Names hosts that stopped reporting while others finished.
void NameLost(Session *session, const Plan &plan)
{
	const uint64_t now = ft_now_ns();
	for (const PlanHost &host : plan.hosts) {
		const HostState &state = session->hosts[host.name];
		if (!state.over && state.heard_ns && now - state.heard_ns > kSilent)
			Trouble(session, host.name + " (" + RolesOf(plan, host) + ") has not reported for " +
					     std::to_string((now - state.heard_ns) / kSecondNs) + " s");
	}
}

// True if all loads have ended except those of silent hosts.
bool OnlySilentOnesLeft(const Session &session, const Plan &plan)
{
	const uint64_t now = ft_now_ns();
	bool silent = false;
	for (const PlanHost &host : plan.hosts) {
		auto found = session.hosts.find(host.name);
		if (found == session.hosts.end() || !found->second.heard_ns)
			return false;
		const bool lost = now - found->second.heard_ns > kSilent;
		silent = silent || lost;
		if (!lost && !found->second.loaded)
			return false;
	}
	return silent;
}

// Kills an mpirun that does not end in time.
void Insist(Session *session, const Plan &plan, Mpi *mpi)
{
	const uint64_t now = ft_now_ns();
	if (!mpi->over_ns && AllOver(*session, plan))
		mpi->over_ns = now;
	if (common::Stops() > mpi->stops + 1 || (mpi->over_ns && now - mpi->over_ns > kLeaving) ||
	    (mpi->ended_ns && now - mpi->ended_ns > kLeaveNs) ||
	    (mpi->ended_ns && now - mpi->ended_ns > kLeaving && OnlySilentOnesLeft(*session, plan)))
		common::SignalChild(&mpi->child, SIGKILL);
}

bool StartMpi(const std::vector<std::string> &command, Session *session, Mpi *mpi)
{
	std::string error;
	mpi->stops = common::Stops();
	if (common::StartChild({.name = "mpirun",
				.argv = command,
				.in = common::kPipe,
				.out = common::kPipe,
				.death_signal = SIGTERM},
			       &mpi->child, &error))
		return true;
	Trouble(session, error);
	return false;
}

void RunLoad(const HostsOptions &o, Session *session)
{
	Mpi mpi;
	std::vector<const PlanHost *> hosts;
	for (const PlanHost &host : o.plan.hosts)
		hosts.push_back(&host);
	if (!StartMpi(MpiCommand(o.mpi, o.plan, "run", hosts), session, &mpi))
		return;
	while (!common::HasEnded(&mpi.child)) {
		const bool wanted = Listen(session, o.plan, &mpi);
		const bool stopped = common::Stops() > mpi.stops && !mpi.ended_ns;
		if (stopped)
			Trouble(session, "received a signal; stopping the programs of all hosts");
		if (wanted || stopped || AllLoaded(*session, o.plan) || OnlySilentOnesLeft(*session, o.plan))
			SendEnd(session, &mpi);
		Insist(session, o.plan, &mpi);
		ShowProgress(session, o.plan);
	}
	while (mpi.child.out.fd >= 0 && mpi.child.err.fd >= 0 && Listen(session, o.plan, &mpi)) {
	}
	common::CloseStreams(&mpi.child);
	NameLost(session, o.plan);
	// Before the load starts, ranks that report their end were stopped.
	if (!session->cannot && !common::EndedWell(mpi.child) && (!mpi.over_ns || !session->go_ns) &&
	    session->troubles.empty())
		NameDeadRank(session, o.plan, mpi.child);
}

// Returns the hosts whose files have been collected.
std::vector<std::string> GatherFrom(const HostsOptions &o, const std::vector<const PlanHost *> &hosts,
				    uint64_t limit_ns, Session *session)
{
	Mpi mpi;
	std::vector<std::string> collected;
	if (!StartMpi(MpiCommand(o.mpi, o.plan, "gather", hosts), session, &mpi))
		return collected;
	Message message;
	for (const uint64_t limit = ft_now_ns() + limit_ns;
	     !common::HasEnded(&mpi.child) || mpi.child.out.fd >= 0;) {
		common::WaitForAny({mpi.child.out.fd, mpi.child.err.fd, mpi.child.pidfd}, 500);
		for (common::Lines *lines : {&mpi.child.out, &mpi.child.err})
			for (const std::string &line : lines->Read())
				if (ParseMessage(line, &message) && TextOf(message, "forktail") == "stored")
					collected.push_back(TextOf(message, "host"));
				else if (ParseMessage(line, &message))
					Take(session, o.plan, message);
		if (ft_now_ns() > limit || common::Stops() > mpi.stops)
			common::SignalChild(&mpi.child, SIGKILL);
		if (mpi.child.ended && mpi.child.asked)
			break;
	}
	common::CloseStreams(&mpi.child);
	return collected;
}

// Collects from all hosts at once; if that fails, from each separately, so that a lost host does not block
// the others.
void GatherAll(const HostsOptions &o, Session *session)
{
	std::vector<const PlanHost *> left;
	auto take = [&](const std::vector<const PlanHost *> &from, uint64_t limit) {
		const std::vector<std::string> collected = GatherFrom(o, from, limit, session);
		left.erase(std::remove_if(left.begin(), left.end(),
					  [&](const PlanHost *host) {
						  return std::find(collected.begin(), collected.end(),
								   host->name) != collected.end();
					  }),
			   left.end());
	};
	for (const PlanHost &host : o.plan.hosts)
		if (session->hosts[host.name].hello.is_object())
			left.push_back(&host);
	if (left.empty())
		return;
	Say(session, "collecting files in " + o.mpi.run);
	take(left, kGathering);
	const std::vector<const PlanHost *> again = left;
	for (const PlanHost *host : again)
		if (again.size() < o.plan.hosts.size() || again.size() > 1)
			take({host}, kOneHost);
	for (const PlanHost *host : left)
		Trouble(session, "cannot fetch the files of " + host->name + ": they are still in " +
				     DirectoryOf(o.plan, o.mpi.token, host->name) + " on that host");
}

bool WriteRunJson(const HostsOptions &o, const Session &session, double started, std::string *error)
{
	Message json = {{"program", "forktail hosts run"}, {"versions", {{"forktail", FORKTAIL_VERSION}}},
			{"started_unix", started},	   {"plan", o.mpi.plan},
			{"hosts", Message::array()},	   {"troubles", session.troubles}};
	for (const PlanHost &host : o.plan.hosts) {
		auto found = session.hosts.find(host.name);
		Message one = {
		    {"name", host.name}, {"address", host.address}, {"roles", RolesOf(o.plan, host)}};
		if (found != session.hosts.end()) {
			for (const char *member : {"host_name", "kernel", "boot_id", "version"})
				one[member] = TextOf(found->second.hello, member);
			one["programs"] = found->second.started;
		}
		json["hosts"].push_back(one);
	}
	const std::string path = o.mpi.run + "/run.json";
	std::ofstream out(path);
	out << json.dump(2, ' ', false, Message::error_handler_t::replace) << '\n';
	out.close();
	if (out)
		return true;
	*error = "cannot write " + path + ": " + strerror(errno);
	return false;
}

bool ReadPlan(const std::string &path, Plan *plan, std::string *error)
{
	errno = 0;
	std::ifstream in(path);
	std::stringstream text;
	if (!in || !(text << in.rdbuf())) {
		*error = "cannot read " + path + ": " + (errno ? strerror(errno) : "the file is empty");
		return false;
	}
	return ParsePlan(text.str(), path, plan, error);
}

} // namespace

bool PrepareHosts(HostsOptions *o, std::string *error, int *status)
{
	std::error_code ec;
	*status = 2;
	if (!ReadPlan(o->mpi.plan, &o->plan, error))
		return false;
	o->mpi.plan = fs::absolute(o->mpi.plan);
	if (o->mpi.run.empty())
		return true; // for --check
	o->mpi.run = fs::absolute(o->mpi.run);
	*status = 3;
	// By name: with a path, mpirun expects Open MPI at the same path on all hosts.
	o->mpi.mpirun = common::FindProgram("mpirun").empty() ? "" : "mpirun";
	o->mpi.rank = common::FindProgram("forktail-rank");
	if (o->mpi.mpirun.empty())
		*error = "cannot find mpirun on PATH. Install openmpi-bin.";
	else if (o->mpi.rank.empty())
		*error = "cannot find forktail-rank next to forktail. Install the package forktail-mpi, or "
			 "install libopenmpi-dev and build again.";
	else if (fs::exists(o->mpi.run, ec) && !fs::is_empty(o->mpi.run, ec))
		*error = o->mpi.run + " exists and is not empty. Name a new directory.";
	else if (fs::create_directories(o->mpi.run + "/hosts", ec); ec)
		*error = "cannot create " + o->mpi.run + ": " + ec.message();
	return error->empty();
}

std::string DescribePlan(const Plan &plan)
{
	std::string text;
	for (const PlanHost &host : plan.hosts) {
		text += host.name + " (" + host.address + "): " + RolesOf(plan, host) + "\n";
		for (const Job &job : JobsOf(plan, host, plan.scratch))
			text += "  " + common::CommandLine(job.argv) + "\n";
	}
	return text;
}

int RunHosts(HostsOptions o)
{
	using namespace std::chrono;
	const double started = duration<double>(system_clock::now().time_since_epoch()).count();
	std::string error;
	Session session;
	o.mpi.token = NewToken();
	common::CatchStops();
	signal(SIGPIPE, SIG_IGN);
	RunLoad(o, &session);
	GatherAll(o, &session);
	if (!WriteRunJson(o, session, started, &error))
		Trouble(&session, error);
	if (session.cannot || !session.go_ns)
		return 3;
	Say(&session, session.troubles.empty() ? "done: forktail explain " + o.mpi.run
					       : "the run is incomplete: see " + o.mpi.run);
	return session.troubles.empty() ? 0 : 1;
}

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
bool TakeEnd(Session *session, const Plan &plan, const Message &message, const std::string &host)
{
	session->loads.erase(host + "/" + TextOf(message, "name"));
	if (message.value("well", false) || message.value("asked", false) || session->ending)
		return false;
	Trouble(session, host + ": the " + TextOf(message, "kind") + " (" + TextOf(message, "name") + ") " +
			     TextOf(message, "how"));
	return !plan.continue_on_death &&
	       TextOf(message, "kind") != "clock"; // the comparison up to then is usable
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

bool Take(Session *session, const Plan &plan, const Message &message)
{
	const std::string what = TextOf(message, "forktail"), host = TextOf(message, "host");
	if (what == "go") {
		session->go_ns = ft_now_ns();
		Say(session, "all hosts are ready; the load starts in " +
				 std::to_string(message.value("seconds", 0.0)).substr(0, 4) + " s");
		return false;
	}
	if (what == "cannot") {
		session->cannot = true;
		Trouble(session, (host.empty() ? "" : host + ": ") + TextOf(message, "why"));
		return false;
	}
	if (!FindHost(plan, host))
		return false;
	HostState *state = &session->hosts[host];
	state->heard_ns = ft_now_ns();
	if (what == "hello")
		state->hello = message;
	else if (what == "started")
		state->started.push_back(
		    {{"name", TextOf(message, "name")}, {"argv", message.value("argv", Message::array())}});
	else if (what == "progress")
		ReadProgress(TextOf(message, "line"), &session->loads[host + "/" + TextOf(message, "name")]);
	else if (what == "ended")
		return TakeEnd(session, plan, message, host);
	else if (what == "loaded")
		state->loaded = true;
	else if (what == "over")
		state->over = state->loaded = true;
	else if (what == "left" && !TextOf(message, "why").empty())
		Trouble(session, host + ": " + TextOf(message, "why"));
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

// Percentiles of several load generators cannot be merged, so the worst is printed; explain computes the
// total from their logs.

namespace
{

double NumberAfter(const std::string &line, const char *word)
{
	const size_t at = line.find(word);
	return at == std::string::npos ? 0 : strtod(line.c_str() + at + std::string(word).size(), nullptr);
}

std::string Grouped(uint64_t number)
{
	std::string text = std::to_string(number);
	for (size_t at = text.size(); at > 3; at -= 3)
		text.insert(at - 3, 1, ',');
	return text;
}

} // namespace

bool ReadProgress(const std::string &line, LoadSecond *second)
{
	const size_t rate = line.find("/s  "), before = line.rfind("  ", rate);
	if (rate == std::string::npos || before == std::string::npos)
		return false;
	std::string digits = line.substr(before + 2, rate - before - 2);
	digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
	const size_t elapsed = line.rfind("  ", before - 1);
	if (digits.empty() || elapsed == std::string::npos)
		return false;
	second->per_second = strtod(digits.c_str(), nullptr);
	second->elapsed_s = strtod(line.c_str() + elapsed, nullptr);
	second->p99_ms = NumberAfter(line, "p99 ");
	second->max_ms = NumberAfter(line, "max ");
	second->errors = static_cast<uint64_t>(NumberAfter(line, "errors "));
	return true;
}

std::string MergedProgress(const std::map<std::string, LoadSecond> &loads)
{
	LoadSecond all;
	std::string worst;
	for (const auto &[name, one] : loads) {
		all.elapsed_s = std::max(all.elapsed_s, one.elapsed_s);
		all.per_second += one.per_second;
		all.max_ms = std::max(all.max_ms, one.max_ms);
		all.errors += one.errors;
		if (!worst.empty() && one.p99_ms <= all.p99_ms)
			continue;
		all.p99_ms = one.p99_ms;
		worst = name.substr(0, name.find('/'));
	}
	char text[256];
	snprintf(text, sizeof(text),
		 "%.0f s  %s/s from %zu load%s  worst p99 %.3f ms (%s)  max %.3f ms  errors %" PRIu64,
		 all.elapsed_s, Grouped(static_cast<uint64_t>(all.per_second + 0.5)).c_str(), loads.size(),
		 loads.size() == 1 ? "" : "s", all.p99_ms, worst.c_str(), all.max_ms, all.errors);
	return text;
}

// Each rank is a separate application context with the host's name as argument, independent of
// how mpirun numbers and places ranks. The options:
//   --stdin all               "end" reaches every rank without MPI
//   --bind-to none            Open MPI would bind each rank, and so its programs, to a core
//   mpi_yield_when_idle       a rank that waits in MPI, before the load, leaves its CPU to others
//   oob_tcp_keepalive_*       a daemon that is cut off ends after half a minute

namespace
{

} // namespace

std::vector<std::string> MpiCommand(const MpiRun &mpi, const Plan &plan, const std::string &mode,
				    const std::vector<const PlanHost *> &hosts)
{
	std::vector<std::string> words = {mpi.mpirun,
					  "--stdin",
					  "all",
					  "--bind-to",
					  "none",
					  "--oversubscribe",
					  "--mca",
					  "mpi_yield_when_idle",
					  "1",
					  "--mca",
					  "oob_tcp_keepalive_time",
					  "10",
					  "--mca",
					  "oob_tcp_keepalive_intvl",
					  "5",
					  "--mca",
					  "oob_tcp_keepalive_probes",
					  "4"};
	if (geteuid() == 0) // recording needs it
		common::Append(&words, {"--allow-run-as-root"});
	if (!mpi.hostfile.empty())
		common::Append(&words, {"--hostfile", mpi.hostfile});
	common::Append(&words, plan.mpirun);
	common::Append(&words, mpi.options);
	common::Append(&words,
		       {"--host", "localhost", "-np", "1", mpi.rank, mode, mpi.token, "--plan", mpi.plan});
	if (mode == "gather")
		words.push_back(mpi.run);
	for (const PlanHost *host : hosts)
		common::Append(&words, {":", "--host", host->address, "-np", "1",
					host->programs.empty() ? mpi.rank : host->programs + "/forktail-rank",
					mode, mpi.token, host->name});
	return words;
}

} // namespace forktail::hosts
