// SPDX-License-Identifier: MIT
// Makes the sentences of evidence.
#pragma once

#include <string>

#include "scene.h"

namespace forktail::analysis
{

// One sentence about a cause in a scene; "" if there is nothing to say.
std::string Sentence(const Scene &scene, const EpisodeCause &cause);
// The sentence about a cause of which nothing else is known, so that no smaller cause takes its place; "" for
// causes that other evidence is about (outages).
std::string ShareSentence(const EpisodeCause &cause);

} // namespace forktail::analysis
