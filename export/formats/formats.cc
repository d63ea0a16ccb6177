// SPDX-License-Identifier: MIT
// See formats.h.
#include "formats.h"

#include "export/perfetto/perfetto.h"
#include "export/text/text.h"

namespace forktail
{

const std::vector<ExportFormat> &ExportFormats()
{
	static const std::vector<ExportFormat> formats = {
	    {"perfetto", {".perfetto-trace", ".pftrace"}, Pending::kFile, MakePerfetto},
	    {"hlog", {".hlog", ".hdr"}, Pending::kFile, MakeHdrLog},
	    {"folded", {".folded"}, Pending::kFile, MakeFolded},
	    {"speedscope", {".speedscope.json", ".speedscope"}, Pending::kFile, MakeSpeedscope},
	    {"otlp", {".otlp.jsonl", ".otlp"}, Pending::kFile, MakeOtlp},
	    {"openmetrics", {".prom", ".openmetrics"}, Pending::kFile, MakeOpenMetrics},
	};
	return formats;
}

} // namespace forktail
