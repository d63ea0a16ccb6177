// SPDX-License-Identifier: MIT
// A run that has to be readable.
#pragma once

#include <string>

#include "analysis/source.h"
#include "tests/support/catch.h"

namespace forktail::test
{

inline analysis::Run LoadedRun(const std::string &path)
{
	analysis::Run run;
	std::string error;
	const bool read = analysis::LoadRun(path, &run, &error);
	INFO(path << ": " << error);
	REQUIRE(read);
	return run;
}

} // namespace forktail::test
