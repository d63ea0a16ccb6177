// SPDX-License-Identifier: MIT
// Lines of both formats.
#include "writer.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace forktail::common
{

namespace
{

void AppendEscaped(std::string *to, std::string_view text)
{
	for (char c : text) {
		if (c == '\\' || c == '"')
			*to += '\\';
		if (c == '\n')
			*to += "\\n";
		else
			*to += c;
	}
}

constexpr uint64_t kSecondNs = 1'000'000'000;

// All digits, so a counter that runs for a year keeps nanoseconds.
void SecondsText(uint64_t ns, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu64 ".%09" PRIu64, ns / kSecondNs, ns % kSecondNs);
}

} // namespace

MetricsFormat FormatByAccept(const char *accept)
{
	const char *open = accept ? strcasestr(accept, "application/openmetrics-text") : nullptr;
	if (!open)
		return MetricsFormat::Text;
	// A quality of 0 excludes the format.
	std::string entry(open, strcspn(open, ","));
	size_t q = entry.find("q=");
	return q != std::string::npos && strtod(entry.c_str() + q + 2, nullptr) <= 0
		   ? MetricsFormat::Text
		   : MetricsFormat::OpenMetrics;
}

const char *ContentTypeOf(MetricsFormat format)
{
	return format == MetricsFormat::Text ? "text/plain; version=0.0.4; charset=utf-8"
					     : "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

void MetricsWriter::Begin(const char *name, const char *suffix, const char *type, const char *unit,
			  const char *help)
{
	name_ = name;
	suffix_ = suffix;
	bool open = format_ == MetricsFormat::OpenMetrics;
	std::string family = open ? name_ : name_ + suffix_;
	text_ += "# HELP " + family + " " + help + "\n";
	text_ += "# TYPE " + family + " " + type + "\n";
	if (open && *unit)
		text_ += "# UNIT " + family + " " + unit + "\n";
}

void MetricsWriter::Counter(const char *name, const char *unit, const char *help)
{
	Begin(name, "_total", "counter", unit, help);
}

void MetricsWriter::Gauge(const char *name, const char *unit, const char *help)
{
	Begin(name, "", "gauge", unit, help);
}

void MetricsWriter::Histogram(const char *name, const char *unit, const char *help)
{
	Begin(name, "", "histogram", unit, help);
}

void MetricsWriter::Info(const char *name, const char *help)
{
	Begin(name, "_info", format_ == MetricsFormat::OpenMetrics ? "info" : "gauge", "", help);
}

void MetricsWriter::Line(const char *suffix, Labels labels, const char *le, const char *value)
{
	text_ += name_;
	text_ += suffix_;
	text_ += suffix;
	char before = '{';
	for (const auto &[label, of] : labels) {
		text_ += before;
		text_ += label;
		text_ += "=\"";
		AppendEscaped(&text_, of);
		text_ += '"';
		before = ',';
	}
	if (*le) {
		text_ += before;
		text_ += "le=\"";
		text_ += le;
		text_ += '"';
		before = ',';
	}
	text_ += before == ',' ? "} " : " ";
	text_ += value;
	text_ += '\n';
}

void MetricsWriter::Sample(Labels labels, double value)
{
	char text[64];
	snprintf(text, sizeof text, "%.15g", value);
	Line("", labels, "", text);
}

void MetricsWriter::Count(Labels labels, uint64_t value)
{
	char text[32];
	snprintf(text, sizeof text, "%" PRIu64, value);
	Line("", labels, "", text);
}

void MetricsWriter::Seconds(Labels labels, uint64_t ns)
{
	char text[48];
	SecondsText(ns, text, sizeof text);
	Line("", labels, "", text);
}

void MetricsWriter::Bucket(Labels labels, uint64_t bound_ns, uint64_t count)
{
	char text[32], le[32] = "+Inf";
	snprintf(text, sizeof text, "%" PRIu64, count);
	if (bound_ns != UINT64_MAX)
		snprintf(le, sizeof le, "%.9g", static_cast<double>(bound_ns) / 1e9);
	Line("_bucket", labels, le, text);
}

void MetricsWriter::SumAndCount(Labels labels, uint64_t sum_ns, uint64_t count)
{
	char text[48];
	SecondsText(sum_ns, text, sizeof text);
	Line("_sum", labels, "", text);
	snprintf(text, sizeof text, "%" PRIu64, count);
	Line("_count", labels, "", text);
}

std::string MetricsWriter::Finish()
{
	if (format_ == MetricsFormat::OpenMetrics)
		text_ += "# EOF\n";
	return std::move(text_);
}

} // namespace forktail::common
