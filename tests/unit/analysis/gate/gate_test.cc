// SPDX-License-Identifier: MIT
// Limits on a run built by hand: figures compared with ones computed here, unknown figures, reasons, and
// files.
#include <algorithm>
#include <cmath>

#include "analysis/gate.h"
#include "analysis/text.h"
#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/sample_explanation.h"
#include "tests/support/tempdir.h"

using namespace forktail::analysis;
using namespace forktail::analysis::gate;
using forktail::test::parse_json;
using forktail::test::TempDir;
using forktail::test::write_file;

namespace
{

// A run and the result of limits on it.
struct JudgedRun {
	Explained e;
	AskedLimits limits;
	std::vector<Verdict> verdicts;
	Gated gated;

	explicit JudgedRun(const std::vector<std::string> &texts, const SampleSize &size = {5, 2000, 500})
	    : e(SampleExplanation(size))
	{
		e.measured_ns = static_cast<uint64_t>(size.seconds * 1e9);
		for (const std::string &text : texts) {
			std::string error;
			INFO(text);
			const bool added = AddLimit({text, ""}, LIMIT_HAS_TO_HOLD, &limits, &error);
			INFO(error);
			REQUIRE(added);
		}
		Judge(LIMIT_HAS_TO_HOLD);
	}
	void Judge(limit_reading reading)
	{
		RunFigures figures(&limits.limits);
		ExplainOptions options;
		figures.Watch(&options);
		for (const SlowRequest &r : e.blame.slow)
			options.tell(e.run, r, &e.blame.parts[r.first_part]);
		e.reading->log = std::make_unique<WholeLog>(e.run);
		figures.Finish(e, e.reading.get());
		verdicts = forktail::analysis::gate::Judge(limits, reading, figures, nullptr);
		gated = GatedOf(e, nullptr);
	}
};

std::vector<uint64_t> LatenciesOf(const Explanation &e, const std::string &op)
{
	std::vector<uint64_t> all;
	for (size_t i = 0; i < e.run.requests.size(); i++)
		if (!IsError(e.run.requests.status[i]) &&
		    (op.empty() || e.run.ops[e.run.requests.op[i]] == op))
			all.push_back(e.run.requests.Latency(i));
	std::sort(all.begin(), all.end());
	return all;
}

double At(const std::vector<uint64_t> &sorted, double percentile)
{
	return static_cast<double>(sorted[Rank(sorted.size(), percentile) - 1]);
}

std::string Refused(const std::string &text)
{
	AskedLimits limits;
	std::string error;
	CHECK_FALSE(AddLimit({text, ""}, LIMIT_HAS_TO_HOLD, &limits, &error));
	return error;
}

std::string FileError(const std::string &toml)
{
	TempDir dir;
	AskedLimits limits;
	std::string error;
	write_file(dir.file("l.toml"), toml);
	INFO(toml);
	CHECK_FALSE(ReadLimitsFile(dir.file("l.toml"), &limits, &error));
	CHECK(error.find(dir.path()) == 0);
	return error.substr(dir.path().size() + 1);
}

} // namespace

TEST_CASE("gate: figures of one operation and of all operations are exact")
{
	JudgedRun h({"GET.p99.9 < 1s", "get.p12.5 < 1s", "p99.5 < 1s", "min < 1s", "GET.avg < 1s",
		     "stddev < 1s", "GET.requests > 0", "GET.max < 10s", "rps > 1", "GET.rps > 1",
		     "GET.errors < 100%"});
	const std::vector<uint64_t> get = LatenciesOf(h.e, "GET"), all = LatenciesOf(h.e, "");
	REQUIRE(get.size() > 100);
	double sum = 0, all_sum = 0, squares = 0;
	for (uint64_t ns : get)
		sum += static_cast<double>(ns);
	for (uint64_t ns : all)
		all_sum += static_cast<double>(ns);
	const double mean = all_sum / static_cast<double>(all.size());
	for (uint64_t ns : all)
		squares += (static_cast<double>(ns) - mean) * (static_cast<double>(ns) - mean);
	CHECK(h.verdicts[0].value == At(get, 99.9));
	CHECK(h.verdicts[1].value == At(get, 12.5));
	CHECK(h.verdicts[2].value == At(all, 99.5));
	CHECK(h.verdicts[3].value == static_cast<double>(all.front()));
	CHECK(h.verdicts[4].value == Approx(sum / static_cast<double>(get.size())));
	CHECK(h.verdicts[5].value == Approx(std::sqrt(squares / static_cast<double>(all.size()))));
	const double seconds = static_cast<double>(h.e.measured_ns) * 1e-9;
	CHECK(h.verdicts[6].value >= static_cast<double>(get.size()));
	CHECK(h.verdicts[7].value == static_cast<double>(get.back()));
	CHECK(h.verdicts[9].value == Approx(static_cast<double>(get.size()) / seconds));
	CHECK(h.verdicts[10].value ==
	      Approx(100 * (h.verdicts[6].value - static_cast<double>(get.size())) / h.verdicts[6].value));
}

