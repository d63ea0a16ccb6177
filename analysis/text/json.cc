// SPDX-License-Identifier: MIT
// The explanation as JSON, and JUnit XML.
//
// JSON keys are an interface: new ones may be added, none changes. Lists that grow with the run are written
// entry by entry.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/blame.h"
#include "analysis/explain.h"
#include "analysis/run.h"
#include "analysis/text.h"
#include "common/json.h"
#include "sentences.h"

namespace forktail::analysis
{

// Writes JSON to a file piece by piece, so that a document with hundreds of thousands of entries is never
// whole in memory. The output equals dump(2) of the whole document.

// Calls follow the document's order. After a failed write all further writes fail, with the same errno.
class JsonWriter
{
public:
	using Out = nlohmann::ordered_json;

	explicit JsonWriter(FILE *file) : file_(file) {}
	// Containers written in pieces. An empty key: the document itself, or an entry of a list.
	void BeginObject(const char *key) { Begin(key, '{', '}'); }
	void BeginList(const char *key) { Begin(key, '[', ']'); }
	void End()
	{
		bool empty = !open_.back().entries;
		char close = open_.back().close;
		open_.pop_back();
		if (!empty)
			NewLine();
		Put({&close, 1});
		if (open_.empty())
			Put("\n");
	}
	// An entry of the open object or list (whose entries have an empty key).
	void Add(const char *key, const Out &value)
	{
		Key(key);
		std::string text = value.dump(2, ' ', false, Out::error_handler_t::replace);
		// No line ends within strings: there they are escaped.
		for (size_t at = 0; at < text.size();) {
			size_t end = std::min(text.find('\n', at), text.size());
			Put({text.data() + at, end - at});
			if (end < text.size())
				NewLine();
			at = end + 1;
		}
	}
	// Adds all members of an object.
	void AddMembers(const Out &object)
	{
		for (const auto &[key, value] : object.items())
			Add(key.c_str(), value);
	}
	bool ok() const { return ok_; }

private:
	struct Open {
		char close;
		bool entries;
	};

	void Begin(const char *key, char open, char close)
	{
		if (!open_.empty())
			Key(key);
		Put({&open, 1});
		open_.push_back({close, false});
	}
	void Key(const char *key)
	{
		if (open_.back().entries)
			Put(",");
		open_.back().entries = true;
		NewLine();
		if (*key)
			Put(Out(key).dump() + ": ");
	}
	void NewLine()
	{
		static const std::string spaces(64, ' ');
		Put("\n");
		Put({spaces.data(), std::min(spaces.size(), open_.size() * 2)});
	}
	void Put(std::string_view text)
	{
		ok_ = ok_ && fwrite(text.data(), 1, text.size(), file_) == text.size();
	}

