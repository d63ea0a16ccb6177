// SPDX-License-Identifier: MIT
// See formats.h.
#include "formats.h"

#include "analysis/exports/perfetto/perfetto.h"
#include "analysis/exports/tables/csv.h"
#include "analysis/exports/tables/tables.h"
#include "analysis/exports/text/text.h"

namespace forktail::analysis::exports
{

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
	    {"openmetrics", {".prom", ".openmetrics"}, common::Pending::kFile, MakeOpenMetrics},
	};
	return formats;
}

} // namespace forktail::analysis::exports
