// SPDX-License-Identifier: MIT
// A document in Markdown that holds what runs have shown, beside what a person wrote: what stands between the
// lines
// "<!-- lab:NAME -->" and "<!-- /lab:NAME -->" is replaced by NAME's tables and charts, and the rest stays.
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
