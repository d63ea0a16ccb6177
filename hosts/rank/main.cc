// SPDX-License-Identifier: MIT
// forktail-rank: mpirun starts it for `forktail hosts run`, once on the host of that command (rank 0) and
// once on each host of the plan. A separate program, because nothing else in forktail needs MPI.
#include <csignal>
#include <cstdio>
#include <string>

#include "begin.h"
#include "common/process/stops.h"
#include "gather.h"
#include "talk.h"

namespace
{

constexpr const char *kHelp =
    R"(Runs the programs of one host in a run on several hosts, and collects their files (docs/guides/many-hosts.md).
mpirun starts it for forktail hosts run: on the host of that command and on each host of the plan. Do not start it by hand.
Usage: forktail-rank run TOKEN --plan PLAN
       forktail-rank run TOKEN HOST
       forktail-rank gather TOKEN --plan PLAN RUN
       forktail-rank gather TOKEN HOST

Options:
  --help                      Print this help message and exit
  --version                   Print the version and exit
)";

} // namespace

int main(int argc, char **argv)
{
	using namespace forktail::hosts;
	if (argc > 1 && std::string(argv[1]) == "--version") {
		printf("forktail-rank %s\n", FORKTAIL_VERSION);
		return 0;
	}
	if (argc > 1 && std::string(argv[1]) == "--help") {
		fputs(kHelp, stdout);
		return 0;
	}
	const std::string mode = argc > 3 ? argv[1] : "", token = argc > 3 ? argv[2] : "",
			  host = argc > 3 ? argv[3] : "";
	const bool leads = host == "--plan";
	if ((mode != "run" && mode != "gather") || (leads && argc != (mode == "run" ? 5 : 6))) {
		fputs("forktail-rank: do not start this program by hand: forktail hosts run starts it; see "
		      "docs/guides/many-hosts.md\n",
		      stderr);
		return 2;
	}
	forktail::common::CatchStops();
	signal(SIGPIPE, SIG_IGN);
	int rank = 0, ranks = 0;
	if (!BeginTalk(&argc, &argv, &rank, &ranks) || (rank == 0) != leads)
		return 3;
	if (mode == "run")
		return leads ? Lead(argv[4], ranks) : Follow(token, host);
	return leads ? Gather(argv[4], token, argv[5], ranks) : HandOver(token, host);
}
