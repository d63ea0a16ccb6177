/* SPDX-License-Identifier: MIT */
/* Which tests a run consists of, and what each asks for: redis-benchmark's tests by name, a mix of SET and
 * GET, the user's own commands, YCSB's workloads. From the options come the workload (all operations) and the
 * tests that are run one after the other, each a mix of some of them. */
#ifndef FORKTAIL_LOADGEN_SUITE_H
#define FORKTAIL_LOADGEN_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/options/catalogue.h"
#include "loadgen/options/options.h"
#include "loadgen/workload/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TESTS_MAX = OPERATIONS_MAX, TEST_NAME = 32 };

enum { PREPARED_LIST = 600, PREPARED_MEMBERS = 20 };

struct test {
	char name[TEST_NAME];
	struct mix mix;
	enum preparation preparation;
};

struct suite {
	struct test tests[TESTS_MAX];
	uint32_t count;
};

/* Fills workload and suite. 0, or negative and a sentence. The caller frees the workload either way. */
int suite_build(const struct options *o, struct workload *w, struct suite *s, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif
