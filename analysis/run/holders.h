// SPDX-License-Identifier: MIT
// Who held the CPU that a thread waited for. The recorder writes the turns of that CPU as the kernel gave
// them; what they mean for a wait is decided here, so that a recording can be read again by a better rule.
#pragma once

#include "analysis/run/run.h"

namespace forktail::analysis
{

// Orders run->turns and gives every wait they were recorded for what format.h has for it: arg[1], the longest
// holder and for how long; its name as the detail's, unless a file is named there; and FT_SPAN_KSOFTIRQD.
// Waits of old recordings, whose recorder decided all that, stay as they are.
void NameHolders(Run *run);

} // namespace forktail::analysis
