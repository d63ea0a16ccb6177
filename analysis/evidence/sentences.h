// SPDX-License-Identifier: MIT
// Evidence in words.
#pragma once

#include <string>

#include "scene.h"

namespace forktail::analysis
{

// One sentence about a cause in a scene; "" if there is nothing to say.
std::string Sentence(const Scene &scene, const EpisodeCause &cause);

} // namespace forktail::analysis