TEST_CASE("gate: figures of causes are explain's")
{
	JudgedRun h({"fork.max < 1s", "fork.total < 100s", "fork.share < 100%", "cause share of fork < 100%",
		     "fork.requests > 0", "fork.episodes > 0", "unknown <= 100%", "episodes > 0",
		     "reclaim.max <= 0"});
	uint64_t longest_ns = 0;
	for (const SlowRequest &r : h.e.blame.slow)
		for (size_t i = 0; i < r.part_count; i++)
			if (const Part &p = h.e.blame.parts[r.first_part + i]; p.cause == Cause::Fork)
				longest_ns = std::max(longest_ns, p.total_ns());
	const auto row = std::find_if(h.e.blame.causes.begin(), h.e.blame.causes.end(),
				      [](const CauseRow &r) { return r.cause == Cause::Fork; });
	REQUIRE(row != h.e.blame.causes.end());
	REQUIRE(longest_ns > 0);
	CHECK(h.verdicts[0].value == static_cast<double>(longest_ns));
	CHECK(h.verdicts[1].value == static_cast<double>(row->total_ns()));
	CHECK(h.verdicts[2].value == Approx(100 * row->share));
	CHECK(h.verdicts[3].value == h.verdicts[2].value);
	CHECK(h.verdicts[4].value == static_cast<double>(row->requests));
	CHECK(h.verdicts[5].value > 0);
	CHECK(h.verdicts[7].value == static_cast<double>(h.e.episodes.size()));
	CHECK(h.verdicts[8].value == 0);
	CHECK(StatusOf(h.verdicts) == 0);
}

TEST_CASE("gate: a broken limit has its reason and its cause")
{
	JudgedRun h({"p99.9 < 1ms", "fork.max < 1ms", "GET.p99.9 < 1us", "p50 <= 0", "rps > 1e9"});
	CHECK(StatusOf(h.verdicts) == 1);
	for (const Verdict &v : h.verdicts)
		CHECK(v.outcome == Verdict::kBroken);
	INFO(GateText(h.gated, h.verdicts));
	CHECK(h.verdicts[0].reason.find("without " + h.verdicts[0].cause + " it would be ") == 0);
	CHECK(h.verdicts[1].cause == "fork");
	CHECK(h.verdicts[1].reason.find("in the request that was due at +") == 0);
	CHECK(h.verdicts[2].reason.find(" of its slow requests' time") != std::string::npos);
	CHECK(h.verdicts[3].cause.empty());
	CHECK(h.verdicts[4].reason.empty());
	CHECK(GateText(h.gated, h.verdicts).find(AnswerText(h.e) + "\nFAIL p99.9 is ") == 0);
	CHECK(GateText(h.gated, h.verdicts).find("5 of 5 limits broken.\n") != std::string::npos);
}

