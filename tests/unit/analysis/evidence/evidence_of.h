// SPDX-License-Identifier: MIT
// Runs of one episode, and their evidence as text.
#pragma once
#include <string>
#include <vector>

#include "analysis/evidence.h"
#include "tests/support/catch.h"
#include "tests/support/text.h"
#include "tests/unit/analysis/run_builder.h"

namespace forktail::test
{

using namespace forktail::analysis;

// Its sentences, a line each.
inline std::string EvidenceText(const Episode &episode)
{
	std::string text;
	for (const std::string &sentence : episode.evidence)
		text += sentence + "\n";
	return text;
}

// The evidence of a run whose requests are one episode.
inline std::string EvidenceOf(RunBuilder *b, size_t limit = 10)
{
	std::vector<Timeline> timelines;
	timelines.push_back(b->Timeline());
	Blame blame = BlameRun(b->run, timelines, {1, 0});
	std::vector<Episode> episodes = FindEpisodes(&blame);
	REQUIRE(episodes.size() == 1);
	FindEvidence(b->run, timelines, blame, ActivitiesOf(b->run), limit, 1, &episodes);
	return EvidenceText(episodes[0]);
}

// One request over the whole of a 100 ms thread that is busy except for what the test adds.
inline void OneRequest(RunBuilder *b, uint64_t covered)
{
	b->Thread(kServer, 0, 100 * ms);
	b->Tally(FT_OWN_CODE, 0, 100 * ms, 100 * ms - covered);
	b->Request(0, 0, 100 * ms);
}

} // namespace forktail::test
