// SPDX-License-Identifier: MIT
// Templates are filled in when a server is started, not when the scenario is read: the same server has
// another count, memory or place at each point.
#include "point_run.h"

#include <cstdlib>

#include "lab/scenario/words.h"

namespace forktail::lab
{

bool MakePlan(const ServerSpec &spec, const Values &values, ServerPlan *plan, std::string *error)
{
	std::string count, listen, memory, replicas;
	if (!Expand(spec.count, values, &count, error) || !Expand(spec.listen, values, &listen, error) ||
	    !Expand(spec.memory, values, &memory, error) ||
	    !Expand(spec.replicas, values, &replicas, error) ||
	    !Expand(spec.cpus, values, &plan->cpus, error))
		return false;
	plan->name = spec.name;
	plan->kind = spec.kind;
	plan->program = spec.program;
	plan->count = atoi(count.c_str());
	plan->tcp = listen == "tcp";
	plan->of = spec.of;
	plan->replica_of = spec.replica_of;
	plan->replicas = atoi(replicas.c_str());
	plan->cluster = spec.cluster;
	if (!memory.empty() && !ParseBytes(memory, &plan->memory_bytes)) {
		*error = "\"" + memory + "\" is not a size of memory, such as 256MiB";
		return false;
	}
	for (const std::string &word : spec.config) {
		plan->config.emplace_back();
		if (!Expand(word, values, &plan->config.back(), error))
			return false;
	}
	return true;
}

} // namespace forktail::lab
