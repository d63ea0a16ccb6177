// SPDX-License-Identifier: MIT
// See record_words.h. Checks everything that does not depend on the host, for --check. The recorder checks
// that targets exist.
#include "record_words.h"

#include "common/text/parse.h"
#include "common/text/ring_limits.h"

namespace forktail::live::guard
{
namespace
{

using common::Table;

constexpr const char *kTargets[] = {"name", "port", "unix", "pid", "container", "cgroup", "unit"};

void AddTargets(common::Table *table, std::vector<std::string> *words)
{
	for (const char *key : kTargets) {
		std::vector<std::string> values;
		table->Words(key, &values);
		for (const std::string &value : values) {
			uint64_t port = 0;
			if (value.empty())
				table->Refuse("`" + std::string(key) + "` is empty", key);
			if (std::string(key) == "port" && !parse_count(value.c_str(), 1, 65535, &port))
				table->Refuse(
				    "`port` must be a number from 1 to 65535, not \"" + value + "\"", key);
			words->push_back("--" + std::string(key));
			words->push_back(value);
		}
	}
}

// Adds --no-KEY if the flag is false.
void AddNo(common::Table *table, const char *key, std::vector<std::string> *words)
{
	bool wanted = true;
	table->Flag(key, &wanted);
	if (!wanted)
		words->push_back("--no-" + std::string(key));
}

void AddKeep(common::Table *table, std::vector<std::string> *words)
{
	std::string keep = "10m,1GB";
	ring_limits limits;
	table->Text("keep", &keep);
	if (!ring_limits_parse(keep.c_str(), &limits))
		table->Refuse("`keep` must be " RING_LIMITS_WANTED ", not \"" + keep + "\"", "keep");
	words->insert(words->end(), {"--keep", keep});
}

void AddExact(common::Table *table, std::vector<std::string> *words)
{
	std::vector<std::string> way;
	table->Words("exact", &way);
	if (way.empty())
		return;
	if (way.size() > 1 || (way[0] != "fentry" && way[0] != "tracepoints"))
		table->Refuse("`exact` must be \"fentry\" or \"tracepoints\"", "exact");
	words->push_back("--exact=" + way[0]);
}

void AddRequests(common::Table *table, std::vector<std::string> *words)
{
	std::string sample;
	uint32_t one_in;
	table->Text("requests", &sample);
	if (!sample.empty() && !parse_sample(sample.c_str(), &one_in))
		table->Refuse("`requests` must be " SAMPLE_WANTED ", not \"" + sample + "\"", "requests");
	if (!sample.empty())
		words->push_back("--requests=" + sample);
	bool hash_clients = false;
	table->Flag("hash-clients", &hash_clients);
	if (hash_clients && sample.empty())
		table->Refuse("`hash-clients` needs `requests`", "hash-clients");
	if (hash_clients)
		words->push_back("--hash-clients");
}

} // namespace

void ReadRecord(common::Table *table, std::vector<std::string> *words, std::string *directory)
{
	AddTargets(table, words);
	table->Text("directory", directory);
	if (table->Has("directory") && (directory->empty() || (*directory)[0] != '/'))
		table->Refuse("`directory` must be an absolute path, not \"" + *directory + "\"",
			      "directory");
	if (table->Has("directory"))
		words->insert(words->end(), {"-o", *directory});
	if (table->Has("keep") || table->Has("directory"))
		AddKeep(table, words);
	for (const char *key : {"user", "min-span"})
		if (table->Has(key)) {
			std::string value;
			table->Text(key, &value);
			words->insert(words->end(), {"--" + std::string(key), value});
		}
	bool light = false;
	table->Flag("light", &light);
	if (light)
		words->push_back("--light");
	AddExact(table, words);
	AddRequests(table, words);
	if (light && table->Has("exact"))
		table->Refuse("`light` and `exact` are mutually exclusive", "exact");
	for (const char *key : {"samples", "softirqs", "client"})
		AddNo(table, key, words);
}

} // namespace forktail::live::guard
