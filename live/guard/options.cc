// SPDX-License-Identifier: MIT
// Merges the guard's command line and the configuration file: --on adds to the file's triggers, the other
// options override the file.
#include <sys/stat.h>

#include "live/guard/control_client/control_client.h"
#include "options.h"

namespace forktail::live::guard
{

bool ReadOptions(const GuardOptions &options, Config *config, std::string *error)
{
	*config = {};
	if (!options.config.empty() && !ReadConfig(options.config, config, error))
		return false;
	for (const std::string &text : options.rules) {
		Rule rule;
		if (!ParseRule(text, &rule, error))
			return false;
		Trigger trigger = PlainTrigger(rule);
		// Two rules of the same name: iteration, iteration-2.
		for (int n = 2; FindTrigger(config->triggers, trigger.name); n++)
			trigger.name = rule.name + "-" + std::to_string(n);
		config->triggers.push_back(trigger);
	}
	if (!options.metrics.empty())
		config->metrics = options.metrics;
	if (!options.metrics_textfile.empty())
		config->metrics_textfile = options.metrics_textfile;
	if (options.control)
		config->control = options.path + "/" + kControlName;
	return true;
}

} // namespace forktail::live::guard
