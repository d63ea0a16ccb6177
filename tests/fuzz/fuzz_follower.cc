// SPDX-License-Identifier: MIT
// What the guard reads, under libFuzzer: a recording that grows, its triggers and metrics, and a directory of
// snapshots whose marker is the input's run.json. Nothing may crash, metrics may have no character that
// steers terminals, and nothing but a snapshot with its own marker may be removed. run_input.h says what an
// input is.
#include <cstdint>
#include <filesystem>
#include <string>

#include "common/json.h"
#include "live/follow.h"
#include "live/guard/jobs.h"
#include "live/guard/metrics.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/run_input.h"
#include "tests/fuzz/scratch.h"

namespace
{

using namespace forktail;
namespace fs = std::filesystem;

constexpr int kPolls = 64; // each reads 8 MB

void Follow(const std::string &recording)
{
	constexpr char kFile[] = "live/recording.forktail";
	char path[SCRATCH_PATH];
	std::vector<live::guard::Trigger> triggers;
	std::string error;
	for (const char *text :
	     {"iteration > 50ms", "stall(fork) > 20ms", "rate(page-in) > 100/s", "drops > 0"}) {
		live::guard::Rule rule;
		if (!live::guard::ParseRule(text, &rule, &error))
			fuzz::Fail("a rule is refused", error);
		triggers.push_back(live::guard::PlainTrigger(rule));
	}
	scratch_write(kFile, recording.data(), recording.size() / 2);
	scratch_path(path, kFile);
	live::Follower follower(path, {});
	live::guard::TriggerMatcher matcher;
	live::metrics::Metrics metrics;
	live::Batch batch;
	std::vector<live::guard::Firing> fired;
	matcher.Use(triggers);
	for (const size_t bytes : {recording.size() / 2, recording.size()}) {
		scratch_write(kFile, recording.data(), bytes);
		for (int i = 0; i < kPolls; i++) {
			if (!follower.Poll(&batch, &error)) {
				fuzz::CheckVisible(error, "the error steers terminals");
				return;
			}
			metrics.Take(follower, batch);
			matcher.See(batch, follower.servers(), follower.threads(), &fired);
			if (!batch.more)
				break;
		}
	}
	fuzz::CheckVisible(metrics.Text(follower, common::MetricsFormat::Text), "metrics steer terminals");
}

// Two directories with this marker; at most one of them is what its name says.
void Retain(const std::string &marker)
{
	char path[SCRATCH_PATH];
	const auto ours = [&](const std::string &name) {
		const common::Json json = common::ParseObject(marker);
		return common::Text(json, "name") == name && common::Whole(json, "number") > 0;
	};
	for (const std::string name : {"20261123T081503Z-fork", "kept-by-hand"})
		scratch_write(("snapshots/" + name + "/trigger.json").c_str(), marker.data(), marker.size());
	scratch_path(path, "snapshots");
	live::guard::NextNumber(path);
	live::guard::MakeRoom(path, 0, 0, "");
	for (const std::string name : {"20261123T081503Z-fork", "kept-by-hand"})
		if (fs::exists(std::string(path) + "/" + name) == ours(name))
			fuzz::Fail(ours(name) ? "a snapshot was left" : "something else was removed", name);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const std::vector<std::string> files = fuzz::RunFiles(data, size);
	Retain(files[0]);
	for (size_t i = 1; i < files.size(); i++)
		Follow(files[i]);
	return 0;
}
