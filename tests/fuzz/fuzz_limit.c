/* SPDX-License-Identifier: MIT */
/* The grammar of limits under libFuzzer: every text is a limit or gives a sentence. Every limit has a message
 * for every measured value, and either holds or fails, in both readings. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

static void demand(int good)
{
	if (!good)
		abort();
}

static void judge(const struct limit *limit, double value)
{
	char text[600] = "";

	demand(limit_broken(limit, LIMIT_FAILS_IF, value) != limit_broken(limit, LIMIT_HAS_TO_HOLD, value) ||
	       isnan(value));
	limit_sentence(limit, LIMIT_FAILS_IF, value, text, sizeof(text));
	demand(strlen(text) > 0);
	limit_sentence(limit, LIMIT_HAS_TO_HOLD, value, text, sizeof(text));
	demand(strstr(text, limit->figure_name) != NULL);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const double values[] = {0, 1, 0.3, 2e6, 12345.678, DBL_MAX, NAN};
	char *text = malloc(size + 1), error[600] = "";
	struct limit limit;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = 0;
	if (limit_parse(text, &limit, error, sizeof(error))) {
		demand(limit.unit && limit.scale > 0 && limit.value >= 0 && isfinite(limit.value));
		demand(limit.figure != LIMIT_PERCENTILE || (limit.percentile > 0 && limit.percentile <= 100));
		for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
			struct limit by = limit;

			if (limit.comparison == LIMIT_NO_WORSE)
				by = limit_against(&limit, values[i]);
			judge(&by, values[i]);
			judge(&by, by.value);
		}
	} else {
		demand(*error != 0);
	}
	free(text);
	return 0;
}
