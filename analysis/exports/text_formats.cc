// SPDX-License-Identifier: MIT
// Exports as text that other tools read: HDR histogram log, OpenMetrics, OTLP, folded stacks, flame graph.
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "analysis/explain.h"
#include "analysis/exports.h"
#include "analysis/run.h"
#include "analysis/text.h"
#include "analysis/timeline.h"
#include "common/format.h"
#include "formats.h"
#include "recording/hdr_log.h"

namespace forktail::analysis::exports
{

// The time of each thread by cause and stack. Without idle time it equals the threads' accounts by cause.

class Stacks
{
public:
	// Adds what began in a stretch.
	void Add(const Run &run, uint64_t from_ns, uint64_t to_ns);
	// Nanoseconds by thread (index into Run::threads) and "cause;outermost;...;innermost". A thread's own
	// code is divided among its samples.
	std::map<std::pair<uint32_t, std::string>, uint64_t> Result(const Explanation &e) const;

private:
	void AddThread(const Run &run, const Waits &waits, uint32_t thread, uint64_t from_ns, uint64_t to_ns);
	void AddSample(const Run &run, uint32_t thread, const ft_cpu_sample &sample);

	std::map<std::pair<uint32_t, std::string>, uint64_t> times_;
	// For own code: the time of samples, by stack.
	std::map<uint32_t, std::map<std::string, uint64_t>> samples_;
};

// A thread's name: "redis-server 4321", "redis-server/bio_aof_fsync 4324".
std::string ThreadName(const Run &run, const Thread &thread);

// Latencies as HdrHistogram's interval log: one histogram per operation for each second with answers.

namespace
{

// A tag from an operation's name. Characters that separate fields are replaced.
std::string Tag(std::string name)
{
	for (char &c : name)
		if (c == ',' || static_cast<unsigned char>(c) <= ' ' || c == 0x7f)
			c = '_';
	return name;
}

class HdrExporter : public Exporter
{
public:
	explicit HdrExporter(std::string path) : path_(std::move(path)) {}
	Wants wants() const override { return {.blamed = false, .stretches = false, .windows = true}; }
	bool Window(const Explanation &, const Run &run) override
	{
		seconds_.Add(run);
		return true;
	}
	bool End(const Explanation &e) override
	{
		const auto &all = seconds_.all();
		const uint64_t start_ns =
		    (all.empty() ? e.zero_ns / Seconds::kNs : all.begin()->first.first) * Seconds::kNs;
		hdr_log *log = nullptr;
		int rc = hdr_log_open(&log, path_.c_str(), RealtimeNs(e.run, start_ns), start_ns);
		for (auto at = all.begin(); rc == 0 && at != all.end(); ++at) {
			const auto &[second, op] = at->first;
			Fill(at->second);
			rc = hdr_log_write(log, op < e.run.ops.size() ? Tag(e.run.ops[op]).c_str() : "",
					   second * Seconds::kNs, Seconds::kNs, histogram_.get());
		}
		const int closed = hdr_log_close(log);
		rc = rc ? rc : closed;
		return rc == 0 || Fail("cannot write " + path_ + ": " + strerror(-rc));
	}

private:
	void Fill(const SecondOf &of)
	{
		ft_histogram_reset(histogram_.get());
		histogram_->count = of.count;
		histogram_->max_ns = of.max_ns;
		for (const auto &[slot, n] : of.slots)
			histogram_->slots[slot] = n;
	}

