// SPDX-License-Identifier: MIT
// forktail fleet: runs the Python package in analysis/fleet/, which computes with Spark. This file only finds
// a Python with the packages.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "command.h"
#include "common/process/child.h"

namespace fs = std::filesystem;

namespace forktail::cli
{

namespace
{

bool Has(const std::string &python, const char *package)
{
	const std::string code =
	    std::string("import importlib.util as u, sys; sys.exit(u.find_spec('") + package + "') is None)";
	return common::StatusOf({python, "-c", code}) == 0;
}

} // namespace

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
	std::string python = tree / "build-spark/bin/python3";
	if (!Has(python, "pyspark"))
		python = "python3";
	if (!Has(python, "pyspark")) {
		fprintf(stderr, "forktail: cannot find Spark. Run script/spark, or install the Python "
				"packages pyspark and "
				"ruptures.\n");
		return kCant;
	}
	if (!Has(python, "forktail_fleet")) {
		fprintf(stderr,
			"forktail: %s has pyspark, but not forktail_fleet. Install the package from "
			"forktail's analysis/fleet/.\n",
			python.c_str());
		return kCant;
	}
	std::vector<char *> words = {python.data(), const_cast<char *>("-m"),
				     const_cast<char *>("forktail_fleet")};
	words.insert(words.end(), argv, argv + argc);
	words.push_back(nullptr);
	execvp(python.c_str(), words.data());
	perror("forktail: cannot run python3");
	return kCant;
}

} // namespace forktail::cli
