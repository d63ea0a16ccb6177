/* SPDX-License-Identifier: MIT */
/* What follows an error of a request, --on-error. Separate from load_plan.h, whose atomics C++ can't include,
 * because options need it too. */
#ifndef FORKTAIL_LOADGEN_ON_ERROR_H
#define FORKTAIL_LOADGEN_ON_ERROR_H

enum on_error { ON_ERROR_CONTINUE, ON_ERROR_RECONNECT, ON_ERROR_STOP };

#endif
