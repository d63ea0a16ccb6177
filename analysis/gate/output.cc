// SPDX-License-Identifier: MIT
// See output.h.
#include "output.h"

#include <cmath>

#include "analysis/text/answer.h"
#include "common/format/sanitize.h"

namespace forktail::analysis::gate
{

namespace
{

using Out = nlohmann::ordered_json;

// Met, broken, unknown.
const char *const kWords[] = {"ok  ", "FAIL", "NONE"};

const char *UnitOf(const limit &l)
{
	if (l.figure <= LIMIT_STDDEV || l.figure == LIMIT_TOTAL)
		return "ns";
	if (l.figure == LIMIT_ERROR_PERCENT || l.figure == LIMIT_SHARE)
		return "percent";
	return "";
}

Out NumberOrNull(double value)
{
	return std::isfinite(value) ? Out(value) : Out();
}

std::string NameOf(const AskedLimit &asked)
{
	return asked.name.empty() ? asked.text : asked.name + " (" + asked.text + ")";
}

Out JsonOf(const Verdict &v)
{
	const bool known = v.outcome != Verdict::kNotKnown;
	Out out = {{"limit", common::Visible(v.asked.text)}, {"name", common::Visible(v.asked.name)}};
	out["kept"] = known ? Out(v.outcome == Verdict::kKept) : Out();
	out["value"] = NumberOrNull(v.value);
	out["bound"] = known ? NumberOrNull(v.by.value) : Out();
	if (v.base)
		out["base_value"] = NumberOrNull(v.base_value);
	out["unit"] = UnitOf(v.by);
	out["sentence"] = common::Visible(v.sentence);
	out["cause"] = v.cause;
	out["reason"] = common::Visible(v.reason);
	out["evidence"] = common::Visible(v.evidence);
	return out;
}

void AddNotes(const Run &run, const std::string &whose, std::vector<std::string> *notes)
{
	for (const std::string &warning : run.warnings)
		notes->push_back(whose + warning);
	for (const Missing &missing : run.missing)
		notes->push_back(whose + "not recorded: " + missing.what + " (" + missing.why + ")");
}

} // namespace

Gated GatedOf(const Explanation &run, const Explanation *base)
{
	Gated gated = {run.run.path, base ? base->run.path : "", AnswerText(run), {}};
	AddNotes(run.run, "", &gated.notes);
	if (base)
		AddNotes(base->run, "BASE: ", &gated.notes);
	return gated;
}

std::string GateText(const Gated &gated, const std::vector<Verdict> &verdicts)
{
	// The reason comes first for the reader of a broken build.
	std::string out = StatusOf(verdicts) == 1 ? common::Visible(gated.answer) + "\n" : "";
	size_t broken = 0, unknown = 0;
	for (const Verdict &v : verdicts) {
		out += std::string(kWords[v.outcome]) + " " +
		       common::Visible((v.asked.name.empty() ? "" : v.asked.name + ": ") + v.text()) + "\n";
		broken += v.outcome == Verdict::kBroken;
		unknown += v.outcome == Verdict::kNotKnown;
	}
	for (const std::string &note : gated.notes)
		out += "note " + common::Visible(note) + "\n";
	const size_t all = verdicts.size();
	if (!broken && !unknown)
		return out + (all == 1 ? "The limit is met.\n"
				       : "All " + std::to_string(all) + " limits are met.\n");
	return out + std::to_string(broken) + " of " + std::to_string(all) +
	       (all == 1 ? " limit" : " limits") + " broken" +
	       (unknown ? ", " + std::to_string(unknown) + " unknown" : "") + ".\n";
}

std::string GateJson(const Gated &gated, const std::vector<Verdict> &verdicts)
{
	Out out = {{"forktail", FORKTAIL_VERSION}, {"run", common::Visible(gated.run)}};
	if (!gated.base.empty())
		out["base"] = common::Visible(gated.base);
	out["kept"] = StatusOf(verdicts) == 0;
	out["answer"] = common::Visible(gated.answer);
	out["limits"] = Out::array();
	for (const Verdict &v : verdicts)
		out["limits"].push_back(JsonOf(v));
	out["notes"] = Out::array();
	for (const std::string &note : gated.notes)
		out["notes"].push_back(common::Visible(note));
	return out.dump(2, ' ', false, Out::error_handler_t::replace) + "\n";
}

JunitSuite GateJunit(const Gated &gated, const std::vector<Verdict> &verdicts, double seconds)
{
	static const JunitCase::Outcome outcomes[] = {JunitCase::kPassed, JunitCase::kFailed,
						      JunitCase::kError};
	JunitSuite suite = {"forktail gate " + gated.run, {}};
	for (const Verdict &v : verdicts) {
		const bool kept = v.outcome == Verdict::kKept;
		// The run was read once for all limits.
		suite.cases.push_back({NameOf(v.asked), "forktail.gate", outcomes[v.outcome],
				       kept ? "" : v.text(), kept ? v.sentence : "",
				       seconds / static_cast<double>(verdicts.size())});
	}
	return suite;
}

} // namespace forktail::analysis::gate
