// SPDX-License-Identifier: MIT
// A run in memory with its explanation, for tests that make or change both.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "analysis/explain.h"

namespace forktail::analysis
{

// The run is also the one to change: Explanation::run is constant. Copies share it.
struct Explained : Explanation {
	explicit Explained(std::shared_ptr<Reading> of = std::make_shared<Reading>())
	    : Explanation(of->run), reading(std::move(of)), run(reading->run)
	{
	}

	std::shared_ptr<Reading> reading;
	Run &run;
};

inline bool ExplainRun(const std::string &path, const ExplainOptions &options, Explained *out,
		       std::string *error, int *status)
{
	return ExplainRun(path, options, out->reading.get(), out, error, status);
}

} // namespace forktail::analysis
