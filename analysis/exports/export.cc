// SPDX-License-Identifier: MIT
// Drives an exporter over a run.
#include <algorithm>

#include "analysis/exports.h"
#include "analysis/passes.h"
#include "formats.h"

namespace forktail::analysis::exports
{

const ExportFormat *FindExportFormat(const std::vector<ExportFormat> &formats, const std::string &name,
				     const std::string &asked, std::string *error)
{
	const std::string out = asked.substr(0, asked.find_last_not_of('/') + 1);
	std::string names;
	for (const ExportFormat &f : formats) {
		if (name == f.name)
			return &f;
		if (name.empty())
			for (const std::string &end : f.extensions)
				if (out.ends_with(end))
					return &f;
		names += (names.empty() ? "" : ", ") + std::string(f.name);
	}
	*error = name.empty() ? "the name " + out + " does not show the format. Give --to FORMAT: " + names
			      : "unknown format '" + name + "'. Formats: " + names;
	return nullptr;
}

namespace
{

bool Drive(Exporter *exporter, const Explanation &e, Reading *reading)
{
	const Exporter::Wants wants = exporter->wants();
	if (!exporter->Begin(e))
		return false;
	bool ok = true;
	if (wants.stretches)
		reading->stretches.each([&](uint64_t from_ns, uint64_t to_ns) {
			ok = ok && exporter->Stretch(e, reading->run, from_ns, to_ns);
		});
	if (wants.windows && ok && reading->log)
		for (reading->log->Rewind(); ok && reading->log->Next();)
			ok = exporter->Window(e, reading->run);
	return ok && exporter->End(e);
}

} // namespace

bool ExportRun(const std::string &run, const ExplainOptions &asked, const ExportFormat &format,
	       const std::string &out, std::string *error, int *status, std::vector<std::string> *warnings)
{
	*status = 3;
	common::Pending pending;
	if (!pending.Begin(out, format.kind, error))
		return false;
	std::unique_ptr<Exporter> exporter = format.make(pending.at(), error);
	if (!exporter)
		return false;
	ExplainOptions options = asked;
	bool ok = true;
	if (exporter->wants().blamed)
		options.tell = [&](const Run &r, const SlowRequest &request, const Part *parts) {
			ok = ok && exporter->Blamed(r, request, parts);
		};
	Reading reading;
	Explanation e(reading.run);
	if (!ExplainRun(run, options, &reading, &e, error, status))
		return false;
	*status = 3;
	if (!ok || !Drive(exporter.get(), e, &reading)) {
		*error = exporter->error();
		return false;
	}
	exporter.reset();
	if (!pending.Commit(error, e.run.shared_mode))
		return false;
	if (warnings)
		*warnings = e.run.warnings;
	*status = 0;
	return true;
}

namespace
{

std::unique_ptr<Exporter> Csv(const std::string &path, std::string *)
{
	return MakeTables(MakeCsv(path));
}

std::unique_ptr<Exporter> RawCsv(const std::string &path, std::string *)
{
	return MakeTables(MakeCsv(path, true));
}

} // namespace

const std::vector<ExportFormat> &ExportFormats()
{
	static const std::vector<ExportFormat> formats = {
	    {"parquet", {".parquet"}, common::Pending::kDirectory, nullptr},
	    {"csv", {".csv"}, common::Pending::kDirectory, Csv, nullptr, RawCsv},
	    {"perfetto", {".perfetto-trace", ".pftrace"}, common::Pending::kFile, MakePerfetto},
	    {"hlog", {".hlog", ".hdr"}, common::Pending::kFile, MakeHdrLog},
	    {"folded", {".folded"}, common::Pending::kFile, MakeFolded},
	    {"speedscope", {".speedscope.json", ".speedscope"}, common::Pending::kFile, MakeSpeedscope},
	    {"otlp", {".otlp.jsonl", ".otlp"}, common::Pending::kFile, MakeOtlp},
	    {"prometheus", {".prom"}, common::Pending::kFile, MakePrometheus},
	    {"openmetrics", {".openmetrics", ".om"}, common::Pending::kFile, MakeOpenMetrics},
	};
	return formats;
}

namespace
{

// The bucket of HdrHistogram. It is LogHistogram's without gaps, because each bucket but the first has only
// an upper half.
uint32_t SlotOf(uint64_t value)
{
	constexpr uint64_t highest = (1ull << (FT_HIST_SUB_BITS + FT_HIST_BUCKETS - 1)) - 1;
	const size_t slot = LogHistogram::Slot(std::min(value, highest));
	const size_t bucket = slot >> FT_HIST_SUB_BITS, sub = slot & ((1u << FT_HIST_SUB_BITS) - 1);
	return static_cast<uint32_t>((bucket << (FT_HIST_SUB_BITS - 1)) + sub);
}

static_assert(LogHistogram::kBits == FT_HIST_SUB_BITS);

} // namespace

void SecondOf::Add(uint64_t latency_ns)
{
	count++;
	max_ns = std::max(max_ns, latency_ns);
	slots[SlotOf(latency_ns)]++;
}

void SecondOf::Merge(const SecondOf &other)
{
	count += other.count;
	max_ns = std::max(max_ns, other.max_ns);
	for (const auto &[slot, n] : other.slots)
		slots[slot] += n;
}

std::vector<uint64_t> SecondOf::Percentiles(const std::vector<double> &which) const
{
	std::vector<std::pair<uint32_t, uint32_t>> sorted(slots.begin(), slots.end());
	std::sort(sorted.begin(), sorted.end());
	std::vector<uint64_t> values;
	uint64_t before = 0;
	size_t at = 0;
	for (double p : which) {
		const uint64_t rank = Rank(count, p);
		while (at < sorted.size() && before + sorted[at].second < rank)
			before += sorted[at++].second;
		values.push_back(at < sorted.size()
				     ? std::min(max_ns, ft_histogram_slot_value(sorted[at].first))
				     : max_ns);
	}
	return values;
}

void Seconds::Add(const Run &run)
{
	const Requests &r = run.requests;
	std::pair<uint64_t, uint32_t> last = {UINT64_MAX, 0};
	SecondOf *second = nullptr;
	for (size_t i = r.lead; i < r.size(); i++) {
		const std::pair<uint64_t, uint32_t> key = {r.end_ns[i] / kNs, r.op[i]};
		if (IsError(r.status[i])) {
			errors_[key.first]++;
			continue;
		}
		if (key != last)
			second = &all_[last = key];
		second->Add(r.Latency(i));
	}
}

std::map<uint64_t, SecondOf> Seconds::Together() const
{
	std::map<uint64_t, SecondOf> together;
	for (const auto &[key, second] : all_)
		together[key.first].Merge(second);
	return together;
}

} // namespace forktail::analysis::exports
