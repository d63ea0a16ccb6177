// SPDX-License-Identifier: MIT
// Puts a scenario's tables and charts into a Markdown document, between the lines "<!-- lab:NAME -->" and
// "<!-- /lab:NAME -->". The rest of the document stays. With "<!-- lab:NAME short -->" the section has only
// the main table, with "<!-- lab:NAME short chart -->" also the first chart (ShortOutput in output.h).
#pragma once

#include <string>

#include "page.h"

namespace forktail::lab
{

// Charts are written to the directory with the document's name without ".md":
// docs/results/experiments/NAME-1.svg. False: *error is one sentence, and the document is unchanged.
bool WriteSection(const std::string &document, const Scenario &scenario, const Results &results,
		  const Output &output, std::string *error);

} // namespace forktail::lab