	std::string path_;
	Seconds seconds_;
	std::unique_ptr<ft_histogram> histogram_ = std::make_unique<ft_histogram>();
};

} // namespace

std::unique_ptr<Exporter> MakeHdrLog(const std::string &path, std::string *)
{
	return std::make_unique<HdrExporter>(path);
}

// The totals of a run as OpenMetrics 1.0 text, or as Prometheus' text format 0.0.4, which promtool,
// Pushgateway and node_exporter read: as a scrape at its end would return them.

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
	OpenMetricsExporter(const std::string &path, bool prometheus) : file_(path), prometheus_(prometheus)
	{
	}
	Wants wants() const override { return {.blamed = false, .stretches = false, .windows = false}; }
	bool End(const Explanation &e) override
	{
		AddThreads(e);
		AddCauses(e.blame);
		AddRequests(e);
		AddDrops(e.run);
		if (!prometheus_)
			file_.Put("# EOF\n");
		return file_.Close() || Fail(file_.Why());
	}

private:
	void Family(const std::string &name, const char *type, const char *unit, const char *help)
	{
		// Prometheus names a family as its samples, and has no information.
		const bool counts = strcmp(type, "counter") == 0, informs = strcmp(type, "info") == 0;
		const std::string family = prometheus_ ? name + (counts	   ? "_total"
								 : informs ? "_info"
									   : "")
						       : name;
		file_.Put("# TYPE " + family + " " + (prometheus_ && informs ? "gauge" : type) + "\n");
		if (*unit && !prometheus_)
			file_.Put("# UNIT " + name + " " + unit + "\n");
		file_.Put("# HELP " + family + " " + help + "\n");
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
	bool prometheus_;
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
	Family("forktail_helper_deaths", "counter", "",
	       "Helper processes of the recorder that ended or hung, and were started again.");
	for (const auto &[helper, count] : run.cost.helper_deaths)
		Value("forktail_helper_deaths_total", {{"helper", helper}}, std::to_string(count));
	Family("forktail_main_loop_stalls", "counter", "",
	       "Rounds of the recorder's main loop that took over a second.");
	Value("forktail_main_loop_stalls_total", {}, std::to_string(run.cost.main_loop_stalls));
	Family("forktail_build", "info", "", "Version of forktail that wrote this file.");
	Value("forktail_build_info", {{"version", FORKTAIL_VERSION}}, "1");
}

} // namespace

std::unique_ptr<Exporter> MakeOpenMetrics(const std::string &path, std::string *)
{
	return std::make_unique<OpenMetricsExporter>(path, false);
}

std::unique_ptr<Exporter> MakePrometheus(const std::string &path, std::string *)
{
	return std::make_unique<OpenMetricsExporter>(path, true);
}

// Slow requests as OpenTelemetry traces, in the protocol's JSON form that the collector's file receiver
// reads: a message per line. A request is a root span, and its parts are the children.

namespace
{

using Out = nlohmann::ordered_json;

constexpr size_t kPerLine = 500; // requests
enum { kSpanServer = 2, kSpanInternal = 1, kStatusError = 2 };

std::string Hex(uint64_t value)
{
	char text[17];
	snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
	return text;
}

Out TextAttribute(const char *key, const std::string &value)
{
	return {{"key", key}, {"value", {{"stringValue", value}}}};
}

// 64-bit numbers are strings in the JSON form of protobuf.
Out NumberAttribute(const char *key, uint64_t value)
{
	return {{"key", key}, {"value", {{"intValue", std::to_string(value)}}}};
}

class OtlpExporter : public Exporter
{
public:
	explicit OtlpExporter(const std::string &path) : file_(path) {}
	Wants wants() const override { return {.blamed = true, .stretches = false, .windows = false}; }
	bool Blamed(const Run &run, const SlowRequest &r, const Part *parts) override
	{
		if (traces_ == 0)
			run_id_ = RealtimeNs(run, run.start_ns) ^ run.start_ns;
		AddRequest(run, r, parts);
		return ++traces_ % kPerLine ? true : WriteLine(run);
	}
	bool End(const Explanation &e) override
	{
		return (spans_.empty() || WriteLine(e.run)) && (file_.Close() || Fail(file_.Why()));
	}

private:
	Out Span(const Run &run, uint64_t id, const std::string &name, uint64_t from_ns, uint64_t ns) const
	{
		const uint64_t start_ns = RealtimeNs(run, from_ns);
		return {{"traceId", Hex(run_id_) + Hex(traces_ + 1)},
			{"spanId", Hex(id)},
			{"name", name},
			{"kind", static_cast<int>(kSpanInternal)},
			{"startTimeUnixNano", std::to_string(start_ns)},
			{"endTimeUnixNano", std::to_string(start_ns + ns)}};
	}
	// Only the lengths of parts are known, so they are placed end to end, largest first.
	void AddRequest(const Run &run, const SlowRequest &r, const Part *parts)
	{
		const uint64_t root = (traces_ + 1) << 8;
		Out span =
		    Span(run, root, r.op < run.ops.size() ? run.ops[r.op] : "turn", r.due_ns, r.latency_ns);
		span["kind"] = static_cast<int>(kSpanServer);
		span["attributes"] = {NumberAttribute("forktail.request", r.index),
				      NumberAttribute("forktail.connection", r.connection)};
		if (IsError(r.status))
			span["status"] = {{"code", static_cast<int>(kStatusError)}};
		spans_.push_back(std::move(span));
		uint64_t at_ns = r.due_ns;
		for (size_t i = 0; i < r.part_count; i++) {
			Out child =
			    Span(run, root + i + 1, CauseName(parts[i].cause), at_ns, parts[i].total_ns());
			child["parentSpanId"] = Hex(root);
			child["attributes"] = {NumberAttribute("forktail.direct_ns", parts[i].direct_ns),
					       NumberAttribute("forktail.queued_ns", parts[i].queued_ns)};
			spans_.push_back(std::move(child));
			at_ns += parts[i].total_ns();
		}
	}
	bool WriteLine(const Run &run)
	{
		std::string host = run.info.host;
		for (const RecordingFile *f : OverlaidFiles(run))
			host = host.empty() ? f->host : host;
		Out resource = {
		    TextAttribute("service.name", run.targets.empty() ? "server" : run.targets[0].comm),
		    TextAttribute("host.name", host), TextAttribute("forktail.run", run.path)};
		const Out line = {{"resourceSpans",
				   {{{"resource", {{"attributes", std::move(resource)}}},
				     {"scopeSpans",
				      {{{"scope", {{"name", "forktail"}, {"version", FORKTAIL_VERSION}}},
					{"spans", std::move(spans_)}}}}}}}};
		spans_ = Out::array();
		return file_.Put(line.dump(-1, ' ', false, Out::error_handler_t::replace) + "\n") ||
		       Fail(file_.Why());
	}

