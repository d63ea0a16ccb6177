// SPDX-License-Identifier: MIT
// [record] of the configuration as words for forktail-record, which is C and reads no TOML.
#pragma once

#include <string>
#include <vector>

#include "common/toml/table.h"

namespace forktail::live::guard
{

// Targets first, then options. *directory is where the ring is to be.
void ReadRecord(common::Table *table, std::vector<std::string> *words, std::string *directory);

} // namespace forktail::live::guard
