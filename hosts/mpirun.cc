// SPDX-License-Identifier: MIT
// See mpirun.h. Each rank is a separate application context with the host's name as argument, independent of
// how mpirun numbers and places ranks. The options:
//   --stdin all               "end" reaches every rank without MPI
//   --bind-to none            Open MPI would bind each rank, and so its programs, to a core
//   mpi_yield_when_idle       a rank that waits in MPI, before the load, leaves its CPU to others
//   oob_tcp_keepalive_*       a daemon that is cut off ends after half a minute
#include "mpirun.h"

#include <unistd.h>

#include "common/process/words.h"

namespace forktail::hosts
{
namespace
{

} // namespace

std::vector<std::string> MpiCommand(const MpiRun &mpi, const Plan &plan, const std::string &mode,
				    const std::vector<const PlanHost *> &hosts)
{
	std::vector<std::string> words = {mpi.mpirun,
					  "--stdin",
					  "all",
					  "--bind-to",
					  "none",
					  "--oversubscribe",
					  "--mca",
					  "mpi_yield_when_idle",
					  "1",
					  "--mca",
					  "oob_tcp_keepalive_time",
					  "10",
					  "--mca",
					  "oob_tcp_keepalive_intvl",
					  "5",
					  "--mca",
					  "oob_tcp_keepalive_probes",
					  "4"};
	if (geteuid() == 0) // recording needs it
		common::Append(&words, {"--allow-run-as-root"});
	if (!mpi.hostfile.empty())
		common::Append(&words, {"--hostfile", mpi.hostfile});
	common::Append(&words, plan.mpirun);
	common::Append(&words, mpi.options);
	common::Append(&words,
		       {"--host", "localhost", "-np", "1", mpi.rank, mode, mpi.token, "--plan", mpi.plan});
	if (mode == "gather")
		words.push_back(mpi.run);
	for (const PlanHost *host : hosts)
		common::Append(&words, {":", "--host", host->address, "-np", "1",
					host->programs.empty() ? mpi.rank : host->programs + "/forktail-rank",
					mode, mpi.token, host->name});
	return words;
}

} // namespace forktail::hosts
