// SPDX-License-Identifier: MIT
// Text formats. docs/reference/exports-and-sql.md has their contents. If an exporter cannot be made, the
// result is null and *error is one sentence.
#pragma once

#include <memory>
#include <string>

#include "analysis/exports/exporter.h"

namespace forktail::analysis::exports
{

// Server threads' time by stack, for flame graphs: one line each, or a profile per thread.
std::unique_ptr<Exporter> MakeFolded(const std::string &path, std::string *error);
std::unique_ptr<Exporter> MakeSpeedscope(const std::string &path, std::string *error);
// Latencies by second and operation, for HdrHistogram's tools.
std::unique_ptr<Exporter> MakeHdrLog(const std::string &path, std::string *error);
// Slow requests as OpenTelemetry traces.
std::unique_ptr<Exporter> MakeOtlp(const std::string &path, std::string *error);
// The totals of a run, as a scrape.
std::unique_ptr<Exporter> MakeOpenMetrics(const std::string &path, std::string *error);

} // namespace forktail::analysis::exports