	FILE *file_;
	std::vector<Open> open_;
	bool ok_ = true;
};

namespace
{

using Out = nlohmann::ordered_json;

const char *StatusName(uint8_t status)
{
	static const char *const names[] = {"ok",    "miss",	"error-reply", "timeout",
					    "reset", "refused", "wrong",       "unsent"};
	return status < std::size(names) ? names[status] : "unknown";
}

const char *DropSource(uint32_t source)
{
	static const char *const names[] = {"unknown",	   "ring",   "stack",	  "io-table", "thread-state",
					    "request-log", "missed", "unwinding", "disk"};
	return source < std::size(names) ? names[source] : names[0];
}

// The kind of a block that was dropped because the recorder's disk was too slow.
const char *DroppedKind(uint32_t kind)
{
	switch (kind) {
	case FT_BLOCK_THREAD:
		return "thread";
	case FT_BLOCK_SPAN:
		return "span";
	case FT_BLOCK_TALLY:
		return "tally";
	case FT_BLOCK_IO:
		return "block-io";
	case FT_BLOCK_CPU_SLICE:
		return "turn";
	case FT_BLOCK_LOOP:
		return "loop";
	case FT_BLOCK_SOCKET:
		return "socket";
	case FT_BLOCK_WRITES:
		return "writes";
	case FT_BLOCK_CONNECTION:
	case FT_BLOCK_REQUEST:
		return "requests";
	case FT_BLOCK_SAMPLE:
		return "metric";
	case FT_BLOCK_CPU_SAMPLE:
	case FT_BLOCK_COUNTERS:
		return "cpu-sample";
	case FT_BLOCK_TCP_EVENT:
	case FT_BLOCK_TCP_STATE:
		return "tcp";
	default:
		return "record";
	}
}

// What was dropped: a cause's spans, another kind of event, or runs of a program that the kernel skipped.
std::string DropWhat(const Run &run, const ft_drop &d)
{
	if (d.source == FT_DROP_MISSED)
		return d.detail < run.programs.size() ? run.programs[d.detail] : "program";
	if (d.source == FT_DROP_DISK)
		return DroppedKind(d.detail);
	if (d.source != FT_DROP_RING)
		return DropSource(d.source);
	switch (d.detail) {
	case FT_DROP_TALLY:
		return "tally";
	case FT_DROP_BLOCK_IO:
		return "block-io";
	case FT_DROP_THREAD_EVENT:
		return "thread";
	case FT_DROP_CPU_SAMPLE:
		return "cpu-sample";
	case FT_DROP_WRITES:
		return "writes";
	case FT_DROP_REQUESTS:
		return "requests";
	case FT_DROP_TCP:
		return "tcp";
	case FT_ITERATION:
		return "iteration";
	default:
		return AccountName(CauseOfOwner(d.detail));
	}
}

Out AllLatenciesJson(const Latencies &l)
{
	Out latencies = LatenciesJson<Out>(l);
	latencies["mean"] = l.mean;
	return latencies;
}

Out TcpJson(const TcpFacts &f)
{
	return {{"network_ns", f.network_ns},
		{"retransmission_ns", f.retransmission_ns},
		{"client_window_ns", f.client_window_ns},
		{"server_window_ns", f.server_window_ns},
		{"nagle_ns", f.nagle_ns},
		{"retransmitted", f.retransmitted},
		{"connections_retransmitted", f.connections},
		{"first_after_ns", f.first_after_ns},
		{"resets_by_server", f.resets_by_server},
		{"resets_by_client", f.resets_by_client},
		{"nagle_seen", f.nagle_seen},
		{"dropped", f.dropped},
		{"only_counted", f.only_counted}};
}

Out SplitJson(const NetworkSplit &split)
{
	return {{"to_server_ns", split.to_server_ns},
		{"unread_at_server_ns", split.unread_at_server_ns},
		{"to_client_ns", split.to_client_ns},
		{"unread_at_client_ns", split.unread_at_client_ns}};
}

Out RequestsJson(const Explanation &e)
{
	const Blame &b = e.blame;
	Out by_status = Out::object();
	for (size_t s = 0; s < b.by_status.size(); s++)
		if (b.by_status[s])
			by_status[StatusName(static_cast<uint8_t>(s))] = b.by_status[s];
	uint64_t first_ns = e.in_part ? e.first_ns : e.zero_ns;
	Out requests = {{"from", b.from_iterations ? "iterations" : "request-log"},
			{"count", b.count},
			{"errors", b.errors},
			{"by_status", by_status},
			{"first_ns", first_ns},
			{"first_realtime_ns", RealtimeNs(e.run, first_ns)},
			{"duration_ns", e.measured_ns},
			{"latency_ns", AllLatenciesJson(b.latencies)}};
	if (e.in_part)
		requests["since_ns"] = e.part.since_ns;
	if (e.in_part && e.part.until_ns != UINT64_MAX)
		requests["until_ns"] = e.part.until_ns;
	if (SeenInKernel(e.run))
		requests["in_kernel"] = {{"idle_unread_ns", b.idle.unread_ns},
					 {"idle_read_ns", b.idle.read_ns}};
	const auto sampled = [](const Load &load) { return load.sample > 1; };
	if (std::any_of(e.run.loads.begin(), e.run.loads.end(), sampled))
		requests["latency_ns_of_all"] = {{"p99", {b.p99_range.low, b.p99_range.high}},
						 {"p99.9", {b.p99_9_range.low, b.p99_9_range.high}}};
	if (!e.unrecorded_peers.empty())
		requests["unrecorded_peers"] = e.unrecorded_peers;
	if (e.run.kernel_log_joined) {
		requests["network_split"] = SplitJson(b.split);
		requests["network_split"]["requests"] = b.split.requests;
		requests["network_split"]["known"] = b.joined;
	}
	if (e.tcp.any())
		requests["tcp"] = TcpJson(e.tcp);
	if (e.blame.arrivals.known)
		requests["by_arrival"] = {{"count", e.blame.arrivals.known},
					  {"latency_ns", AllLatenciesJson(e.blame.arrivals.latencies)},
					  {"unread_ns", e.blame.arrivals.unread_ns},
					  {"longest_unread_ns", e.blame.arrivals.longest_unread_ns}};
	return requests;
}

Out LoadsJson(const Run &run)
{
	Out loads = Out::array();
	for (const Load &load : run.loads) {
		loads.push_back({{"arrival", load.arrival},
				 {"rate_per_s", load.rate},
				 {"pipeline", load.pipeline},
				 {"connections", load.connection_count},
				 {"source", load.kernel ? "kernel" : "load-generator"}});
		if (load.kernel)
			loads.back()["sample"] = load.sample, loads.back()["slices"] = load.slices;
	}
	return loads;
}

// Only for recordings with different clocks.
Out ClocksJson(const Explanation &e)
{
	Out hosts = Out::array();
	for (const HostClock &c : e.run.host_clocks)
		hosts.push_back({{"host", c.host},
				 {"clock_id", c.clock_id},
				 {"offset_ns", c.offset_ns},
				 {"drift_ppm", c.drift_ppm},
				 {"bound_ns", c.bound_ns},
				 {"samples", c.samples}});
	return {{"bound_ns", e.run.clocks_bound_ns}, {"unknown_ns", e.blame.clocks_ns}, {"hosts", hosts}};
}

Out CausesJson(const Blame &b)
{
	Out causes = Out::array();
	for (const CauseRow &row : b.causes)
		causes.push_back({{"cause", CauseName(row.cause)},
				  {"requests", row.requests},
				  {"time_ns", row.total_ns()},
				  {"direct_ns", row.direct_ns},
				  {"queued_ns", row.queued_ns},
				  {"share", row.share},
				  {"what_if",
				   {{"p99", row.without.p99},
				    {"p99.9", row.without.p99_9},
				    {"p99.99", row.without.p99_99},
				    {"max", row.without.max}}}});
	return causes;
}

Out ActivitiesJson(const OwnCode &own)
{
	Out activities = Out::array();
	for (const ActivityTime &a : own.activities)
		activities.push_back({{"name", a.name},
				      {"samples", a.samples},
				      {"lua_samples", a.lua_samples},
				      {"kernel_samples", a.kernel_samples},
				      {"share", a.share},
				      {"time_ns", a.time_ns},
				      {"error", a.error()},
				      {"stack", a.stack}});
	return activities;
}

Out OwnCodeJson(const OwnCode &own)
{
	return {{"samples", own.samples}, {"activities", ActivitiesJson(own)}};
}

std::string HopText(const Explanation &e, uint16_t hop)
{
	return HopNameOf(e.run, e.hop_threads, hop, e.blame.from_iterations).text();
}

Out HopsJson(const Explanation &e)
{
	Out hops = Out::array();
	for (const HopRow &row : e.blame.hops) {
		HopName name = HopNameOf(e.run, e.hop_threads, row.hop, e.blame.from_iterations);
		Out causes = Out::array();
		for (const HopCause &c : row.causes)
			causes.push_back({{"cause", CauseName(c.cause)}, {"time_ns", c.time_ns}});
		Out hop = {{"name", name.text()},      {"comm", name.comm},	    {"pid", name.pid},
			   {"address", name.address},  {"role", RoleOf(row, name)}, {"served", row.served},
			   {"requests", row.requests}, {"time_ns", row.time_ns},    {"share", row.share},
			   {"causes", causes}};
		if (!name.host.empty())
			hop["host"] = name.host;
		if (!name.thread.empty())
			hop["thread"] = {{"tid", name.tid}, {"name", name.thread}};
		hops.push_back(std::move(hop));
	}
	return hops;
}

Out GroupJson(const Explanation &e, const RequestGroup &g)
{
	Out causes = Out::array();
	for (const HopCause &c : g.causes)
		causes.push_back({{"cause", CauseName(c.cause)}, {"time_ns", c.time_ns}});
	Out group = {{"name", g.name},
		     {"requests", g.requests},
		     {"errors", g.errors},
		     {"latency_ns",
		      {{"p50", g.latencies.p50},
		       {"p99", g.latencies.p99},
		       {"p99.9", g.latencies.p99_9},
		       {"max", g.latencies.max}}},
		     {"slow", g.slow},
		     {"slow_ns", g.slow_ns},
		     {"causes", causes}};
	if (!g.client)
		return group;
	const RequestClient &client = e.run.request_clients[g.client - 1];
	group["address"] = client.address;
	group["hashed"] = client.hashed;
	group["pid"] = OwnId(e.run, client.pid);
	group["comm"] = client.comm;
	group["client_name"] = client.own_name;
	group["library"] = client.library;
	return group;
}

void WriteGroups(const Explanation &e, const char *name, const std::vector<RequestGroup> &groups,
		 JsonWriter *out)
{
	if (groups.empty())
		return;
	out->BeginList(name);
	for (const RequestGroup &g : groups)
		out->Add("", GroupJson(e, g));
	out->End();
}

Out EpisodeJson(const Explanation &e, const Episode &episode)
{
	Out causes = Out::array();
	for (const EpisodeCause &c : episode.causes)
		causes.push_back({{"cause", CauseName(c.cause)},
				  {"time_ns", c.time_ns},
				  {"thread_ns", c.thread_ns},
				  {"share", c.share}});
	Out hops = Out::array();
	for (const EpisodeHop &h : episode.hops)
		hops.push_back({{"name", HopText(e, h.hop)}, {"time_ns", h.time_ns}, {"share", h.share}});
	Out one = {{"start_ns", episode.start_ns},
		   {"t_s", SecondsAfter(episode.start_ns, e.zero_ns)},
		   {"duration_ns", episode.end_ns - episode.start_ns},
		   {"requests", episode.requests},
		   {"worst_ns", episode.worst_ns},
		   {"time_ns", episode.time_ns},
		   {"causes", causes},
		   {"hops", hops},
		   {"evidence", episode.evidence},
		   {"activities", ActivitiesJson(episode.own_code)}};
	if (episode.tcp.any())
		one["tcp"] = TcpJson(episode.tcp);
	if (const EpisodeAnswers &a = episode.answers; a.known)
		one["answers"] = {{"known", a.known},
				  {"unread_ns", a.unread_ns},
				  {"longest_unread_ns", a.longest_unread_ns},
				  {"request_on_its_way_ns", a.way.request_ns},
				  {"answer_on_its_way_ns", a.way.answer_ns}};
	return one;
}

void WriteEpisodesJson(const Explanation &e, JsonWriter *out)
{
	out->BeginList("episodes");
	for (const Episode &episode : e.episodes)
		out->Add("", EpisodeJson(e, episode));
	out->End();
}

Out TopJson(const Latencies &l)
{
	return {{"p99", l.p99}, {"p99.9", l.p99_9}, {"max", l.max}};
}

Out SnapshotJson(const Explanation &e, const Snapshot &one)
{
	Out json = {{"command", one.command},
		    {"text", SnapshotText(e.run, e.snapshots, one, e.zero_ns)},
		    {"start_ns", one.start_ns},
		    {"t_s", SecondsAfter(one.start_ns, e.zero_ns)},
		    {"duration_ns", one.end_ns - one.start_ns},
		    {"ended", one.ended},
		    {"explained_ns", one.explained_ns},
		    {"server_pid", OwnId(e.run, one.server)},
		    {"child_pid", OwnId(e.run, e.run.threads[one.thread].tgid)},
		    {"fork_ns", one.fork_ns ? Out(one.fork_ns) : Out()},
		    {"copies", one.copies},
		    {"copied_bytes", one.copied_bytes()},
		    {"copy_ns", one.copy_ns},
		    {"child_copies", one.child_copies},
		    {"written_bytes", one.written_bytes},
		    {"requests", one.requests},
		    {"slowed", one.slowed}};
	const auto add = [&](const char *name, const auto &value) {
		json[name] = value ? Out(*value) : Out();
	};
	add("rss_bytes", one.rss_bytes);
	add("peak_bytes", one.peak_bytes());
	add("available_bytes", one.available_bytes);
	add("cgroup_left_bytes", one.cgroup_left_bytes);
	add("writes", one.writes);
	add("pages_per_write", one.pages_per_write());
	if (one.requests)
		json["latency_ns"] = TopJson(one.during);
	return json;
}

void WriteSnapshots(const Explanation &e, JsonWriter *out)
{
	out->BeginList("snapshots");
	for (const Snapshot &one : e.snapshots.all)
		out->Add("", SnapshotJson(e, one));
	out->End();
	if (e.snapshots.outside_count)
		out->Add("outside_snapshots", {{"requests", e.snapshots.outside_count},
					       {"latency_ns", TopJson(e.snapshots.outside)}});
}

void WriteAccount(const Explanation &e, JsonWriter *out)
{
	out->BeginObject("account");
	out->BeginList("threads");
	for (const Account &a : e.accounts) {
		const Thread &t = e.run.threads[a.thread];
		Out by_cause = Out::object();
		for (int c = 0; c < kTimelineCauses; c++)
			if (a.by_cause[static_cast<size_t>(c)])
				by_cause[AccountName(static_cast<Cause>(c))] =
				    a.by_cause[static_cast<size_t>(c)];
		bool serving = false;
		for (int s : e.serving)
			serving |= s == static_cast<int>(a.thread);
		Out thread = {{"tid", OwnId(e.run, t.tid)},
			      {"tgid", OwnId(e.run, t.tgid)},
			      {"comm", t.comm},
			      {"role", t.role},
			      {"cgroup_of", PlaceOf(e.run, t)},
			      {"serving", serving},
			      {"client", (t.flags & FT_THREAD_CLIENT) != 0},
			      {"start_ns", t.start_ns},
			      {"wall_ns", a.wall_ns},
			      {"accounted_ns", a.accounted_ns},
			      {"by_cause", by_cause},
			      {"own_code", OwnCodeJson(e.own_codes[a.thread])}};
		if (const Counted &counted = t.counted; counted.readings)
			thread["counters"] = {{"software", counted.software},
					      {"ns", counted.ns},
					      {"cycles", counted.cycles},
					      {"instructions", counted.instructions},
					      {"cache_misses", counted.misses}};
		if (SeveralHosts(e.run))
			thread["host"] = HostOf(e.run, t);
		out->Add("", std::move(thread));
	}
	out->End();
	if (e.server_count)
		out->Add("server_count", {{"ns", e.server_count->ns},
					  {"cycles", e.server_count->cycles},
					  {"loop_ns", e.server_count->loop_ns},
					  {"command_ns", e.server_count->command_ns}});
	if (e.server_commands)
		out->Add("server_commands", ServerCommandsJson(*e.server_commands));
	if (!e.server_threads.threads.empty())
		out->Add("server_threads", ServerThreadsJson(e));
	out->End();
}

void WriteDrops(const Explanation &e, JsonWriter *out)
{
	out->BeginObject("drops");
	out->Add("count", DropCount(e.run));
	out->BeginList("intervals");
	for (const ft_drop &d : e.run.drops)
		out->Add("", {{"start_ns", d.start_ns},
			      {"t_s", SecondsAfter(d.start_ns, e.zero_ns)},
			      {"end_ns", d.end_ns},
			      {"count", d.count},
			      {"source", DropSource(d.source)},
			      {"what", DropWhat(e.run, d)}});
	out->End();
	out->End();
}

Out ProcessEndsJson(const Explanation &e)
{
	Out ends = Out::array();
	for (size_t k = 0; k < e.run.ended.size(); k++) {
		const ProcessEnd &process = e.run.ended[k];
		Out one = {{"t_ns", process.t_ns},
			   {"t_s", SecondsAfter(process.t_ns, e.zero_ns)},
			   {"pid", OwnId(e.run, process.pid)},
			   {"name", process.comm},
			   {"child", process.child}};
		if (process.signal >= 0) {
			one["signal"] = SignalName(process.signal);
			one["core_dumped"] = process.core_dumped;
			one["oom_killer"] = process.oom_killer;
		}
		if (process.status >= 0)
			one["status"] = process.status;
		if (const std::string cgroup = FullCgroup(e.run, process.t_ns);
		    process.oom_killer && !cgroup.empty())
			one["cgroup"] = cgroup;
		if (k < e.server_ends.size() && e.server_ends[k].server >= 0) {
			const ServerEnd &end = e.server_ends[k];
			one["failed"] = end.failed;
			one["unsent"] = end.unsent;
			one["next_answer_ns"] = end.next_answer_ns ? Out(end.next_answer_ns) : Out();
		}
		if (k < e.server_ends.size() && e.server_ends[k].successor)
			one["successor"] = OwnId(e.run, e.server_ends[k].successor);
		ends.push_back(std::move(one));
	}
	return ends;
}

Out OverloadJson(const Explanation &e)
{
	const Overload &o = *e.overload;
	auto share = [](double cpu) { return cpu < 0 ? Out() : Out(cpu); };
	return {{"start_ns", o.period.since_ns},
		{"end_ns", o.period.until_ns},
		{"whole", o.whole},
		{"due_per_s", o.due_per_s},
		{"answered_per_s", o.answered_per_s},
		{"backlog", o.backlog},
		{"unsent", o.unsent},
		{"limit", o.limit == Overload::Server	? Out("server")
			  : o.limit == Overload::Client ? Out("client")
							: Out()},
		{"server_cpu", share(o.server_cpu)},
		{"client_cpu", share(o.client_cpu)}};
}

Out CostJson(const Cost &c)
{
	Out cost = {{"known", c.known},
		    {"bpf_ns", c.bpf_known ? Out(c.bpf_ns) : Out()},
		    {"bpf_ns_is_estimate", c.bpf_ns_is_estimate},
		    {"windows", c.windows ? Out(*c.windows) : Out()},
		    {"recorder_cpu_ns", c.recorder_cpu_ns},
		    {"load_cpu_ns", c.load_cpu_ns},
		    {"recorder_rss_bytes", c.recorder_rss_bytes}};
	Out programs = Out::array();
	for (const ProgramCost &p : c.programs)
		programs.push_back({{"name", p.name},
				    {"runs", p.runs},
				    {"ns_per_run", p.ns_per_run > 0 ? Out(p.ns_per_run) : Out()},
				    {"total_ns", p.ns_per_run > 0 ? Out(p.total_ns) : Out()}});
	cost["programs"] = programs;
	cost["helper_deaths"] = c.helper_deaths.empty() ? Out::object() : Out(c.helper_deaths);
	cost["main_loop_stalls"] = c.main_loop_stalls;
	return cost;
}

Out LegsJson(const Explanation &e, const SlowRequest &r)
{
	const Legs legs = LegsOf(e.blame, r);
	const uint32_t server = r.hop < e.hop_threads.size() ? e.hop_threads[r.hop] : UINT32_MAX;
	return {{"late_ns", legs.late_ns},
		{"to_server_ns", legs.there_ns},
		{"at_server_ns", legs.server_ns},
		{"from_server_ns", legs.back_ns},
		{"unread_ns", legs.unread_ns},
		{"unknown_ns", legs.unknown_ns},
		{"bound_ns", ClocksBound(e.run, r.connection, server)}};
}

Out SlowRequestJson(const Explanation &e, const SlowRequest &r)
{
	Out parts = Out::array();
	for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++) {
		const Part &part = e.blame.parts[p];
		Out one = {{"cause", CauseName(part.cause)},
			   {"direct_ns", part.direct_ns},
			   {"queued_ns", part.queued_ns}};
		if (part.hop != kNoHop)
			one["hop"] = HopText(e, part.hop);
		parts.push_back(std::move(one));
	}
	Out request = {{"id", r.index},
		       {"start_ns", r.due_ns},
		       {"t_s", SecondsAfter(r.due_ns, e.zero_ns)},
		       {"latency_ns", r.latency_ns},
		       {"episode", r.episode}};
	if (!e.blame.from_iterations) {
		request["sent_ns"] = r.sent_ns;
		request["connection"] = r.connection;
		request["op"] = r.op < e.run.ops.size() ? e.run.ops[r.op] : "";
		request["status"] = StatusName(r.status);
		if (const SlowKey *key = KeyOf(e.run, r))
			request["key"] = {{"text", key->text}, {"begin", key->begin}};
		if (SeenInKernel(e.run)) {
			request["idle_unread_ns"] = r.idle.unread_ns;
			request["idle_read_ns"] = r.idle.read_ns;
		}
		if (r.joined)
			request["network_split"] = SplitJson(r.Split());
		if (r.arrived) {
			request["arrived_ns"] = r.end_ns() - r.unread_ns;
			request["request_on_its_way_ns"] = r.way.request_ns;
			request["answer_on_its_way_ns"] = r.way.answer_ns;
		}
		if (e.run.clocks_bound_ns)
			request["clocks_unknown_ns"] = r.clocks_ns, request["legs"] = LegsJson(e, r);
		if (uint32_t behind = r.behind)
			request["behind"] = e.run.behind[behind - 1].address;
	}
	request["parts"] = parts;
	return request;
}

// What the answer speaks of.
Out VerdictJson(const Answer &answer)
{
	Out causes = Out::array();
	for (Cause cause : answer.causes)
		causes.push_back(CauseName(cause));
	return {{"kind", answer.kind}, {"causes", causes}, {"sure", answer.sure}};
}

Out RemediesJson(const Explanation &e)
{
	Out remedies = Out::array();
	for (const Remedy &remedy : RemediesOf(e)) {
		const RemedyInfo &info = *remedy.info;
		Out one = {{"id", info.id},
			   {"cause", CauseName(remedy.cause)},
			   {"text", info.text},
			   {"seen", remedy.seen},
			   {"command", info.command},
			   {"loses", info.loses},
			   {"measured", RemedyMeasured(info)}};
		one["what_if"][e.lead.figure->name] = remedy.without_ns;
		remedies.push_back(one);
	}
	return remedies;
}

// Every slow request with its parts, which add up to its latency.
void WriteSlowRequests(const Explanation &e, JsonWriter *out)
{
	out->BeginList("slow_requests");
	for (const SlowRequest &r : e.blame.slow)
		out->Add("", SlowRequestJson(e, r));
	out->End();
}

} // namespace