	TextFile file_;
	uint64_t run_id_ = 0, traces_ = 0;
	Out spans_ = Out::array();
};

} // namespace

std::unique_ptr<Exporter> MakeOtlp(const std::string &path, std::string *)
{
	return std::make_unique<OtlpExporter>(path);
}

namespace
{

constexpr uint64_t kOldPeriod = 16; // of samples without a period, in sixteenths of a millisecond

// One frame, without the characters that separate frames.
std::string Frame(std::string name)
{
	for (char &c : name)
		if (c == ';' || c == '\n')
			c = ':';
	return ";" + name;
}

// Kernel stacks without offsets, which would split one caller into several.
std::string KernelFrames(const std::vector<std::string> &innermost_first)
{
	std::string text;
	for (auto f = innermost_first.rbegin(); f != innermost_first.rend(); ++f)
		text += Frame(f->substr(0, f->find('+')) + "_[k]");
	return text;
}

std::string SpanFrames(const Run &run, const ft_span &s)
{
	const std::string call = s.syscall < 0 ? "" : SyscallName(run, s.syscall);
	std::string frames = call.empty() ? "" : Frame(call);
	return frames + KernelFrames(DetailOf(run, s).stack);
}

bool IsServers(const Thread &thread)
{
	return !(thread.flags & FT_THREAD_CLIENT);
}

} // namespace

std::string ThreadName(const Run &run, const Thread &t)
{
	return t.comm + (t.role.empty() || t.role == t.comm ? "" : "/" + t.role) + " " + ShownTid(run, t);
}

void Stacks::AddSample(const Run &run, uint32_t thread, const ft_cpu_sample &s)
{
	std::string frames;
	if (s.stack < run.stacks.size()) {
		const Stack &stack = run.stacks[s.stack];
		for (auto f = stack.frames.rbegin(); f != stack.frames.rend(); ++f)
			frames += Frame(f->function.empty() ? "[" + f->module + "]" : f->function);
		frames += KernelFrames(stack.kernel);
	}
	samples_[thread][frames] += s.period ? s.period : kOldPeriod;
}

void Stacks::AddThread(const Run &run, const Waits &waits, uint32_t thread, uint64_t from_ns, uint64_t to_ns)
{
	const Thread &t = run.threads[thread];
	auto began = [&](uint64_t t_ns) { return t_ns >= from_ns && t_ns < to_ns; };
	auto add = [&](Cause cause, const std::string &frames, uint64_t ns) {
		if (ns && cause != Cause::Idle && cause != Cause::ServerBusy)
			times_[{thread, AccountName(cause) + frames}] += ns;
	};
	for (size_t i = t.first_span; i < t.first_span + t.span_count; i++) {
		const ft_span &s = run.spans[i];
		if (!began(s.start_ns))
			continue;
		const std::string frames = SpanFrames(run, s);
		if (s.off_cpu) {
			add(waits.CauseOf(s, t), frames, s.blocked_ns);
			add(WaitCauseOf(run, s), frames, s.runnable_ns);
		} else {
			add(CauseOfOwner(s.owner), frames, s.on_cpu_ns + s.runnable_ns + s.blocked_ns);
		}
	}
	for (size_t i = t.first_tally; i < t.first_tally + t.tally_count; i++)
		if (const ft_tally &tally = run.tallies[i]; began(tally.start_ns))
			add(CauseOfOwner(tally.owner), ";[short]", tally.total_ns);
	for (size_t i = t.first_cpu_sample; i < t.first_cpu_sample + t.cpu_sample_count; i++)
		if (const ft_cpu_sample &s = run.cpu_samples[i]; began(s.t_ns) && s.owner == FT_OWN_CODE)
			AddSample(run, thread, s);
}

