// SPDX-License-Identifier: MIT
// forktail mark.
#include <filesystem>
#include <string>

#include "analysis/source.h"
#include "command.h"
#include "common/json.h"
#include "common/text.h"

namespace forktail::cli
{

int MarkCommand(int argc, char **argv)
{
	CLI::App app("Note what happens now, such as a deployment: forktail explain, its page and JSON show "
		     "marks and which "
		     "episodes followed them.\n"
		     "Any program can do this: append a line \"SECONDS TEXT\" with the seconds since 1970 to "
		     "DIR/marks.\n"
		     "Exit status: 0 done, 2 usage, 3 no such directory, or it cannot be written.",
		     "forktail mark");
	app.footer("  forktail mark /run/forktail \"deploy 42\"\n");
	std::string run, text, at;
	int status = kDone;
	app.add_option("DIR", run, "Directory of a ring or a run, or a recording")->required();
	app.add_option("TEXT", text, "What happened, at most 200 bytes in one line")->required();
	app.add_option("--at", at, "When it happened, in seconds since 1970 (default: now)")
	    ->type_name("SECONDS");
	if (!Parse(&app, argc, argv, &status))
		return status;
	if (text.empty() || text.size() > 200 || text.find_first_of("\n\r") != std::string::npos)
		return Refuse("a mark is one line of 1 to 200 bytes", kUsage);
	double seconds = 0;
	if (!at.empty() && !parse_positive(at.c_str(), 1e10, &seconds))
		return Refuse("--at needs seconds since 1970, such as 1764097200.5, not '" +
				  common::Visible(at) + "'",
			      kUsage);
	std::error_code ec;
	if (!std::filesystem::exists(run, ec))
		return Refuse(common::Visible(run) + " does not exist", kCant);
	std::string error;
	return analysis::AddMark(run, static_cast<uint64_t>(seconds * 1e9), text, &error)
		   ? kDone
		   : Refuse(error, kCant);
}

} // namespace forktail::cli
