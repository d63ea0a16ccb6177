// SPDX-License-Identifier: MIT
// The look at all requests of a run, which finds those that are worth to be blamed exactly.
#pragma once

#include "context.h"
#include "percentile.h"
#include "whatif.h"

namespace forktail
{

struct FirstLook {
	LogHistogram calm; // lower bounds of what requests would be without any stall
	WithoutHistograms without;
};
FirstLook LookAtAll(const Context &context);

} // namespace forktail