void Stacks::Add(const Run &run, uint64_t from_ns, uint64_t to_ns)
{
	const Waits waits(run);
	for (uint32_t i = 0; i < run.threads.size(); i++)
		if (IsServers(run.threads[i]))
			AddThread(run, waits, i, from_ns, to_ns);
}

std::map<std::pair<uint32_t, std::string>, uint64_t> Stacks::Result(const Explanation &e) const
{
	auto all = times_;
	const std::string own = AccountName(Cause::ServerBusy);
	for (const Account &a : e.accounts) {
		if (!IsServers(e.run.threads[a.thread]))
			continue;
		uint64_t left = a.by_cause[Index(Cause::ServerBusy)], weight = 0;
		const auto samples = samples_.find(a.thread);
		if (samples != samples_.end()) {
			for (const auto &[frames, w] : samples->second)
				weight += w;
			for (const auto &[frames, w] : samples->second) {
				const auto ns =
				    static_cast<uint64_t>(static_cast<unsigned __int128>(left) * w / weight);
				all[{a.thread, own + frames}] += ns;
				left -= ns;
				weight -= w;
			}
		} else if (left) {
			all[{a.thread, own}] += left;
		}
	}
	return all;
}

// Stacks for flame graphs: Brendan Gregg's folded lines, and speedscope's file format
// (https://www.speedscope.app/file-format-schema.json).

namespace
{

class FlameExporter : public Exporter
{
public:
	explicit FlameExporter(const std::string &path) : file_(path) {}
	Wants wants() const override { return {.blamed = false, .stretches = true, .windows = false}; }
	bool Stretch(const Explanation &, const Run &run, uint64_t from_ns, uint64_t to_ns) override
	{
		stacks_.Add(run, from_ns, to_ns);
		return true;
	}

protected:
	bool Done() { return file_.Close() || Fail(file_.Why()); }
	TextFile file_;
	Stacks stacks_;
};

class FoldedExporter : public FlameExporter
{
public:
	using FlameExporter::FlameExporter;
	// In microseconds, of all threads together.
	bool End(const Explanation &e) override
	{
		std::map<std::string, uint64_t> lines;
		for (const auto &[where, ns] : stacks_.Result(e))
			lines[where.second] += ns;
		for (const auto &[stack, ns] : lines)
			if (const uint64_t us = (ns + 500) / 1000)
				file_.Put(stack + " " + std::to_string(us) + "\n");
		return Done();
	}
};

class SpeedscopeExporter : public FlameExporter
{
public:
	using FlameExporter::FlameExporter;
	bool End(const Explanation &e) override
	{
		std::map<std::string, size_t> ids;
		Out frames = Out::array(), profiles = Out::array();
		uint32_t thread = UINT32_MAX;
		for (const auto &[where, ns] : stacks_.Result(e)) {
			if (where.first != thread) {
				thread = where.first;
				profiles.push_back({{"type", "sampled"},
						    {"name", ThreadName(e.run, e.run.threads[thread])},
						    {"unit", "nanoseconds"},
						    {"startValue", 0},
						    {"endValue", 0},
						    {"samples", Out::array()},
						    {"weights", Out::array()}});
			}
			Out stack = Out::array();
			for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
				end = where.second.find(';', at);
				const std::string name = where.second.substr(at, end - at);
				const auto [id, added] = ids.try_emplace(name, ids.size());
				if (added)
					frames.push_back({{"name", name}});
				stack.push_back(id->second);
			}
			Out &profile = profiles.back();
			profile["samples"].push_back(std::move(stack));
			profile["weights"].push_back(ns);
			profile["endValue"] = profile["endValue"].get<uint64_t>() + ns;
		}
		const Out all = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
				 {"exporter", "forktail " FORKTAIL_VERSION},
				 {"name", e.run.path},
				 {"shared", {{"frames", std::move(frames)}}},
				 {"profiles", std::move(profiles)}};
		file_.Put(all.dump(-1, ' ', false, Out::error_handler_t::replace) + "\n");
		return Done();
	}
};

} // namespace

std::unique_ptr<Exporter> MakeFolded(const std::string &path, std::string *)
{
	return std::make_unique<FoldedExporter>(path);
}

std::unique_ptr<Exporter> MakeSpeedscope(const std::string &path, std::string *)
{
	return std::make_unique<SpeedscopeExporter>(path);
}

} // namespace forktail::analysis::exports
