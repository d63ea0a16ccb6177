/* SPDX-License-Identifier: MIT */
/* forktail-load: puts load on a Redis server, times every request and logs it.
 *
 *   options.c    what the user wants          connect.c    reaching the server
 *   workload.c   what is asked of it          pacing.c     when requests are due
 *   run.c        starts and ends the load     thread.c     a load thread's loop and timers
 *   connection.c the hot path: reads, writes  answers.c    the hot path: what answers mean
 *   resp.c       where replies end            stats.c      what is counted
 *   log.c        the request log's writer     figures.c    exact percentiles
 *   report.c     progress, table, JSON
 */
#include "options.h"
#include "run.h"

int main(int argc, char **argv)
{
	struct options o;
	int status = options_read(&o, argc, argv);

	if (status == 0 && !o.check)
		status = run_load(&o, argc, argv);
	options_free(&o);
	return status;
}
