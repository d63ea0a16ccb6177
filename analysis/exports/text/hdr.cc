// SPDX-License-Identifier: MIT
// Latencies as HdrHistogram's interval log: one histogram per operation for each second with answers.
#include <cstring>
#include <memory>

#include "analysis/exports/seconds/seconds.h"
#include "loadgen/hdr_log/hdr_log.h"
#include "text.h"

namespace forktail::analysis::exports
{

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
	bool Window(const Explanation &e) override
	{
		seconds_.Add(e.run);
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

} // namespace forktail::analysis::exports
