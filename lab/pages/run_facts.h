// SPDX-License-Identifier: MIT
// Content shared by a run's page and its Markdown section.
#pragma once

#include <string>
#include <vector>

#include "lab/run/results.h"
#include "lab/scenario/scenario.h"
#include "output.h"

namespace forktail::lab
{

struct Fact {
	std::string name, text;
	bool code = false;
};

// Machine, time, versions and scale; unknown facts are left out.
std::vector<Fact> FactsOf(const Results &results);
std::vector<std::string> NotesOf(const Results &results, const Output &output);

// The source of the published figures; empty without any.
std::string PublishedBy(const Scenario &scenario, const Output &output);

struct Episode {
	std::string what;
	std::vector<std::string> evidence; // a sentence each
};

// The explanation of one recorded step of a point.
struct Moment {
	std::string title; // "connections: 20; listen: unix"
	std::string causes;
	std::vector<Episode> worst;
	std::string run; // its run directory, relative; may be empty
};
std::vector<Moment> MomentsOf(const Scenario &scenario, const Results &results);

std::vector<std::string> ParagraphsOf(const std::string &text);
std::string TimeTaken(double seconds);	     // "12.5 s", "3 min 20 s"
std::string LinkTo(const std::string &path); // relative, percent-encoded

} // namespace forktail::lab
