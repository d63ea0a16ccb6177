// SPDX-License-Identifier: MIT
// The table has an entry for each small id, whether it is used or not.
#include "connection_ids.h"

namespace forktail::analysis
{

uint32_t ConnectionIds::Make(uint32_t id, Run *run)
{
	constexpr uint32_t table_limit = 1 << 20;
	auto [found, is_new] = all_.try_emplace(id, static_cast<uint32_t>(run->connections.size()));
	if (is_new)
		run->connections.emplace_back();
	if (first_ == kNoConnection)
		first_ = found->second;
	if (id < table_limit) {
		if (id >= table_.size())
			table_.resize(id + 1, kNoConnection);
		table_[id] = found->second;
	}
	return found->second;
}

} // namespace forktail::analysis
