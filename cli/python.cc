// SPDX-License-Identifier: MIT
// See python.h.
#include "python.h"

#include <cstdlib>
#include <filesystem>
#include <unistd.h>

#include "command.h"
#include "common/process.h"

namespace forktail::cli
{

namespace
{

// Where an administrator installs the wheel for all users. sudo keeps no other directory on PATH.
const char kVenv[] = "/opt/forktail";

// argv: the version, modules. Without the wheel, as in the source tree, the version does not matter.
const char kHasModules[] = R"(
import importlib.metadata as metadata, importlib.util as util, sys
version, *modules = sys.argv[1:]
other = any(d.version != version for d in metadata.distributions(name="forktail"))
sys.exit(other or any(util.find_spec(m) is None for m in modules))
)";

std::string ChosenPython()
{
	const char *chosen = getenv("FORKTAIL_PYTHON");
	return chosen ? chosen : "";
}

// The wheel that the package contains; "" in the source tree.
std::string WheelFile()
{
	std::error_code ec;
	const std::filesystem::path file = OwnDirectory().parent_path() / "lib/forktail" / FORKTAIL_WHEEL;
	return std::filesystem::exists(file, ec) ? file.string() : "";
}

} // namespace

std::string PythonWith(const std::vector<std::string> &modules)
{
	std::vector<std::string> candidates = {ChosenPython()};
	if (candidates[0].empty())
		candidates = {Tree() / "build-python/bin/python3", Tree() / "build-spark/bin/python3",
			      common::FindProgram("forktail-python"), std::string(kVenv) + "/bin/python3",
			      common::FindProgram("python3")};
	// A file in the working directory, which may belong to another user, is no module of ours.
	setenv("PYTHONSAFEPATH", "1", 1);
	for (const std::string &python : candidates) {
		std::vector<std::string> words = {python, "-c", kHasModules, FORKTAIL_VERSION};
		common::Append(&words, modules);
		if (access(python.c_str(), X_OK) == 0 && common::StatusOf(words) == kDone)
			return python;
	}
	return "";
}

int RefuseWithoutPackage(const std::string &missing, const std::string &extra, const std::string &script)
{
	const std::string python = ChosenPython(), wheel = WheelFile(),
			  install = " install '" + wheel + extra + "'",
			  where = python.empty() ? "" : " with $FORKTAIL_PYTHON, which is " + python;
	std::string how;
	if (wheel.empty())
		how = "Run " + script + " in forktail's source tree";
	else if (!python.empty())
		how = "Run: " + python + " -m pip" + install;
	else
		how = std::string("Install python3-venv, then run as root: python3 -m venv ") + kVenv +
		      " && " + kVenv + "/bin/pip" + install;
	return Refuse("cannot find " + missing + " for forktail " FORKTAIL_VERSION + where + ". " + how,
		      kCant);
}

std::vector<std::string> ParquetProgram()
{
	if (const std::string program = common::FindProgram("forktail-parquet"); !program.empty())
		return {program};
	if (const std::string python = PythonWith({"forktail_parquet", "pyarrow"}); !python.empty())
		return {python, "-m", "forktail_parquet"};
	RefuseWithoutPackage("forktail-parquet", "", "script/python, and build again,");
	return {};
}

int RunPython(const std::string &command, const std::vector<std::string> &modules, int argc, char **argv)
{
	namespace fs = std::filesystem;
	std::error_code ec;
	fs::path package = OwnDirectory().parent_path() / "lib/forktail/python";
	if (!fs::exists(package, ec))
		package = Tree() / "python";
	if (!fs::exists(package / "__main__.py", ec))
		return Refuse("cannot find the Python package of forktail in " + package.string() +
				  ": install forktail again",
			      kCant);
	std::string python = PythonWith(modules);
	if (python.empty() && !modules.empty())
		python = PythonWith({});
	if (python.empty()) {
		const char *chosen = getenv("FORKTAIL_PYTHON");
		return Refuse(
		    chosen && chosen[0]
			? "$FORKTAIL_PYTHON, " + std::string(chosen) + ", is not Python 3.11 or later"
			: "forktail " + command + " needs Python 3.11 or later. Run: apt-get install python3",
		    kCant);
	}
	setenv("FORKTAIL_BIN_DIR", OwnDirectory().c_str(), 1);
	return Become(python, {python, "-I", package, command}, argc, argv);
}

} // namespace forktail::cli
