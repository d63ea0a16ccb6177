// SPDX-License-Identifier: MIT
// See run.h. The end of a run: when all loads have ended, a program died or a signal arrived, every rank gets
// "end" through mpirun's standard input. Ranks on this host do not get that input and receive SIGTERM. Ranks
// end their programs and exit, then mpirun exits. If it does not, it is killed, and daemons and ranks end
// because their parent died.
#include "run.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/random.h>
#include <unistd.h>

#include "common/process/child.h"
#include "common/process/stops.h"
#include "common/process/words.h"
#include "host_run.h"
#include "jobs.h"
#include "recording/recording.h"
#include "session.h"

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
bool IsLocal(const Mpi &mpi, const Told &hello)
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
	Told told;
	common::WaitForAny({mpi->child.out.fd, mpi->child.err.fd, mpi->child.pidfd}, 500);
	for (common::Lines *lines : {&mpi->child.out, &mpi->child.err})
		for (const std::string &line : lines->Read()) {
			if (Understand(line, &told))
				end = Take(session, plan, told) || end;
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
	std::vector<std::string> kept;
	if (!StartMpi(MpiCommand(o.mpi, o.plan, "gather", hosts), session, &mpi))
		return kept;
	Told told;
	for (const uint64_t limit = ft_now_ns() + limit_ns;
	     !common::HasEnded(&mpi.child) || mpi.child.out.fd >= 0;) {
		common::WaitForAny({mpi.child.out.fd, mpi.child.err.fd, mpi.child.pidfd}, 500);
		for (common::Lines *lines : {&mpi.child.out, &mpi.child.err})
			for (const std::string &line : lines->Read())
				if (Understand(line, &told) && TextOf(told, "forktail") == "kept")
					kept.push_back(TextOf(told, "host"));
				else if (Understand(line, &told))
					Take(session, o.plan, told);
		if (ft_now_ns() > limit || common::Stops() > mpi.stops)
			common::SignalChild(&mpi.child, SIGKILL);
		if (mpi.child.ended && mpi.child.asked)
			break;
	}
	common::CloseStreams(&mpi.child);
	return kept;
}

// Collects from all hosts at once; if that fails, from each separately, so that a lost host does not block
// the others.
void GatherAll(const HostsOptions &o, Session *session)
{
	std::vector<const PlanHost *> left;
	auto take = [&](const std::vector<const PlanHost *> &from, uint64_t limit) {
		const std::vector<std::string> kept = GatherFrom(o, from, limit, session);
		left.erase(std::remove_if(left.begin(), left.end(),
					  [&](const PlanHost *host) {
						  return std::find(kept.begin(), kept.end(), host->name) !=
							 kept.end();
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
	Told json = {{"program", "forktail hosts run"}, {"versions", {{"forktail", FORKTAIL_VERSION}}},
		     {"started_unix", started},		{"plan", o.mpi.plan},
		     {"hosts", Told::array()},		{"troubles", session.troubles}};
	for (const PlanHost &host : o.plan.hosts) {
		auto found = session.hosts.find(host.name);
		Told one = {{"name", host.name}, {"address", host.address}, {"roles", RolesOf(o.plan, host)}};
		if (found != session.hosts.end()) {
			for (const char *member : {"host_name", "kernel", "boot_id", "version"})
				one[member] = TextOf(found->second.hello, member);
			one["programs"] = found->second.started;
		}
		json["hosts"].push_back(one);
	}
	const std::string path = o.mpi.run + "/run.json";
	std::ofstream out(path);
	out << json.dump(2, ' ', false, Told::error_handler_t::replace) << '\n';
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

} // namespace forktail::hosts
