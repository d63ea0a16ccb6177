// SPDX-License-Identifier: MIT
// Converts [record] of the configuration to options of forktail-record, which does not read TOML.
#pragma once

#include <string>
#include <vector>

#include "common/toml/table.h"

namespace forktail::live::guard
{

// Adds targets first, then options. *directory is the directory of the ring.
void ReadRecord(common::Table *table, std::vector<std::string> *words, std::string *directory);

} // namespace forktail::live::guard
