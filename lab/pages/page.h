// SPDX-License-Identifier: MIT
// What is left of a scenario's run for its readers: a page with its tables, charts and worst moments, the
// same as a section in Markdown for docs/results/experiments.md, and a page over several scenarios. Pages
// hold all they need, and no scripts.
#pragma once

#include <string>
#include <vector>

#include "lab/run/results.h"
#include "lab/scenario/scenario.h"
#include "output.h"

namespace forktail::lab
{

// Tables for a terminal of `width` columns, with the notes of the run below.
std::string TextOf(const Results &results, const Output &output, size_t width);

// `directory` is where report.html will lie, with the run directories of recorded steps below it: links lead
// to the pages that are there.
std::string PageOf(const Scenario &scenario, const Results &results, const Output &output,
		   const std::string &directory);

// A section with a second-level title. Its charts are files in `charts`, a path relative to the document:
// "experiments" -> experiments/NAME-1.svg.
std::string MarkdownOf(const Scenario &scenario, const Results &results, const Output &output,
		       const std::string &charts);

// The same without title, text and worst moments, for a document that says these in its own words: `output`
// (of ShortOutput) below two lines that say where the published figures and ours are from.
std::string ShortMarkdownOf(const Scenario &scenario, const Results &results, const Output &output,
			    const std::string &charts);

struct IndexEntry {
	std::string name, title;
	std::string state; // "done", "failed: ..."
	double seconds = 0;
	std::string link; // relative; empty: there is no page
};

// `where` is one of their runs: host, versions and command are the same for all.
std::string IndexOf(const std::vector<IndexEntry> &entries, const Results &where);

} // namespace forktail::lab
