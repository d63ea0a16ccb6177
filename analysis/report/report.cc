// SPDX-License-Identifier: MIT
// Writes the report page: an explanation as JSON and typed arrays, inserted into the template that report/
// builds. It neither analyses nor draws; docs/reference/report.md describes the data.
#include "analysis/report.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>

#include "analysis/blame.h"
#include "analysis/explain.h"
#include "analysis/run.h"
#include "analysis/text.h"
#include "common/files.h"
#include "common/format.h"
#include "common/json.h"
#include "page_data.h"
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

std::vector<Fact> FactsOf(const Explanation &e, const ReportClock &clock)
{
	const Run &run = e.run;
	std::vector<Fact> facts;
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
		    (cost.bpf_known ? std::string(cost.bpf_ns_is_estimate ? "about " : "") +
					  common::FormatPercent(static_cast<double>(cost.bpf_ns) / wall) +
					  " of a CPU in the kernel, "
				    : "time in the kernel not known, ") +
			common::FormatPercent(static_cast<double>(cost.recorder_cpu_ns) / wall) +
			" in user space, " + common::FormatBytes(cost.recorder_rss_bytes));
	}
	return facts;
}

std::vector<std::string> WarningsOf(const Explanation &e, size_t threads_left_out)
{
	std::vector<std::string> texts;
	// First, because it concerns all of what follows.
	if (const uint64_t dropped = DropCount(e.run))
		texts.push_back(common::Plural(dropped, "event was", "events were") + " dropped");
	texts.insert(texts.end(), e.notes.begin(), e.notes.end());
	auto add = [&](const std::string &text) {
		if (std::find(texts.begin(), texts.end(), text) == texts.end())
			texts.push_back(text);
	};
	for (const std::string &warning : e.run.warnings)
		add(warning);
	for (const Missing &m : e.run.missing)
		add("not recorded: " + m.Text());
	if (threads_left_out)
		add(common::Plural(threads_left_out, "thread has", "threads have") + " no lane on this page");
	return texts;
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
			    {{"name", HopNameOf(e.run, e.hop_threads, h.hop, e.blame.from_iterations).text()},
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
		auto lane = hop < e.hop_threads.size() ? lanes.find(e.hop_threads[hop]) : lanes.end();
		names.push_back(
		    {{"name", HopNameOf(e.run, e.hop_threads, hop, e.blame.from_iterations).text()},
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
		HopName name = HopNameOf(e.run, e.hop_threads, row.hop, e.blame.from_iterations);
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

// A page's parts, but for its arrays.
struct ReportParts {
	std::string title, header, causes, episodes;
	common::Json run;
};

ReportParts PartsOf(const Explanation &e, Reading *reading, ReportArrays *arrays)
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
			     {"begin_s", clock.Seconds(clock.begin_ns)},
			     {"end_s", clock.Seconds(clock.end_ns)},
			     {"tick_ns", clock.tick_ns},
			     {"from_iterations", blame.from_iterations},
			     {"count", blame.count},
			     {"latency_ns", LatenciesJson<common::Json>(blame.latencies)},
			     {"threshold_ns", blame.threshold_ns},
			     {"ops", blame.from_iterations ? std::vector<std::string>() : e.run.ops},
			     {"cause_names", names},
			     {"cause_looks", looks},
			     {"hops", HopsJson(e)},
			     {"own_code", ActivitiesJson(e.own_code)},
			     {"episodes", EpisodesJson(e, clock)},
			     {"ends", EndsJson(e, clock)}};
	const ReportPoints points = CollectPoints(e, reading, clock);
	AddPoints(e, points, &page, arrays);
	const ReportLanes lanes = MakeLanes(e, reading, clock, {});
	page["hop_names"] = HopNamesJson(e, points.hops, AddLanes(lanes, clock, &page, arrays));
	AddMetrics(e.run, clock, &page, arrays);
	page["arrays"] = arrays->table;
	const std::string title = TitleOf(e.run);
	return {Escaped(title),
		HeaderHtml(e, title, FactsOf(e, clock), WarningsOf(e, lanes.threads_left_out)), CausesHtml(e),
		EpisodesHtml(e), std::move(page)};
}

} // namespace

bool WriteReport(const Explanation &explanation, Reading *reading, const std::string &path,
		 std::string *error)
{
	ReportArrays arrays;
	const ReportParts parts = PartsOf(explanation, reading, &arrays);
	return WritePage({ft_report_template, ft_report_template_size()},
			 {{"@TITLE@", parts.title},
			  {"@HEADER@", parts.header},
			  {"@CAUSES@", parts.causes},
			  {"@EPISODES@", parts.episodes}},
			 parts.run, arrays, explanation.run.shared_mode, path, error);
}

// Names in a run are untrusted text. Inside a script element an HTML parser only reacts to "</script" and
// "<!--", which both begin with "<". So "<" is written as JSON's \u003c.

namespace
{

// JSON without anything that an HTML parser would take as markup. Bytes that are not UTF-8 become U+FFFD.
std::string ScriptSafe(const common::Json &json)
{
	std::string plain = json.dump(-1, ' ', false, common::Json::error_handler_t::replace);
	std::string text;
	text.reserve(plain.size() + plain.size() / 64);
	for (char c : plain) {
		if (c == '<')
			text += "\\u003c";
		else
			text += c;
	}
	return text;
}

bool WriteFile(const std::string &path, const std::vector<std::string_view> &parts, uint32_t mode,
	       std::string *error)
{
	common::Pending pending;
	if (!pending.Begin(path, common::Pending::kFile, error))
		return false;
	FILE *file = fopen(pending.at().c_str(), "wb");
	bool ok = file != nullptr;
	for (std::string_view part : parts)
		ok = ok && fwrite(part.data(), 1, part.size(), file) == part.size();
	int why = errno;
	if (file && fclose(file) != 0 && ok) {
		ok = false;
		why = errno;
	}
	if (ok)
		return pending.Commit(error, mode);
	*error = "cannot write the report to " + path + ": " + strerror(why);
	return false;
}

} // namespace

bool WritePage(std::string_view page, std::vector<PagePart> parts, const nlohmann::json &run,
	       const ReportArrays &arrays, uint32_t mode, const std::string &path, std::string *error)
{
	parts.push_back({"@DATA@", "<script type=\"application/json\" id=\"run\">" + ScriptSafe(run) +
				       "</script>\n<script type=\"text/plain\" id=\"arrays\">" +
				       Base64(arrays.bytes) + "</script>"});
	std::vector<std::string_view> pieces;
	for (const PagePart &part : parts) {
		size_t at = page.find(part.place);
		if (at == std::string_view::npos) {
			*error = "this forktail was built without the report pages";
			return false;
		}
		pieces.push_back(page.substr(0, at));
		pieces.push_back(part.html);
		page.remove_prefix(at + part.place.size());
	}
	pieces.push_back(page);
	return WriteFile(path, pieces, mode, error);
}

// Base64, because an HTML file must be text.

std::string Base64(const std::string &bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	std::string text;
	text.reserve((bytes.size() + 2) / 3 * 4);
	for (size_t i = 0; i < bytes.size(); i += 3) {
		uint32_t three = 0;
		for (size_t k = 0; k < 3; k++)
			three = three << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
		text += digits[three >> 18];
		text += digits[three >> 12 & 63];
		text += i + 1 < bytes.size() ? digits[three >> 6 & 63] : '=';
		text += i + 2 < bytes.size() ? digits[three & 63] : '=';
	}
	return text;
}

// Selects the metrics that relate to latency, the most interesting ones first. Metrics that were always zero
// are omitted: a machine that never swapped needs no chart of it.

namespace
{

constexpr size_t kLines = 5;		    // more lines in one small chart cannot be distinguished
constexpr uint64_t kPeriodNs = 100'000'000; // the recorder's period
constexpr size_t kPerLabel = 3;		    // of disks and network interfaces the busiest

struct Wanted {
	const char *title;
	const char *label; // one chart per value of it; "": one chart
	struct {
		const char *series, *line;
	} lines[kLines];
};

// The recorder's series (docs/reference/recording-format.md lists them).
const Wanted kWanted[] = {
    {"Server CPU", "pid", {{"target.cpu", "of one CPU"}}},
    {"Server memory", "pid", {{"target.rss", "resident"}}},
    {"Memory copied by the running snapshot", "pid", {{"target.snapshot_copied", "copied"}}},
    {"Server faults", "pid", {{"target.minor_faults", "minor"}, {"target.major_faults", "major"}}},
    {"Host CPU",
     "",
     {{"host.cpu.user", "user"},
      {"host.cpu.system", "system"},
      {"host.cpu.softirq", "softirq"},
      {"host.cpu.iowait", "I/O wait"},
      {"host.cpu.steal", "steal"}}},
    {"Disk", "device", {{"host.disk.write", "written"}, {"host.disk.read", "read"}}},
    {"Host memory", "", {{"host.memory.available", "available"}}},
    {"Dirty pages", "", {{"host.memory.dirty", "dirty"}, {"host.memory.writeback", "writeback"}}},
    {"Swap", "", {{"host.swap_in", "pages in"}, {"host.swap_out", "pages out"}}},
    {"Network", "interface", {{"host.network.receive", "received"}, {"host.network.transmit", "sent"}}},
};

double Sum(const Series &s)
{
	double sum = 0;
	for (const Sample &x : s.samples)
		sum += std::abs(x.value);
	return sum;
}

struct Chosen {
	std::string title;
	std::vector<std::pair<std::string, const Series *>> lines;
	double sum = 0;
};

// A partition's traffic is also counted for its disk.
bool IsPartition(const std::string &name, const std::map<std::string, Chosen> &all)
{
	return std::any_of(all.begin(), all.end(), [&](const auto &other) {
		return other.first.size() < name.size() &&
		       name.compare(0, other.first.size(), other.first) == 0;
	});
}

std::vector<Chosen> Choose(const Run &run, const Wanted &wanted)
{
	std::map<std::string, Chosen> by_label;
	for (const auto &line : wanted.lines) {
		if (!line.series)
			break;
		for (const Series &s : run.series) {
			if (s.name != line.series)
				continue;
			double sum = Sum(s);
			auto label = s.labels.find(wanted.label);
			if (sum == 0)
				continue;
			std::string value = label == s.labels.end() ? "" : label->second;
			Chosen &chosen = by_label[value];
			chosen.title = wanted.title + (value.empty() ? "" : " " + value);
			chosen.lines.push_back({line.line, &s});
			chosen.sum += sum;
		}
	}
	std::vector<Chosen> charts;
	if (by_label.size() == 1 && std::string(wanted.label) == "pid")
		by_label.begin()->second.title = wanted.title; // a single server needs no number
	for (const auto &[value, chosen] : by_label)
		if (std::string(wanted.label) != "device" || !IsPartition(value, by_label))
			charts.push_back(chosen);
	std::stable_sort(charts.begin(), charts.end(),
			 [](const Chosen &a, const Chosen &b) { return a.sum > b.sum; });
	if (charts.size() > kPerLabel)
		charts.resize(kPerLabel);
	return charts;
}

// The series' mean in each step of [from_ns, from_ns + steps * step_ns). A step without a sample has the last
// value, because unchanged values are not written again.
std::vector<float> Resample(const Series &s, uint64_t from_ns, uint64_t step_ns, size_t steps)
{
	std::vector<float> values(steps);
	float last = std::numeric_limits<float>::quiet_NaN();
	auto sample = std::lower_bound(s.samples.begin(), s.samples.end(), from_ns,
				       [](const Sample &x, uint64_t t) { return x.t_ns < t; });
	if (sample != s.samples.begin())
		last = static_cast<float>((sample - 1)->value);
	for (size_t i = 0; i < steps; i++) {
		double sum = 0;
		size_t n = 0;
		for (; sample != s.samples.end() && sample->t_ns < from_ns + (i + 1) * step_ns; ++sample, n++)
			sum += sample->value;
		values[i] = n ? static_cast<float>(sum / static_cast<double>(n)) : last;
		if (n)
			last = static_cast<float>((sample - 1)->value);
	}
	return values;
}

// The time range of the recorder's metrics.
struct Extent {
	uint64_t from_ns = UINT64_MAX;
	uint64_t to_ns = 0;
};

Extent ExtentOf(const Run &run, const ReportClock &clock)
{
	Extent extent;
	for (const Series &s : run.series)
		if (!s.samples.empty()) {
			extent.from_ns = std::min(extent.from_ns, s.samples.front().t_ns);
			extent.to_ns = std::max(extent.to_ns, s.samples.back().t_ns);
		}
	extent.from_ns = std::max(extent.from_ns, clock.begin_ns);
	extent.to_ns = std::min(extent.to_ns, clock.end_ns);
	return extent;
}

} // namespace

std::vector<MetricChart> CollectMetrics(const Run &run, const ReportClock &clock, size_t samples)
{
	std::vector<MetricChart> charts;
	Extent extent = ExtentOf(run, clock);
	if (extent.from_ns >= extent.to_ns)
		return charts;
	uint64_t step_ns = std::max<uint64_t>(kPeriodNs, (extent.to_ns - extent.from_ns) / samples + 1);
	size_t steps = (extent.to_ns - extent.from_ns) / step_ns + 1;
	if (steps < 2)
		return charts;
	for (const Wanted &wanted : kWanted)
		for (const Chosen &chosen : Choose(run, wanted)) {
			MetricChart chart = {chosen.title, chosen.lines[0].second->unit, {}, {}};
			for (size_t i = 0; i < steps; i++)
				chart.times.push_back(clock.Tick(extent.from_ns + i * step_ns));
			for (const auto &[name, series] : chosen.lines)
				chart.lines.push_back(
				    {name, Resample(*series, extent.from_ns, step_ns, steps)});
			charts.push_back(std::move(chart));
		}
	return charts;
}

} // namespace forktail::analysis::report
