// SPDX-License-Identifier: MIT
// The totals of a run as OpenMetrics 1.0 text, as a scrape at its end would return them.
#include <cinttypes>
#include <map>

#include "analysis/text/layout.h"
#include "common/format/units.h"
#include "text.h"
#include "text_file.h"

namespace forktail::analysis::exports
{

namespace
{

std::string Escaped(const std::string &text)
{
	std::string out;
	for (char c : text) {
		if (c == '\\' || c == '"')
			out += '\\';
		out += c == '\n' ? ' ' : c;
	}
	return out;
}

using Labels = std::vector<std::pair<const char *, std::string>>;

std::string Text(const Labels &labels)
{
	std::string text;
	for (const auto &[name, value] : labels)
		text += (text.empty() ? "{" : ",") + std::string(name) + "=\"" + Escaped(value) + "\"";
	return text.empty() ? "" : text + "}";
}

// Seconds to the nanosecond. A double would lose digits in a long run.
std::string SecondsText(uint64_t ns)
{
	char text[40];
	snprintf(text, sizeof(text), "%" PRIu64 ".%09" PRIu64, ns / 1'000'000'000, ns % 1'000'000'000);
	return text;
}

class OpenMetricsExporter : public Exporter
{
public:
	explicit OpenMetricsExporter(const std::string &path) : file_(path) {}
	Wants wants() const override { return {.blamed = false, .stretches = false, .windows = false}; }
	bool End(const Explanation &e) override
	{
		AddThreads(e);
		AddCauses(e.blame);
		AddRequests(e);
		AddDrops(e.run);
		file_.Put("# EOF\n");
		return file_.Close() || Fail(file_.Why());
	}

private:
	void Family(const std::string &name, const char *type, const char *unit, const char *help)
	{
		file_.Put("# TYPE " + name + " " + type + "\n");
		if (*unit)
			file_.Put("# UNIT " + name + " " + unit + "\n");
		file_.Put("# HELP " + name + " " + help + "\n");
	}
	void Value(const std::string &name, const Labels &labels, const std::string &value)
	{
		file_.Put(name + Text(labels) + " " + value + "\n");
	}
	void AddThreads(const Explanation &e);
	void AddCauses(const Blame &b);
	void AddRequests(const Explanation &e);
	void AddDrops(const Run &run);

	TextFile file_;
};

// The server's port or path, which stays the same when it is restarted; never its process id.
std::string ServerLabel(const Run &run, const Thread &t)
{
	for (const Target &target : run.targets)
		if (target.pid == t.tgid || target.pid == t.parent_tgid)
			return target.listens.empty() ? target.comm : target.listens[0];
	return t.comm;
}

void OpenMetricsExporter::AddThreads(const Explanation &e)
{
	std::map<std::pair<std::string, std::string>, CauseTimes> all;
	for (const Account &a : e.accounts) {
		const Thread &t = e.run.threads[a.thread];
		if (t.flags & FT_THREAD_CLIENT)
			continue;
		CauseTimes &times = all[{ServerLabel(e.run, t), t.role.empty() ? t.comm : t.role}];
		for (int c = 0; c < kTimelineCauses; c++)
			times[c] += a.by_cause[c];
	}
	Family("forktail_thread_seconds", "counter", "seconds", "Time of server threads by cause.");
	for (const auto &[who, times] : all)
		for (int c = 0; c < kTimelineCauses; c++)
			if (times[c])
				Value("forktail_thread_seconds_total",
				      {{"server", who.first},
				       {"thread", who.second},
				       {"cause", AccountName(static_cast<Cause>(c))}},
				      SecondsText(times[c]));
}

void OpenMetricsExporter::AddCauses(const Blame &b)
{
	Family("forktail_blamed_seconds", "counter", "seconds", "Latency of slow requests by cause.");
	for (const CauseRow &row : b.causes) {
		Value("forktail_blamed_seconds_total", {{"cause", CauseName(row.cause)}, {"how", "direct"}},
		      SecondsText(row.direct_ns));
		Value("forktail_blamed_seconds_total", {{"cause", CauseName(row.cause)}, {"how", "queued"}},
		      SecondsText(row.queued_ns));
	}
}

void OpenMetricsExporter::AddRequests(const Explanation &e)
{
	const Blame &b = e.blame;
	Family("forktail_requests", "counter", "",
	       "Requests, or event-loop iterations if there is no request log.");
	Value("forktail_requests_total", {}, std::to_string(b.count));
	Family("forktail_request_errors", "counter", "", "Requests that failed.");
	Value("forktail_request_errors_total", {}, std::to_string(b.errors));
	Family("forktail_slow_requests", "counter", "", "Requests at or above the slow threshold.");
	Value("forktail_slow_requests_total", {}, std::to_string(b.slow_count));
	Family("forktail_slow_threshold_seconds", "gauge", "seconds", "Lowest latency of a slow request.");
	Value("forktail_slow_threshold_seconds", {}, SecondsText(b.threshold_ns));
	Family("forktail_episodes", "counter", "", "Episodes of slow requests.");
	Value("forktail_episodes_total", {}, std::to_string(e.episodes.size()));
	Family("forktail_latency_seconds", "summary", "seconds", "Latency of answered requests.");
	for (const NamedLatency &n : kLatencies)
		Value("forktail_latency_seconds", {{"quantile", Format("%g", n.percentile / 100)}},
		      SecondsText(b.latencies.*n.value));
	Family("forktail_measured_seconds", "gauge", "seconds", "Length of the run, from its first request.");
	Value("forktail_measured_seconds", {}, SecondsText(e.measured_ns));
}

void OpenMetricsExporter::AddDrops(const Run &run)
{
	static const char *const sources[] = {"unknown",  "ring",	  "stack",
					      "io-table", "thread-state", "request-log",
					      "missed",	  "unwinding",	  "disk"};
	std::map<std::string, uint64_t> drops;
	for (const ft_drop &d : run.drops)
		drops[sources[d.source < std::size(sources) ? d.source : 0]] += d.count;
	Family("forktail_dropped_events", "counter", "", "Events that the recorder dropped.");
	for (const auto &[source, count] : drops)
		Value("forktail_dropped_events_total", {{"source", source}}, std::to_string(count));
	Family("forktail_build", "info", "", "Version of forktail that wrote this file.");
	Value("forktail_build_info", {{"version", FORKTAIL_VERSION}}, "1");
}

} // namespace

std::unique_ptr<Exporter> MakeOpenMetrics(const std::string &path, std::string *)
{
	return std::make_unique<OpenMetricsExporter>(path);
}

} // namespace forktail::analysis::exports
