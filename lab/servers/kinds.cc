// SPDX-License-Identifier: MIT
// The table of kinds. Each row is defined in the kind's own file.
#include "kinds.h"

#include <algorithm>
#include <iterator>

namespace forktail::lab
{

extern const ServerKind kRedis, kRedis8, kValkey, kKeydb, kMemcached, kNutcracker, kHaproxy, kSentinel;

namespace
{

const ServerKind *const kKinds[] = {&kRedis,	 &kRedis8,     &kValkey,  &kKeydb,
				    &kMemcached, &kNutcracker, &kHaproxy, &kSentinel};

} // namespace

const ServerKind *FindKind(const std::string &name)
{
	auto found = std::find_if(std::begin(kKinds), std::end(kKinds),
				  [&](const ServerKind *kind) { return kind->name == name; });
	return found == std::end(kKinds) ? nullptr : *found;
}

std::string KindNames()
{
	std::string names;
	for (const ServerKind *kind : kKinds)
		names += (names.empty()			 ? ""
			  : kind == *std::rbegin(kKinds) ? " and "
							 : ", ") +
			 std::string(kind->name);
	return names;
}

} // namespace forktail::lab
