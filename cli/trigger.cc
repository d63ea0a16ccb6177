// SPDX-License-Identifier: MIT
// forktail trigger.
#include <cstdio>
#include <string>

#include "command.h"
#include "common/json.h"
#include "live/config.h"

namespace forktail::cli
{

int TriggerCommand(int argc, char **argv)
{
	CLI::App app(
	    "Ask the guard of a ring for a snapshot, by the name of a trigger in its configuration.\n"
	    "Exit status: 0 the guard takes a snapshot, 1 the guard refuses, 3 no guard answers.",
	    "forktail trigger");
	app.footer("  forktail trigger /run/forktail deploy\n");
	std::string path, name, answer;
	int status = kDone;
	app.add_option("DIR", path, "Directory of the ring, or the control socket")->required();
	app.add_option("NAME", name, "Name of the trigger")->required();
	if (!Parse(&app, argc, argv, &status))
		return status;
	const live::guard::TriggerAnswer asked = live::guard::AskForTrigger(path, name, &answer);
	fprintf(asked == live::guard::TriggerAnswer::Yes ? stdout : stderr, "forktail: %s\n",
		common::Visible(answer).c_str());
	return asked == live::guard::TriggerAnswer::Yes	 ? kDone
	       : asked == live::guard::TriggerAnswer::No ? kNo
							 : kCant;
}

} // namespace forktail::cli
