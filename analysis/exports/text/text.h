// SPDX-License-Identifier: MIT
// Formats that are text: docs/reference/exports-and-sql.md says what is in each. Where one can't be made: null, and *error is
// one sentence.
#pragma once

#include <memory>
#include <string>

#include "analysis/exports/exporter.h"

namespace forktail::analysis::exports
{

// Stacks with how long servers' threads were in each, for flame graphs: one line each, or a profile per
// thread.
std::unique_ptr<Exporter> MakeFolded(const std::string &path, std::string *error);
std::unique_ptr<Exporter> MakeSpeedscope(const std::string &path, std::string *error);
// Latencies of each second and operation, for HdrHistogram's tools.
std::unique_ptr<Exporter> MakeHdrLog(const std::string &path, std::string *error);
// Slow requests as traces of OpenTelemetry.
std::unique_ptr<Exporter> MakeOtlp(const std::string &path, std::string *error);
// What a run comes to, as a scrape.
std::unique_ptr<Exporter> MakeOpenMetrics(const std::string &path, std::string *error);

} // namespace forktail::analysis::exports
