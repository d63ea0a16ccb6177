// SPDX-License-Identifier: MIT
// The comparison of two runs and the gate, under libFuzzer: the input's run and the same without its last
// recording. Nothing may crash, and no output may have a character that steers terminals. run_input.h says
// what an input is.
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/compare.h"
#include "analysis/gate.h"
#include "analysis/text.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/run_input.h"
#include "tests/support/explained.h"

namespace
{

using namespace forktail;

void Compare(const std::string &a, const std::string &b)
{
	analysis::compare::Comparison comparison;
	std::string error;
	int status = 0;
	if (!analysis::compare::CompareSides({a, {a}}, {b, {b}}, {}, &comparison, &error, &status)) {
		fuzz::CheckVisible(error, "the error of diff steers terminals");
		return;
	}
	fuzz::CheckVisible(analysis::compare::ComparisonText(comparison, false), "diff steers terminals");
	fuzz::CheckVisible(analysis::compare::ComparisonMarkdown(comparison), "Markdown steers terminals");
	fuzz::CheckVisible(analysis::compare::ComparisonJson(comparison), "JSON of diff steers terminals");
	fuzz::CheckVisible(analysis::compare::ComparisonJunit(comparison), "JUnit of diff steers terminals");
}

void Gate(const std::string &run, const std::string &base)
{
	analysis::gate::AskedLimits limits;
	std::string error;
	for (const char *limit : {"p99.9 < 5ms", "fork.max < 20ms", "errors < 0.1%", "drops = 0",
				  "unknown < 5%", "p99 no worse than BASE by more than 10%"})
		if (!analysis::gate::AddLimit({limit, ""}, LIMIT_HAS_TO_HOLD, &limits, &error))
			fuzz::Fail("a limit is refused", error);
	std::vector<limit> of_base = limits.limits;
	analysis::gate::RunFigures figures(&limits.limits), base_figures(&of_base);
	analysis::Explained explanation, of;
	const auto read = [&](const std::string &path, analysis::gate::RunFigures *f,
			      analysis::Explained *e) {
		analysis::ExplainOptions options;
		int status = 0;
		f->Watch(&options);
		if (!analysis::ExplainRun(path, options, e, &error, &status))
			return false;
		f->Finish(*e, e->reading.get());
		return true;
	};
	if (!read(run, &figures, &explanation) || !read(base, &base_figures, &of)) {
		fuzz::CheckVisible(error, "the error of the gate steers terminals");
		return;
	}
	const std::vector<analysis::gate::Verdict> verdicts =
	    analysis::gate::Judge(limits, LIMIT_HAS_TO_HOLD, figures, &base_figures);
	const analysis::gate::Gated gated = analysis::gate::GatedOf(explanation, &of);
	fuzz::CheckVisible(analysis::gate::GateText(gated, verdicts), "the gate steers terminals");
	fuzz::CheckVisible(analysis::gate::GateJson(gated, verdicts), "JSON of the gate steers terminals");
	fuzz::CheckVisible(analysis::JunitXml(analysis::gate::GateJunit(gated, verdicts, 1)),
			   "JUnit of the gate steers terminals");
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	std::vector<std::string> files = fuzz::RunFiles(data, size);
	const std::string run = fuzz::WriteRun("run", files);
	if (files.size() > 2)
		files.pop_back();
	const std::string base = fuzz::WriteRun("base", files);
	Compare(base, run);
	Gate(run, base);
	return 0;
}