TEST_CASE("gate: an unknown figure breaks its limit, with the reason")
{
	JudgedRun missing({"NIX.p99 < 1s", "mb/s > 0", "p99 < 100s"});
	CHECK(missing.verdicts[0].sentence.find("NIX p99 is unknown: ") == 0);
	CHECK(missing.verdicts[0].sentence.find(" has no operation NIX") != std::string::npos);
	CHECK(missing.verdicts[1].sentence.find("does not count bytes") != std::string::npos);
	CHECK(missing.verdicts[2].outcome == Verdict::kKept);
	CHECK(StatusOf(missing.verdicts) == 4);
	missing.limits.limits[2].value = 0; // a broken limit is the answer, whatever else is unknown
	missing.Judge(LIMIT_HAS_TO_HOLD);
	CHECK(StatusOf(missing.verdicts) == 1);

	SampleSize no_log = {5, 2000, 500};
	no_log.requests = false;
	JudgedRun iterations({"p99 < 100s", "GET.p99 < 1s", "errors = 0", "fork.max < 1s"}, no_log);
	for (size_t i = 0; i < 3; i++)
		CHECK(iterations.verdicts[i].sentence.find(" has no request log") != std::string::npos);
	CHECK(iterations.verdicts[3].outcome == Verdict::kKept);

	SampleSize no_server = {5, 2000, 500};
	no_server.recorder = false;
	JudgedRun alone({"fork.max < 1s", "unknown < 100%", "p99 < 100s"}, no_server);
	CHECK(alone.verdicts[0].sentence.find("has no recording of a server") != std::string::npos);
	CHECK(alone.verdicts[1].outcome == Verdict::kNotKnown);
	CHECK(alone.verdicts[2].outcome == Verdict::kKept);

	JudgedRun slow({"p99 < 100s", "rps > 0", "max < 100s", "errors < 10%"});
	slow.e.run.files.emplace_back();
	slow.e.run.files.back().manifest = {R"({"log_slow_ns": 1000000})"};
	slow.Judge(LIMIT_HAS_TO_HOLD);
	CHECK(slow.verdicts[0].sentence.find(" holds only slow requests") != std::string::npos);
	CHECK(slow.verdicts[1].outcome == Verdict::kNotKnown);
	CHECK(slow.verdicts[2].outcome == Verdict::kKept);
	CHECK(slow.verdicts[3].outcome == Verdict::kNotKnown);
}

TEST_CASE("gate: drops, and the reading of --fail-if")
{
	JudgedRun h({"drops = 0"});
	CHECK(h.verdicts[0].outcome == Verdict::kKept);
	h.e.run.drops.push_back({0, 1, 7, FT_DROP_RING, 0});
	h.e.run.drops.push_back({1, 2, 3, FT_DROP_DISK, 0});
	h.Judge(LIMIT_HAS_TO_HOLD);
	CHECK(h.verdicts[0].sentence == "drops is 10, over 0");
	h.Judge(LIMIT_FAILS_IF);
	CHECK(h.verdicts[0].sentence == "drops is 10, within its limit (just 0 fails)");
	CHECK(h.verdicts[0].outcome == Verdict::kKept);
}

TEST_CASE("gate: against a base")
{
	AskedLimits limits;
	std::string error;
	REQUIRE(AddLimit({"no worse than BASE by more than 10%", ""}, LIMIT_HAS_TO_HOLD, &limits, &error));
	REQUIRE(limits.limits.size() == 3); // p50, p99, p99.9
	REQUIRE(AddLimit({"GET.requests no worse than BASE", ""}, LIMIT_HAS_TO_HOLD, &limits, &error));
	std::vector<limit> again = limits.limits;
	Explained e = SampleExplanation({5, 2000, 500}), base = SampleExplanation({5, 2000, 500});
	RunFigures figures(&limits.limits), of_base(&again);
	e.reading->log = std::make_unique<WholeLog>(e.run);
	base.reading->log = std::make_unique<WholeLog>(base.run);
	figures.Finish(e, e.reading.get());
	base.blame.latencies.p99 /= 2;
	base.blame.latencies.p50 = 0;
	of_base.Finish(base, base.reading.get());
	const std::vector<Verdict> verdicts = Judge(limits, LIMIT_HAS_TO_HOLD, figures, &of_base);
	CHECK(verdicts[0].outcome == Verdict::kBroken);
	CHECK(verdicts[1].outcome == Verdict::kBroken);
	CHECK(verdicts[1].sentence.find(" (BASE: ") != std::string::npos);
	CHECK(verdicts[1].by.value == Approx(1.1 * static_cast<double>(base.blame.latencies.p99)));
	CHECK(verdicts[2].outcome == Verdict::kKept);
	CHECK(verdicts[3].outcome == Verdict::kKept);
	e.run.missing = {{"faults", "no tracepoints"}};
	base.run.warnings = {"load.forktail: it was cut"};
	const std::string text = GateText(GatedOf(e, &base), verdicts);
	CHECK(text.find("note not recorded: faults (no tracepoints)\n") != std::string::npos);
	CHECK(text.find("note BASE: load.forktail: it was cut\n") != std::string::npos);
}

