/* SPDX-License-Identifier: MIT */
/* The tests of a run and their commands: redis-benchmark's tests by name, a mix of SET and GET, the user's
 * own commands, YCSB's workloads. The options determine the workload (all operations) and the tests, which
 * run one after the other, each with a mix of some operations. */
#ifndef FORKTAIL_LOADGEN_RUN_SUITE_H
#define FORKTAIL_LOADGEN_RUN_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/options.h"
#include "loadgen/workload.h"

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

/* Fills workload and suite. Returns 0, or negative and a sentence. The caller frees the workload in both
 * cases. */
int suite_build(const struct options *o, struct workload *w, struct suite *s, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif
