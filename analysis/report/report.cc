// SPDX-License-Identifier: MIT
// Writes the report page: an explanation as JSON and typed arrays, inserted into the template that report/
// builds. It neither analyses nor draws; docs/reference/report.md describes the data.
#include "report.h"

#include <algorithm>
#include <map>

#include "analysis/blame/hops.h"
#include "analysis/explain/process_ends.h"
#include "analysis/run/same_clock.h"
#include "analysis/text/answer.h"
#include "arrays.h"
#include "clock.h"
#include "common/format/units.h"
#include "common/json/json_read.h"
#include "lanes.h"
#include "metrics.h"
#include "page_file.h"
#include "points.h"
#include "template.h"

namespace forktail::analysis::report
{

namespace
{

constexpr int kReportFormat = 1;

ReportClock ClockOf(const Explanation &e)
{
	uint64_t begin = e.run.start_ns, end = e.run.end_ns;
	if (!e.in_part && e.zero_ns && (begin == 0 || e.zero_ns < begin))
		begin = e.zero_ns;
	return ReportClock(begin, end, e.zero_ns ? e.zero_ns : begin);
}

std::string TitleOf(const Run &run)
{
	std::string title;
	for (const Target &t : run.targets)
		title += (title.empty() ? "" : ", ") + t.comm;
	if (title.empty())
		for (const std::string &server : run.servers)
			title += (title.empty() ? "" : ", ") + server;
	if (title.empty())
		title = "Run";
	std::string host = run.info.host;
	for (const RecordingFile *f : OverlaidFiles(run))
		if (host.empty())
			host = f->host;
	return host.empty() ? title : title + " on " + host;
}

// Facts about the run, as (label, text).
common::Json FactsJson(const Explanation &e, const ReportClock &clock)
{
	const Run &run = e.run;
	common::Json facts = common::Json::array();
	auto add = [&](const char *label, const std::string &text) {
		if (!text.empty())
			facts.push_back({label, text});
	};
	for (const auto &[name, version] : run.info.versions)
		if (name != "forktail") // its version is in the page's head
			add("Version", name + " " + version);
	for (const Target &t : run.targets)
		add("Server", "pid " + std::to_string(t.pid) + ": " +
				  (t.cmdline.empty() ? t.comm : t.cmdline) +
				  (t.cgroup_of.empty() ? "" : ", " + t.cgroup_of));
	for (const Load &load : run.loads) {
		std::string text = load.kernel ? "any clients, seen in the server's kernel"
				   : load.arrival == "closed"
				       ? "closed loop"
				       : "open loop at " +
					     common::FormatCount(static_cast<uint64_t>(load.rate)) + "/s, " +
					     (load.arrival.empty() ? "constant" : load.arrival) + " arrivals";
		text += ", " + common::Plural(load.connection_count, "connection", "connections");
		if (load.sample > 1)
			text += " (1 in " + std::to_string(load.sample) + " sampled)";
		if (load.pipeline > 1)
			text += ", pipeline " + std::to_string(load.pipeline);
		add("Load", text);
	}
	add("Length", common::FormatDuration(clock.end_ns - clock.begin_ns));
	std::string kernel = run.info.kernel;
	for (const RecordingFile *f : OverlaidFiles(run))
		if (kernel.empty())
			kernel = f->kernel;
	add("Kernel", kernel);
	if (run.cpus)
		add("CPUs", std::to_string(run.cpus));
	const Cost &cost = run.cost;
	if (cost.known) {
		double wall = static_cast<double>(clock.end_ns - clock.begin_ns);
		add("Recorder overhead",
		    std::string(cost.bpf_ns_is_estimate ? "about " : "") +
			common::FormatPercent(static_cast<double>(cost.bpf_ns) / wall) +
			" of a CPU in the kernel, " +
			common::FormatPercent(static_cast<double>(cost.recorder_cpu_ns) / wall) +
			" in user space, " + common::FormatBytes(cost.recorder_rss_bytes));
	}
	return facts;
}

common::Json WarningsJson(const Explanation &e, size_t threads_left_out)
{
	std::vector<std::string> texts = e.notes;
	auto add = [&](const std::string &text) {
		if (std::find(texts.begin(), texts.end(), text) == texts.end())
			texts.push_back(text);
	};
	for (const std::string &warning : e.run.warnings)
		add(warning);
	if (threads_left_out)
		add(common::Plural(threads_left_out, "thread has", "threads have") + " no lane on this page");
	return texts;
}

common::Json CausesJson(const Blame &blame)
{
	common::Json causes = common::Json::array();
	for (const CauseRow &row : blame.causes)
		causes.push_back({{"cause", Index(row.cause)},
				  {"requests", row.requests},
				  {"direct_ns", row.direct_ns},
				  {"queued_ns", row.queued_ns},
				  {"share", row.share},
				  {"without", LatenciesJson<common::Json>(row.without)}});
	return causes;
}

double ExplainedShare(const Blame &blame)
{
	for (const CauseRow &row : blame.causes)
		if (row.cause == Cause::Unknown)
			return 1 - row.share;
	return 1;
}

// On-CPU time of own code by activity, longest first.
common::Json ActivitiesJson(const OwnCode &own)
{
	constexpr size_t shown = 40;
	common::Json activities = common::Json::array();
	for (const ActivityTime &a : own.activities)
		if (activities.size() < shown)
			activities.push_back({{"name", a.name},
					      {"samples", a.samples},
					      {"share", a.share},
					      {"time_ns", a.time_ns},
					      {"error", a.error()},
					      {"stack", a.stack}});
	return activities;
}

// An episode's processes and threads, if there are several.
common::Json EpisodeHopsJson(const Explanation &e, const Episode &episode)
{
	common::Json hops = common::Json::array();
	if (episode.hops.size() > 1)
		for (const EpisodeHop &h : episode.hops)
			hops.push_back(
			    {{"name", HopNameOf(e.run, e.timelines, h.hop, e.blame.from_iterations).text()},
			     {"time_ns", h.time_ns},
			     {"share", h.share}});
	return hops;
}

common::Json EpisodesJson(const Explanation &e, const ReportClock &clock)
{
	common::Json episodes = common::Json::array();
	for (const Episode &episode : e.episodes) {
		common::Json causes = common::Json::array();
		for (const EpisodeCause &c : episode.causes)
			causes.push_back(
			    {{"cause", Index(c.cause)}, {"time_ns", c.time_ns}, {"share", c.share}});
		episodes.push_back({{"start_s", clock.Seconds(episode.start_ns)},
				    {"end_s", clock.Seconds(episode.end_ns)},
				    {"since_s", clock.Seconds(std::min(episode.since_ns, episode.start_ns))},
				    {"requests", episode.requests},
				    {"worst_ns", episode.worst_ns},
				    {"time_ns", episode.time_ns},
				    {"causes", causes},
				    {"hops", EpisodeHopsJson(e, episode)},
				    {"activities", ActivitiesJson(episode.own_code)},
				    {"evidence", episode.evidence}});
	}
	return episodes;
}

// Connections of slow requests, with their numbers in the request logs.
void AddConnections(const Run &run, const ReportPoints &points, common::Json *page, ReportArrays *arrays)
{
	std::vector<uint32_t> port, server, client;
	std::map<uint32_t, size_t> clients; // each one's index in the page
	common::Json names = common::Json::array();
	for (uint32_t number : points.connections) {
		const Connection &c =
		    number < run.connections.size() ? run.connections[number] : Connection{};
		port.push_back(c.local_port);
		server.push_back(c.server);
		const auto [at, is_new] = clients.try_emplace(c.client, clients.size());
		if (is_new)
			names.push_back(c.client ? run.request_clients[c.client - 1].name : "");
		client.push_back(static_cast<uint32_t>(at->second));
	}
	(*page)["clients"] = names;
	arrays->Add("connection_client", client);
	arrays->Add("connection_number", points.connections);
	arrays->Add("connection_port", port);
	arrays->Add("connection_server", server);
}

void AddPoints(const Explanation &e, const ReportPoints &points, common::Json *page, ReportArrays *arrays)
{
	(*page)["slow_count"] = points.slow;
	(*page)["slow_shown"] = points.start.size();
	(*page)["heat"] = {{"columns", points.columns},
			   {"first_bin", points.first_bin},
			   {"bins_per_decade", kBinsPerDecade}};
	arrays->Add("slow_start", points.start);
	arrays->Add("slow_since", points.since);
	arrays->Add("slow_latency", points.latency_ns);
	arrays->Add("slow_cause", points.cause);
	arrays->Add("slow_op", points.op);
	arrays->Add("slow_number", points.number);
	arrays->Add("slow_sent", points.sent);
	arrays->Add("slow_connection", points.connection);
	arrays->Add("slow_hop", points.hop);
	arrays->Add("slow_status", points.status);
	arrays->Add("slow_behind", points.behind);
	arrays->Add("slow_unread", points.unread_ns);
	arrays->Add("slow_way", points.way_ns);
	arrays->Add("slow_way_back", points.way_back_ns);
	arrays->Add("slow_read", points.read_after_ns);
	arrays->Add("slow_written", points.written_after_ns);
	arrays->Add("slow_request_bytes", points.request_bytes);
	arrays->Add("slow_answer_bytes", points.answer_bytes);
	arrays->Add("slow_parts", points.part_count);
	arrays->Add("part_cause", points.part_cause);
	arrays->Add("part_hop", points.part_hop);
	arrays->Add("part_direct", points.part_direct_ns);
	arrays->Add("part_queued", points.part_queued_ns);
	AddConnections(e.run, points, page, arrays);
	(*page)["parts_each"] = points.parts_each;
	common::Json behind = common::Json::array();
	for (const Behind &b : e.run.behind)
		behind.push_back(b.name);
	(*page)["behind"] = behind;
	(*page)["servers"] = e.run.servers;
	arrays->Add("heat_column", points.cell_column);
	arrays->Add("heat_bin", points.cell_bin);
	arrays->Add("heat_count", points.cell_count);
	arrays->Add("near_start", points.near_start);
	arrays->Add("near_latency", points.near_latency_ns);
	(*page)["near_stride"] = points.near_stride;
}

common::Json RateJson(const Lane &lane, const LaneRange &range)
{
	return {{"first", range.first},
		{"count", range.count},
		{"step_s", static_cast<double>(lane.rate_step_ns) / 1e9},
		{"name", lane.rate_name},
		{"unit", lane.rate_unit},
		{"max", *std::max_element(lane.rate.begin(), lane.rate.end())}};
}

common::Json LaneJson(const Lane &lane, const ReportClock &clock, const LaneRange &spans,
		      const LaneRange &cells)
{
	common::Json life = common::Json::array();
	for (const auto &[from, to] : lane.life)
		life.push_back({clock.Seconds(from), clock.Seconds(to)});
	return {{"group", lane.group},
		{"name", lane.name},
		{"note", lane.note},
		{"kind", lane.kind},
		{"life", life},
		{"spans", {spans.first, spans.count}},
		{"cells", {cells.first, cells.count}}};
}

// The on-CPU time of a serving thread, below its lane.
common::Json ActivityLaneJson(const Lane &of, const ReportClock &clock, const ReportSamples::Range &samples)
{
	common::Json lane = LaneJson(of, clock, {}, {});
	lane["name"] = "on-CPU time";
	lane["kind"] = "activity";
	lane["samples"] = {samples.first, samples.count};
	return lane;
}

void AddSamples(const ReportSamples &samples, common::Json *page, ReportArrays *arrays)
{
	(*page)["activities"] = samples.activities;
	(*page)["functions"] = samples.functions;
	(*page)["samples_total"] = samples.total;
	arrays->Add("sample_end", samples.end);
	arrays->Add("sample_length", samples.length);
	arrays->Add("sample_stack", samples.stack);
	arrays->Add("sample_activity", samples.activity);
	arrays->Add("sample_own", samples.own);
	arrays->Add("stack_first", samples.stack_first);
	arrays->Add("stack_kernel", samples.stack_kernel);
	arrays->Add("stack_frame", samples.stack_frame);
}

void AddSpans(const ReportLanes &reduced, const ReportClock &clock, common::Json *page, ReportArrays *arrays)
{
	(*page)["details"] = reduced.details;
	(*page)["cell_ticks"] = static_cast<double>(reduced.cell_ns) / static_cast<double>(clock.tick_ns);
	(*page)["spans_total"] = reduced.spans_total;
	(*page)["spans_shown"] = reduced.span_start.size();
	(*page)["shortest_shown_ns"] = reduced.shortest_ns;
	arrays->Add("span_start", reduced.span_start);
	arrays->Add("span_length", reduced.span_length);
	arrays->Add("span_cause", reduced.span_cause);
	arrays->Add("span_detail", reduced.span_detail);
	arrays->Add("cell_index", reduced.cell_index);
	arrays->Add("cell_cause", reduced.cell_cause);
	arrays->Add("cell_share", reduced.cell_share);
	arrays->Add("rate", reduced.rate);
}

// By thread of the run: its lane of the page.
using LaneOfThread = std::map<uint32_t, size_t>;

LaneOfThread AddLanes(const ReportLanes &reduced, const ReportClock &clock, common::Json *page,
		      ReportArrays *arrays)
{
	common::Json lanes = common::Json::array();
	LaneOfThread of_thread;
	for (size_t i = 0; i < reduced.lanes.size(); i++) {
		const Lane &lane = reduced.lanes[i];
		for (uint32_t thread : lane.threads)
			of_thread[thread] = lanes.size();
		lanes.push_back(LaneJson(lane, clock, reduced.spans[i], reduced.cells[i]));
		if (!lane.rate.empty())
			lanes.back()["rate"] = RateJson(lane, reduced.rates[i]);
		for (const ReportSamples::Range &range : reduced.samples.threads)
			if (lane.kind == "serving" && lane.threads[0] == range.thread)
				lanes.push_back(ActivityLaneJson(lane, clock, range));
	}
	(*page)["lanes"] = lanes;
	AddSpans(reduced, clock, page, arrays);
	AddSamples(reduced.samples, page, arrays);
	return of_thread;
}

// The threads on the path of slow requests and their parts.
common::Json HopNamesJson(const Explanation &e, const std::vector<uint16_t> &hops, const LaneOfThread &lanes)
{
	common::Json names = common::Json::array();
	for (uint16_t hop : hops) {
		auto lane = hop < e.timelines.size() ? lanes.find(e.timelines[hop].thread) : lanes.end();
		names.push_back(
		    {{"name", HopNameOf(e.run, e.timelines, hop, e.blame.from_iterations).text()},
		     {"lane", lane == lanes.end() ? common::Json() : common::Json(lane->second)}});
	}
	return names;
}

void AddMetrics(const Run &run, const ReportClock &clock, common::Json *page, ReportArrays *arrays)
{
	std::vector<uint32_t> times;
	std::vector<float> values;
	common::Json metrics = common::Json::array();
	for (const MetricChart &chart : CollectMetrics(run, clock)) {
		common::Json lines = common::Json::array();
		for (const MetricLine &line : chart.lines) {
			lines.push_back({{"name", line.name}, {"first", values.size()}});
			values.insert(values.end(), line.values.begin(), line.values.end());
		}
		metrics.push_back({{"name", chart.name},
				   {"unit", chart.unit},
				   {"first", times.size()},
				   {"count", chart.times.size()},
				   {"lines", lines}});
		times.insert(times.end(), chart.times.begin(), chart.times.end());
	}
	(*page)["metrics"] = metrics;
	arrays->Add("metric_time", times);
	arrays->Add("metric_value", values);
}

// Time by process or thread, if requests passed several.
common::Json HopsJson(const Explanation &e)
{
	common::Json hops = common::Json::array();
	if (e.blame.hops.size() < 2)
		return hops;
	for (const HopRow &row : e.blame.hops) {
		HopName name = HopNameOf(e.run, e.timelines, row.hop, e.blame.from_iterations);
		common::Json causes = common::Json::array();
		for (const HopCause &c : row.causes)
			causes.push_back({{"cause", Index(c.cause)}, {"time_ns", c.time_ns}});
		hops.push_back({{"name", name.text()},
				{"role", RoleOf(row, name)},
				{"requests", row.requests},
				{"time_ns", row.time_ns},
				{"share", row.share},
				{"causes", causes}});
	}
	return hops;
}

// The ends of recorded processes, which the charts mark.
common::Json EndsJson(const Explanation &e, const ReportClock &clock)
{
	common::Json ends = common::Json::array();
	for (const ProcessEnd &end : e.run.ended)
		ends.push_back({{"t_s", clock.Seconds(end.t_ns)},
				{"text", NameOf(end) + " exited" + HowText(e.run, end)}});
	return ends;
}

common::Json PageJson(const Explanation &e, ReportArrays *arrays)
{
	const Blame &blame = e.blame;
	ReportClock clock = ClockOf(e);
	common::Json names = common::Json::array(), looks = common::Json::array();
	for (int c = 0; c < kLaneCauses; c++) {
		names.push_back(LaneCauseName(c));
		LaneCauseLook look = LaneCauseLookOf(c);
		looks.push_back({look.family, look.light, look.dark, look.meaning});
	}
	common::Json page = {{"format", kReportFormat},
			     {"version", FORKTAIL_VERSION},
			     {"title", TitleOf(e.run)},
			     {"answer", AnswerText(e)},
			     {"facts", FactsJson(e, clock)},
			     {"begin_s", clock.Seconds(clock.begin_ns)},
			     {"end_s", clock.Seconds(clock.end_ns)},
			     {"tick_ns", clock.tick_ns},
			     {"from_iterations", blame.from_iterations},
			     {"count", blame.count},
			     {"errors", blame.errors},
			     {"latency_ns", LatenciesJson<common::Json>(blame.latencies)},
			     {"threshold_ns", blame.threshold_ns},
			     {"slow_ns", blame.slow_ns},
			     {"explained", ExplainedShare(blame)},
			     {"ops", blame.from_iterations ? std::vector<std::string>() : e.run.ops},
			     {"cause_names", names},
			     {"cause_looks", looks},
			     {"causes", CausesJson(blame)},
			     {"hops", HopsJson(e)},
			     {"own_code", ActivitiesJson(e.own_code)},
			     {"episodes", EpisodesJson(e, clock)},
			     {"ends", EndsJson(e, clock)}};
	const ReportPoints points = CollectPoints(e, clock);
	AddPoints(e, points, &page, arrays);
	const ReportLanes lanes = MakeLanes(e, clock, {});
	page["hop_names"] = HopNamesJson(e, points.hops, AddLanes(lanes, clock, &page, arrays));
	AddMetrics(e.run, clock, &page, arrays);
	page["warnings"] = WarningsJson(e, lanes.threads_left_out);
	page["arrays"] = arrays->table;
	return page;
}

} // namespace

bool WriteReport(const Explanation &explanation, const std::string &path, std::string *error)
{
	ReportArrays arrays;
	common::Json json = PageJson(explanation, &arrays);
	return WritePage({ft_report_template, ft_report_template_size()}, json, arrays,
			 explanation.run.shared_mode, path, error);
}

} // namespace forktail::analysis::report
