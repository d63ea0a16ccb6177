// SPDX-License-Identifier: MIT
// Rows of the small tables: the run, its causes and episodes, metrics, threads, connections.
#include <nlohmann/json.hpp>

#include "analysis/blame/hops.h"
#include "analysis/run/hosts.h"
#include "analysis/run/same_clock.h"
#include "common/format/sanitize.h"
#include "common/json/json_read.h"
#include "filler.h"

namespace forktail::analysis::exports
{

namespace
{

std::string Joined(const std::vector<std::string> &texts, const char *between)
{
	std::string all;
	for (const std::string &t : texts)
		all += (all.empty() ? "" : between) + t;
	return all;
}

std::string JsonText(const std::map<std::string, std::string> &map)
{
	return nlohmann::json(map).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The programs that recorded, with their arguments.
std::string CommandsJson(const Run &run)
{
	nlohmann::json all = nlohmann::json::array();
	for (const RecordingFile *f : OverlaidFiles(run))
		all.push_back({{"program", f->program}, {"argv", f->argv}});
	return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The server's version as it reported it to the load generator or to the program that started it; "" if none
// asked.
std::string ServerVersion(const Run &run)
{
	for (const RecordingFile *f : OverlaidFiles(run)) {
		const common::Json manifest = common::ParseVisibleObject(f->manifest);
		const common::Json *infos = common::Member(manifest, "server_info");
		if (infos && infos->is_array() && !infos->empty())
			if (const std::string version = common::Text((*infos)[0], "version");
			    !version.empty())
				return version;
	}
	for (const auto &[name, version] : run.info.versions)
		if (!name.starts_with("forktail"))
			return version;
	return "";
}

} // namespace

void Filler::AddRun(const Explanation &e)
{
	const Run &run = e.run;
	const Blame &b = e.blame;
	const RecordingFile &recorder = ServerFile(run);
	std::vector<std::string> versions, arrivals;
	for (const RecordingFile *f : OverlaidFiles(run))
		versions.push_back(f->program + " " + f->version);
	double rate = 0;
	for (const Load &load : run.loads) {
		arrivals.push_back(load.arrival);
		rate += load.rate;
	}
	const std::string version = ServerVersion(run),
			  thp = common::Text(common::ParseVisibleObject(recorder.manifest), "thp");
	Row(kRuns)
	    .Text(run.path)
	    .Text(recorder.host)
	    .Text(recorder.kernel)
	    .Text(FORKTAIL_VERSION)
	    .Int(run.start_ns)
	    .Time(At(run.start_ns))
	    .Int(e.first_ns)
	    .Int(e.measured_ns)
	    .Bool(b.from_iterations)
	    .Int(b.count)
	    .Int(b.errors)
	    .Int(b.threshold_ns)
	    .Int(b.slow_count)
	    .Int(b.slow_ns)
	    .Int(e.episodes.size())
	    .Int(b.latencies.p50)
	    .Int(b.latencies.p90)
	    .Int(b.latencies.p99)
	    .Int(b.latencies.p99_9)
	    .Int(b.latencies.p99_99)
	    .Int(b.latencies.max)
	    .Double(b.latencies.mean)
	    .Int(DropCount(run))
	    .Int(b.RowOf(Cause::Unknown).total_ns())
	    .TextOr(!arrivals.empty(), Joined(arrivals, ", "))
	    .Double(rate)
	    .Int(run.connections.size())
	    .TextOr(!run.servers.empty(), Joined(run.servers, ", "))
	    .Text(Joined(versions, ", "))
	    .Text(CommandsJson(run))
	    .TextOr(!version.empty(), version)
	    .TextOr(!thp.empty(), thp);
}

void Filler::AddCauses(const Explanation &e)
{
	for (const CauseRow &row : e.blame.causes)
		Row(kCausesTable)
		    .Text(CauseName(row.cause))
		    .Int(row.requests)
		    .Int(row.direct_ns)
		    .Int(row.queued_ns)
		    .Int(row.total_ns())
		    .Double(row.share)
		    .Int(row.without.p99)
		    .Int(row.without.p99_9)
		    .Int(row.without.p99_99)
		    .Int(row.without.max);
}

void Filler::AddEpisodes(const Explanation &e)
{
	for (size_t n = 0; n < e.episodes.size(); n++) {
		const Episode &episode = e.episodes[n];
		const bool any = !episode.causes.empty();
		Row(kEpisodes)
		    .Int(n)
		    .Int(episode.start_ns)
		    .Time(At(episode.start_ns))
		    .Int(episode.end_ns)
		    .Int(episode.since_ns)
		    .Int(episode.requests)
		    .Int(episode.worst_ns)
		    .Int(episode.time_ns)
		    .TextOr(any, any ? CauseName(episode.causes[0].cause) : "")
		    .Double(any ? episode.causes[0].share : 0);
		for (const EpisodeCause &c : episode.causes)
			Row(kEpisodeCauses)
			    .Int(n)
			    .Text(CauseName(c.cause))
			    .IntOr(c.hop != kNoHop, c.hop)
			    .Int(c.time_ns)
			    .Double(c.share)
			    .Int(c.thread_ns);
		for (size_t i = 0; i < episode.evidence.size(); i++)
			Row(kEvidence).Int(n).Int(i).Text(episode.evidence[i]);
	}
}

void Filler::AddMetrics(const Run &run)
{
	for (const Series &series : run.series) {
		const std::string labels = JsonText(series.labels);
		for (const Sample &s : series.samples)
			Row(kMetrics)
			    .Text(series.name)
			    .Text(series.unit)
			    .Text(labels)
			    .Int(s.t_ns)
			    .Time(At(s.t_ns))
			    .Double(s.value);
	}
}

void Filler::AddStacks(const Run &run)
{
	for (size_t n = 1; n < run.stacks.size(); n++) {
		const Stack &stack = run.stacks[n];
		std::vector<std::string> frames;
		for (const StackFrame &f : stack.frames)
			frames.push_back(f.function.empty() ? "[" + f.module + "]" : f.function);
		Row(kStacks)
		    .Int(n)
		    .Text(stack.program)
		    .Text(Joined(frames, ";"))
		    .Text(Joined(stack.kernel, ";"));
	}
}

void Filler::AddConnections(const Run &run)
{
	for (size_t n = 0; n < run.connections.size(); n++) {
		const Connection &c = run.connections[n];
		const bool known = c.server < run.servers.size();
		Row(kConnections)
		    .Int(n)
		    .TextOr(known, known ? run.servers[c.server] : "")
		    .Int(c.opened_ns)
		    .Time(At(c.opened_ns))
		    .IntOr(c.closed_ns != 0, c.closed_ns)
		    .Int(c.thread)
		    .IntOr(c.local_port != 0, c.local_port)
		    .IntOr(c.inode != 0, c.inode)
		    .Int(c.earlier.size())
		    .TextOr(c.client != 0, c.client ? run.request_clients[c.client - 1].name : "");
	}
}

void Filler::AddThreads(const Explanation &e)
{
	for (const Account &a : e.accounts) {
		const Thread &t = e.run.threads[a.thread];
		bool serving = false;
		for (int s : e.serving)
			serving |= s == static_cast<int>(a.thread);
		Row(kThreads)
		    .Int(a.thread)
		    .Int(t.tid)
		    .Int(t.tgid)
		    .Text(t.comm)
		    .Text(t.role)
		    .Int(t.start_ns)
		    .Time(At(t.start_ns))
		    .Int(t.end_ns)
		    .Int(a.wall_ns)
		    .Int(a.accounted_ns)
		    .Bool(serving)
		    .Bool(t.flags & FT_THREAD_CLIENT)
		    .Bool(t.flags & FT_THREAD_CHILD)
		    .Text(SeveralHosts(e.run) ? HostOf(e.run, t) : ServerFile(e.run).host)
		    .Int(OwnId(e.run, t.tid))
		    .Int(OwnId(e.run, t.tgid));
	}
}

void Filler::AddHops(const Explanation &e)
{
	for (const HopRow &row : e.blame.hops) {
		if (row.hop == kNoHop)
			continue;
		const HopName name = HopNameOf(e.run, e.timelines, row.hop, e.blame.from_iterations);
		Row(kHops)
		    .Int(row.hop)
		    .Text(name.text())
		    .Text(name.comm)
		    .Int(name.pid)
		    .IntOr(name.tid != 0, name.tid)
		    .TextOr(!name.address.empty(), name.address)
		    .Text(RoleOf(row, name))
		    .Int(row.served)
		    .Int(row.requests)
		    .Int(row.time_ns);
	}
}

void Filler::AddDrops(const Run &run)
{
	for (const ft_drop &d : run.drops)
		Row(kDrops)
		    .Int(d.start_ns)
		    .Time(At(d.start_ns))
		    .Int(d.end_ns)
		    .Int(d.count)
		    .Int(d.source)
		    .Int(d.detail);
}

void Filler::AddMarks(const Run &run)
{
	for (const Mark &m : run.marks)
		Row(kMarks).Int(m.t_ns).Time(At(m.t_ns)).Text(m.text);
}

bool Filler::AddFacts(const Explanation &e)
{
	AddRun(e);
	AddCauses(e);
	AddEpisodes(e);
	AddMetrics(e.run);
	AddStacks(e.run);
	AddConnections(e.run);
	AddThreads(e);
	AddHops(e);
	AddDrops(e.run);
	AddMarks(e.run);
	return ok_;
}

} // namespace forktail::analysis::exports