TEST_CASE("gate: JSON and JUnit report the same")
{
	JudgedRun h({"p99.9 < 1ms", "drops = 0", "NIX.p99 < 1s"});
	h.limits.asked[1].name = "nothing \x1b is lost";
	h.Judge(LIMIT_HAS_TO_HOLD);
	const auto json = parse_json(GateJson(h.gated, h.verdicts));
	CHECK(json["kept"] == false);
	CHECK(json["limits"][0]["kept"] == false);
	CHECK(json["limits"][0]["unit"] == "ns");
	CHECK(json["limits"][0]["bound"] == 1e6);
	CHECK(json["limits"][0]["value"] == h.verdicts[0].value);
	CHECK(json["limits"][0]["cause"] == h.verdicts[0].cause);
	CHECK(json["limits"][1]["kept"] == true);
	CHECK(json["limits"][1]["name"] == "nothing \\x1b is lost");
	CHECK(json["limits"][2]["kept"].is_null());
	CHECK(json["limits"][2]["value"].is_null());
	const JunitSuite suite = GateJunit(h.gated, h.verdicts, 3);
	REQUIRE(suite.cases.size() == 3);
	CHECK(suite.cases[0].outcome == JunitCase::kFailed);
	CHECK(suite.cases[0].message == h.verdicts[0].text());
	CHECK(suite.cases[1].outcome == JunitCase::kPassed);
	CHECK(suite.cases[2].outcome == JunitCase::kError);
}

TEST_CASE("gate: limits in a file, and the location of errors in it")
{
	TempDir dir;
	AskedLimits limits;
	std::string error;
	write_file(dir.file("l.toml"), "slow = \"1ms\"\nlimits = [\n  \"p99 < 5ms\", # why\n"
				       "  { limit = \"fork.max < 20ms\", name = \"snapshots\" },\n]\n");
	REQUIRE(ReadLimitsFile(dir.file("l.toml"), &limits, &error));
	CHECK(limits.slow == "1ms");
	REQUIRE(limits.asked.size() == 2);
	CHECK(limits.asked[1].name == "snapshots");
	CHECK(limits.limits[1].value == 20e6);
	CHECK(FileError("limits = [\n\"p99 < 5ms\",\n\"p99 5ms\"]\n")
		  .find("l.toml:3: the limit \"p99 5ms\" has no") == 0);
	CHECK(FileError("limits = [\n{ name = \"x\" }]\n").find("l.toml:2: ") == 0);
	CHECK(FileError("limits = [\n{ limit = \"p99<1\", nane = \"x\" }]\n")
		  .find("`nane`: a limit takes only") != std::string::npos);
	CHECK(FileError("limits = [\n5]\n").find("l.toml:2: a limit must be a string") == 0);
	CHECK(FileError("limits = [\n[\"p99<1\"]]\n").find("l.toml:2: a limit must be a string") == 0);
	CHECK(FileError("\nlimit = [\"p99<1\"]\n").find("l.toml:2: `limit`: only `limits` (a list)") == 0);
	CHECK(FileError("slow = 5\n").find("l.toml:1: ") == 0);
	CHECK(FileError("limits = [\n\"p99 <").find("l.toml:2: ") == 0);
	CHECK(FileError("limits = [\"frok.total < 5ms\"]").find("unknown cause \"frok\"") !=
	      std::string::npos);
	CHECK_FALSE(ReadLimitsFile(dir.file("none.toml"), &limits, &error));
	CHECK(error.find("No such file") != std::string::npos);
	CHECK_FALSE(ReadLimitsFile(dir.path(), &limits, &error));
	write_file(dir.file("empty.toml"), "");
	CHECK_FALSE(ReadLimitsFile(dir.file("empty.toml"), &limits, &error));
	CHECK(error == "cannot read " + dir.file("empty.toml") + ": the file is empty");
	CHECK(Refused("nonsense").find("nonsense") != std::string::npos);
}
