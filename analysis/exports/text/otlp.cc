// SPDX-License-Identifier: MIT
// Slow requests as OpenTelemetry traces, in the protocol's JSON form that the collector's file receiver
// reads: a message per line. A request is a root span, and its parts are the children.
#include <nlohmann/json.hpp>

#include "analysis/run/same_clock.h"
#include "text.h"
#include "text_file.h"

namespace forktail::analysis::exports
{

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

} // namespace forktail::analysis::exports
