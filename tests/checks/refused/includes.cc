// SPDX-License-Identifier: MIT
// A user of the run includes a header of a module above it: refused.
#include "analysis/run.h"
#include "analysis/timeline.h"
