/* SPDX-License-Identifier: MIT */
/* forktail-load: puts load on Redis or memcached, times every request and logs it. What is wrong with options
 * is said while they are read, so whoever only has them checked is done then. */
#include "loadgen/options/options.h"
#include "loadgen/run/run.h"

int main(int argc, char **argv)
{
	struct options o;
	int status = options_read(&o, argc, argv);

	if (status == 0 && !o.check)
		status = run_load(&o, argc, argv);
	options_free(&o);
	return status;
}
