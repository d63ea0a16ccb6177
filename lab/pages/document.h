// SPDX-License-Identifier: MIT
// Updates a Markdown document with the results of runs: the text between the lines
// "<!-- lab:NAME -->" and "<!-- /lab:NAME -->" is replaced by NAME's tables and charts; the rest remains.
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
