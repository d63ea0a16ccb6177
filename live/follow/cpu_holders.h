// SPDX-License-Identifier: MIT
// Who had a CPU while a server's thread was ready to run on it, from the turns that the recorder writes for
// such waits. The rule is analysis/run/holders.cc's; here of the last seconds only, because what is read is
// new.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "recording/format.h"

namespace forktail::live
{

class Held
{
public:
	void Add(const ft_cpu_slice &turn);
	// Forgets turns that ended before that.
	void Forget(uint64_t before_ns);

	struct Holder {
		std::string comm;
		uint64_t ns;
	};
	// Who had the CPU in [from_ns, to_ns), longest first, as far as it was told.
	std::vector<Holder> In(uint16_t cpu, uint64_t from_ns, uint64_t to_ns) const;

private:
	std::unordered_map<uint16_t, std::vector<ft_cpu_slice>> by_cpu_; // by start
};

// Whether soft interrupts in their own thread held up a wait of that length: Cause::SoftirqDeferred.
bool IsDeferred(const std::vector<Held::Holder> &holders, uint64_t wait_ns);

} // namespace forktail::live
