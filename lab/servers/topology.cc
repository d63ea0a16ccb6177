// SPDX-License-Identifier: MIT
// Names are looked up at each call, because instances come and go and there are only a few.
#include "topology.h"

namespace forktail::lab
{

std::vector<Instance *> InstancesOf(const Topology &topology, const std::string &name)
{
	std::vector<Instance *> found;
	for (const auto &instance : topology.instances)
		if (instance->server == name || instance->name == name)
			found.push_back(instance.get());
	return found;
}

} // namespace forktail::lab
