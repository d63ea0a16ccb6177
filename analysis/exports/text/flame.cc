// SPDX-License-Identifier: MIT
// Stacks for flame graphs: Brendan Gregg's folded lines, and speedscope's file format
// (https://www.speedscope.app/file-format-schema.json).
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "stacks.h"
#include "text.h"
#include "text_file.h"

namespace forktail::analysis::exports
{

namespace
{

class FlameExporter : public Exporter
{
public:
	explicit FlameExporter(const std::string &path) : file_(path) {}
	Wants wants() const override { return {.blamed = false, .stretches = true, .windows = false}; }
	bool Stretch(const Explanation &e, uint64_t from_ns, uint64_t to_ns) override
	{
		stacks_.Add(e, from_ns, to_ns);
		return true;
	}

protected:
	bool Done() { return file_.Close() || Fail(file_.Why()); }
	TextFile file_;
	Stacks stacks_;
};

class FoldedExporter : public FlameExporter
{
public:
	using FlameExporter::FlameExporter;
	// In microseconds, of all threads together.
	bool End(const Explanation &e) override
	{
		std::map<std::string, uint64_t> lines;
		for (const auto &[where, ns] : stacks_.Result(e))
			lines[where.second] += ns;
		for (const auto &[stack, ns] : lines)
			if (const uint64_t us = (ns + 500) / 1000)
				file_.Put(stack + " " + std::to_string(us) + "\n");
		return Done();
	}
};

class SpeedscopeExporter : public FlameExporter
{
public:
	using FlameExporter::FlameExporter;
	bool End(const Explanation &e) override
	{
		using Out = nlohmann::ordered_json;
		std::map<std::string, size_t> ids;
		Out frames = Out::array(), profiles = Out::array();
		uint32_t thread = UINT32_MAX;
		for (const auto &[where, ns] : stacks_.Result(e)) {
			if (where.first != thread) {
				thread = where.first;
				profiles.push_back({{"type", "sampled"},
						    {"name", ThreadName(e.run, e.run.threads[thread])},
						    {"unit", "nanoseconds"},
						    {"startValue", 0},
						    {"endValue", 0},
						    {"samples", Out::array()},
						    {"weights", Out::array()}});
			}
			Out stack = Out::array();
			for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
				end = where.second.find(';', at);
				const std::string name = where.second.substr(at, end - at);
				const auto [id, added] = ids.try_emplace(name, ids.size());
				if (added)
					frames.push_back({{"name", name}});
				stack.push_back(id->second);
			}
			Out &profile = profiles.back();
			profile["samples"].push_back(std::move(stack));
			profile["weights"].push_back(ns);
			profile["endValue"] = profile["endValue"].get<uint64_t>() + ns;
		}
		const Out all = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
				 {"exporter", "forktail " FORKTAIL_VERSION},
				 {"name", e.run.path},
				 {"shared", {{"frames", std::move(frames)}}},
				 {"profiles", std::move(profiles)}};
		file_.Put(all.dump(-1, ' ', false, Out::error_handler_t::replace) + "\n");
		return Done();
	}
};

} // namespace

std::unique_ptr<Exporter> MakeFolded(const std::string &path, std::string *)
{
	return std::make_unique<FoldedExporter>(path);
}

std::unique_ptr<Exporter> MakeSpeedscope(const std::string &path, std::string *)
{
	return std::make_unique<SpeedscopeExporter>(path);
}

} // namespace forktail::analysis::exports