bool WriteExplainJson(const Explanation &e, FILE *file, bool requests)
{
	Out warnings = e.run.warnings;
	for (const std::string &note : e.notes)
		warnings.push_back(note);
	Out missing = Out::array();
	for (const Missing &m : e.run.missing)
		missing.push_back({{"what", m.what}, {"why", m.why}});
	const Answer answer = AnswerOf(e);
	JsonWriter out(file);
	out.BeginObject("");
	out.AddMembers({{"forktail", FORKTAIL_VERSION},
			{"run", e.run.path},
			{"answer", answer.text},
			{"verdict", VerdictJson(answer)},
			{"remedies", RemediesJson(e)},
			{"requests", RequestsJson(e)},
			{"loads", LoadsJson(e.run)},
			{"slow",
			 {{"threshold_ns", e.blame.threshold_ns},
			  {"count", e.blame.slow_count},
			  {"time_ns", e.blame.slow_ns}}},
			{"causes", CausesJson(e.blame)},
			{"hops", HopsJson(e)}});
	constexpr const char *names[kGroupings] = {"clients", "commands", "connections", "sizes"};
	for (size_t by = 0; by < kGroupings; by++)
		WriteGroups(e, names[by], e.groups[by], &out);
	if (!e.run.host_clocks.empty())
		out.Add("clocks", ClocksJson(e));
	WriteEpisodesJson(e, &out);
	WriteSnapshots(e, &out);
	out.Add("own_code", OwnCodeJson(e.own_code));
	WriteAccount(e, &out);
	WriteDrops(e, &out);
	out.Add("process_ends", ProcessEndsJson(e));
	if (e.overload)
		out.Add("overload", OverloadJson(e));
	Out marks = Out::array();
	for (const Mark &m : e.run.marks)
		marks.push_back(
		    {{"t_ns", m.t_ns}, {"t_s", SecondsAfter(m.t_ns, e.zero_ns)}, {"text", m.text}});
	if (!marks.empty())
		out.AddMembers({{"marks", marks}});
	out.AddMembers({{"cost", CostJson(e.run.cost)}, {"missing", missing}, {"warnings", warnings}});
	if (requests)
		WriteSlowRequests(e, &out);
	out.End();
	return out.ok();
}

