/* SPDX-License-Identifier: MIT */
/* forktail-load: puts load on Redis or memcached, measures every request and logs it. Errors in options are
 * reported while they are read. */
#include "loadgen/options.h"
#include "loadgen/run.h"

int main(int argc, char **argv)
{
	struct options o;
	int status = options_read(&o, argc, argv);

	if (status == 0)
		status = run_check(&o);
	if (status == 0 && !o.check)
		status = run_load(&o, argc, argv);
	options_free(&o);
	return status;
}
