// SPDX-License-Identifier: MIT
// Finds a Python and the package for python.h. A wheel of another version is passed over, because the figures
// of its forktail-parquet might differ from those of explain.
#include "python.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
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
// Python 3.N.
constexpr int kOldestMinor = 11, kNewestMinor = 14;

// argv: forktail's version, modules. Without the wheel, as in the source tree, the version does not matter.
const char kHasModules[] = R"(
import importlib.metadata as metadata, importlib.util as util, sys
version, *modules = sys.argv[1:]
other = any(d.version != version for d in metadata.distributions(name="forktail"))
sys.exit(sys.version_info < (3, 11) or other or any(util.find_spec(m) is None for m in modules))
)";

std::string ChosenPython()
{
	const char *chosen = getenv("FORKTAIL_PYTHON");
	return chosen ? chosen : "";
}

// Those that are not known to be too old. Distributions whose python3 is older have python3.11 or later as
// well. The version is in the file's name; else __main__.py checks it.
std::vector<std::string> UsualPythons()
{
	std::vector<std::string> pythons;
	for (std::string python : {std::string("/usr/bin/python3"), common::FindProgram("python3")}) {
		std::error_code ec;
		const std::string file = std::filesystem::canonical(python, ec).filename();
		int minor = kOldestMinor;
		if (!python.empty() &&
		    (sscanf(file.c_str(), "python3.%d", &minor) != 1 || minor >= kOldestMinor))
			pythons.push_back(python);
	}
	for (int minor = kNewestMinor; minor >= kOldestMinor; minor--)
		pythons.push_back(common::FindProgram("python3." + std::to_string(minor)));
	return pythons;
}

// "": none has all of these modules.
std::string PythonWith(const std::vector<std::string> &modules)
{
	std::vector<std::string> candidates = {ChosenPython()};
	if (candidates[0].empty()) {
		const std::filesystem::path tree = Tree();
		if (!tree.empty())
			candidates = {tree / "build-python/bin/python3", tree / "build-spark/bin/python3"};
		common::Append(&candidates,
			       {common::FindProgram("forktail-python"), std::string(kVenv) + "/bin/python3"});
		common::Append(&candidates, UsualPythons());
	}
	for (const std::string &python : candidates) {
		std::vector<std::string> words = {python, "-I", "-c", kHasModules, FORKTAIL_VERSION};
		common::Append(&words, modules);
		if (access(python.c_str(), X_OK) == 0 && common::StatusOf(words) == kDone)
			return python;
	}
	return "";
}

// The first Python that is not known to be too old, without starting it. "": none.
std::string AnyPython()
{
	const std::string chosen = ChosenPython();
	for (const std::string &python : chosen.empty() ? UsualPythons() : std::vector<std::string>{chosen})
		if (access(python.c_str(), X_OK) == 0)
			return python;
	return "";
}

} // namespace

int RunPython(const std::string &command, const std::vector<std::string> &modules, int argc, char **argv)
{
	std::error_code ec;
	std::filesystem::path package;
	for (const std::filesystem::path &place :
	     {OwnDirectory().parent_path() / "lib/forktail/python", Tree() / "python",
	      std::filesystem::path(FORKTAIL_PACKAGE)})
		if (package.empty() && place.is_absolute() && std::filesystem::exists(place, ec))
			package = place;
	if (package.empty())
		return Refuse("forktail " + command + " is in lib/forktail/python, which is not beside " +
				  OwnDirectory().string() + ". Install all of the archive or package",
			      kCant);
	std::string python = modules.empty() ? "" : PythonWith(modules);
	if (python.empty())
		python = AnyPython();
	if (python.empty()) {
		const std::string chosen = ChosenPython();
		if (!chosen.empty())
			return Refuse("cannot run $FORKTAIL_PYTHON, which is " + chosen +
					  ". Set it to the path of Python 3.11 or later",
				      kCant);
		return Refuse(
		    (command == "parquet" ? "export to Parquet" : command) +
			" needs Python 3.11 or later, and none was found. Install it (Debian 12 and 13, "
			"Ubuntu 24.04: python3; RHEL 9: python3.11; SLES 15: python311), or set "
			"$FORKTAIL_PYTHON to its path",
		    kCant);
	}
	setenv("FORKTAIL_BIN_DIR", OwnDirectory().c_str(), 1);
	// Files that the package opens must not become standard input or output.
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", O_RDWR); // the lowest free number is this one
	// Python's own start does not expect SIGINT; __main__.py unblocks it.
	sigset_t interrupt;
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, nullptr);
	return Become(python, {python, "-I", "-X", "utf8", package, command}, argc, argv);
}

} // namespace forktail::cli
