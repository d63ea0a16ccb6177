// SPDX-License-Identifier: MIT
// The outputs of a scenario's run: a page with tables, charts and worst moments, the same as a Markdown
// section for docs/results/experiments.md, and an index page of several scenarios. Pages are self-contained
// and have no scripts.
#pragma once

#include <string>
#include <vector>

#include "lab/run/results.h"
#include "lab/scenario/scenario.h"
#include "output.h"

namespace forktail::lab
{

// Tables for a terminal of `width` columns, followed by the notes of the run.
std::string TextOf(const Results &results, const Output &output, size_t width);

// `directory` is the directory of report.html, with the run directories of recorded steps below it; existing
// pages are linked.
std::string PageOf(const Scenario &scenario, const Results &results, const Output &output,
		   const std::string &directory);

// A section with a second-level title. Its charts are files in `charts`, a path relative to the document:
// "experiments" -> experiments/NAME-1.svg.
std::string MarkdownOf(const Scenario &scenario, const Results &results, const Output &output,
		       const std::string &charts);

// The same without title, text and worst moments, for a document that has its own text: `output` (of
// ShortOutput) below two lines with the source of the published figures and the machine of ours.
std::string ShortMarkdownOf(const Scenario &scenario, const Results &results, const Output &output,
			    const std::string &charts);

struct IndexEntry {
	std::string name, title;
	std::string state; // "done", "failed: ..."
	double seconds = 0;
	std::string link; // relative; empty: no page
};

// `where` is one of the runs: host, versions and command are the same for all.
std::string IndexOf(const std::vector<IndexEntry> &entries, const Results &where);

} // namespace forktail::lab
