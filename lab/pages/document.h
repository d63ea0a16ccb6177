// SPDX-License-Identifier: MIT
// Puts a scenario's tables and charts into a Markdown document, between the lines "<!-- lab:NAME -->" and
// "<!-- /lab:NAME -->". The rest of the document stays. "<!-- lab:NAME short -->" asks for the main table
// only,
// "<!-- lab:NAME short chart -->" for the first chart too (ShortOutput in output.h).
#pragma once

#include <string>

#include "page.h"

namespace forktail::lab
{

// Charts go into the directory that is called as the document without its ".md":
// docs/results/experiments/NAME-1.svg. False: *error is one sentence, and the document is as it was.
bool WriteSection(const std::string &document, const Scenario &scenario, const Results &results,
		  const Output &output, std::string *error);

} // namespace forktail::lab