std::string ExplainJson(const Explanation &e, bool requests)
{
	char *text = nullptr;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	if (!file)
		return "";
	WriteExplainJson(e, file, requests);
	fclose(file);
	std::string json(text, size);
	free(text);
	return json;
}

// Writes JUnit XML. XML 1.0 forbids most control characters (even as &#27;), U+FFFE and U+FFFF. Readers
// reject a file with one of them, and a failed build would look like one without tests. So such characters
// are escaped.

namespace
{

std::string Escape(const std::string &visible)
{
	std::string out;
	for (size_t i = 0; i < visible.size(); i++) {
		const char c = visible[i];
		if (c == '&')
			out += "&amp;";
		else if (c == '<')
			out += "&lt;";
		else if (c == '>')
			out += "&gt;";
		else if (c == '"')
			out += "&quot;";
		else if (visible.compare(i, 3, "\xef\xbf\xbe") == 0)
			out += "\\ufffe", i += 2;
		else if (visible.compare(i, 3, "\xef\xbf\xbf") == 0)
			out += "\\uffff", i += 2;
		else
			out += c;
	}
	return out;
}

std::string Attribute(const char *name, const std::string &text)
{
	return " " + std::string(name) + "=\"" + Escape(common::Visible(text)) + "\"";
}

std::string Seconds(double seconds)
{
	char text[64];
	snprintf(text, sizeof text, "%.6f", std::isfinite(seconds) && seconds > 0 ? seconds : 0.0);
	return Attribute("time", text);
}

size_t CountOf(const JunitSuite &suite, JunitCase::Outcome outcome)
{
	size_t count = 0;
	for (const JunitCase &c : suite.cases)
		count += c.outcome == outcome;
	return count;
}

// The same attributes for <testsuites> and <testsuite>: readers use either.
std::string Counts(const JunitSuite &suite)
{
	double seconds = 0;
	for (const JunitCase &c : suite.cases)
		seconds += c.seconds;
	return Attribute("name", suite.name) + Attribute("tests", std::to_string(suite.cases.size())) +
	       Attribute("failures", std::to_string(CountOf(suite, JunitCase::kFailed))) +
	       Attribute("errors", std::to_string(CountOf(suite, JunitCase::kError))) +
	       Attribute("skipped", std::to_string(CountOf(suite, JunitCase::kSkipped))) + Seconds(seconds);
}

// GitLab prints the text of a failure, Jenkins the message and the text.
std::string Verdict(const JunitCase &c)
{
	static const char *const names[] = {"", "failure", "error", "skipped"};
	if (c.outcome == JunitCase::kPassed)
		return "";
	const std::string name = names[c.outcome];
	if (c.outcome == JunitCase::kSkipped)
		return "      <skipped" + Attribute("message", c.message) + "/>\n";
	return "      <" + name + Attribute("message", c.message) + Attribute("type", c.classname) + ">" +
	       Escape(common::VisibleLines(c.message)) + (c.output.empty() ? "" : "\n") +
	       Escape(common::VisibleLines(c.output)) + "</" + name + ">\n";
}

} // namespace

std::string JunitXml(const JunitSuite &suite)
{
	std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + Counts(suite) +
			  ">\n  <testsuite" + Counts(suite) + ">\n";
	for (const JunitCase &c : suite.cases) {
		out += "    <testcase" + Attribute("name", c.name) + Attribute("classname", c.classname) +
		       Seconds(c.seconds);
		std::string inside = Verdict(c);
		if (!c.output.empty())
			inside +=
			    "      <system-out>" + Escape(common::VisibleLines(c.output)) + "</system-out>\n";
		out += inside.empty() ? "/>\n" : ">\n" + inside + "    </testcase>\n";
	}
	return out + "  </testsuite>\n</testsuites>\n";
}

} // namespace forktail::analysis
