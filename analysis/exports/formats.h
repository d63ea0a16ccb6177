// SPDX-License-Identifier: MIT
// The formats that text_formats.cc and perfetto.cc write.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "analysis/exports.h"

namespace forktail::analysis::exports
{

// A run as a trace for Perfetto (ui.perfetto.dev). docs/reference/exports-and-sql.md describes its contents.

// Null: *error is one sentence.
std::unique_ptr<Exporter> MakePerfetto(const std::string &path, std::string *error);

// Text formats. docs/reference/exports-and-sql.md has their contents. If an exporter cannot be made, the
// result is null and *error is one sentence.

// Server threads' time by stack, for flame graphs: one line each, or a profile per thread.
std::unique_ptr<Exporter> MakeFolded(const std::string &path, std::string *error);
std::unique_ptr<Exporter> MakeSpeedscope(const std::string &path, std::string *error);
// Latencies by second and operation, for HdrHistogram's tools.
std::unique_ptr<Exporter> MakeHdrLog(const std::string &path, std::string *error);
// Slow requests as OpenTelemetry traces.
std::unique_ptr<Exporter> MakeOtlp(const std::string &path, std::string *error);
// The totals of a run, as a scrape.
std::unique_ptr<Exporter> MakeOpenMetrics(const std::string &path, std::string *error);
std::unique_ptr<Exporter> MakePrometheus(const std::string &path, std::string *error);

// A text file that is written piece by piece. The first error stays set.

class TextFile
{
public:
	explicit TextFile(std::string path) : path_(std::move(path)), file_(fopen(path_.c_str(), "we"))
	{
		if (!file_)
			error_ = errno;
	}
	~TextFile() { Close(); }
	TextFile(const TextFile &) = delete;
	TextFile &operator=(const TextFile &) = delete;
	bool Put(const std::string &text)
	{
		errno = 0;
		if (!error_ && fwrite(text.data(), 1, text.size(), file_) != text.size())
			error_ = errno ? errno : EIO;
		return error_ == 0;
	}
	bool Close()
	{
		if (file_ && fclose(file_) != 0 && !error_)
			error_ = errno;
		file_ = nullptr;
		return error_ == 0;
	}
	// After a call returned false: the reason, one sentence.
	std::string Why() const { return "cannot write " + path_ + ": " + strerror(error_); }

private:
	std::string path_;
	FILE *file_;
	int error_ = 0;
};

} // namespace forktail::analysis::exports
