// SPDX-License-Identifier: MIT
// Text that is not sanitized, as a type that no output takes for text by accident. sanitize.h makes text of
// it.
#pragma once

#include <string>

namespace forktail::common
{

struct Raw {
	std::string bytes; // any
};

} // namespace forktail::common
