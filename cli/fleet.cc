// SPDX-License-Identifier: MIT
// forktail fleet: runs the Python package in analysis/fleet/, which computes with Spark.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "command.h"
#include "python.h"

namespace fs = std::filesystem;

namespace forktail::cli
{

int FleetCommand(int argc, char **argv)
{
	std::error_code ec;
	const fs::path tree = Tree();
	if (fs::exists(tree / "analysis/fleet/forktail_fleet", ec)) {
		const char *before = getenv("PYTHONPATH");
		const std::string path = (tree / "analysis/fleet").string() +
					 (before && before[0] ? std::string(":") + before : "");
		setenv("PYTHONPATH", path.c_str(), 1);
	}
	const std::string python = PythonWith({"pyspark", "forktail_fleet"});
	if (python.empty())
		return RefuseWithoutPackage("the Python packages pyspark and forktail_fleet", "[fleet]",
					    "script/spark");
	return Become(python, {python, "-m", "forktail_fleet"}, argc, argv);
}

} // namespace forktail::cli
