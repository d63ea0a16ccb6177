// SPDX-License-Identifier: MIT
// For tests of forktail-load: running it, and reading its log as single requests.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "recording/recording.h"
#include "tests/support/json.h"
#include "tests/support/process.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"
#include "tests/support/text.h"

namespace forktail::test
{

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

inline Arguments load_command(const Arguments &arguments)
{
	Arguments all = {program("forktail-load")};
	all.insert(all.end(), arguments.begin(), arguments.end());
	return all;
}

inline ProcessOptions with_environment(const std::vector<std::pair<std::string, std::string>> &variables)
{
	ProcessOptions options;
	options.environment = variables;
	return options;
}

inline Result load(const Arguments &arguments, const ProcessOptions &options = {},
		   Seconds limit = Seconds(60))
{
	return run(load_command(arguments), limit, options);
}

// A request log as the library's reader returns it.
struct Log {
	std::string error;
	Json manifest, summary;
	std::vector<ft_request> requests;
	std::map<uint32_t, ft_connection> connections;			// the last record of each
	std::map<std::pair<uint32_t, uint64_t>, ft_connection> sockets; // likewise, by id and opening time
	std::vector<ft_clock> clocks;
	std::vector<ft_drop> drops;
	std::vector<Json> notes;
	ft_damage damage = {};

	bool whole() const
	{
		return error.empty() && !damage.no_trailer && !damage.bytes_skipped && !damage.blocks_missing;
	}
	size_t with_status(unsigned status) const
	{
		size_t n = 0;
		for (const ft_request &q : requests)
			n += q.status == status;
		return n;
	}
	size_t with_op(unsigned op) const
	{
		size_t n = 0;
		for (const ft_request &q : requests)
			n += q.op == op;
		return n;
	}
	// Due times of requests, sorted and relative to the first.
	std::vector<uint64_t> schedule() const
	{
		std::vector<uint64_t> all;
		for (const ft_request &q : requests)
			all.push_back(q.intended_ns);
		std::sort(all.begin(), all.end());
		const uint64_t first = all.empty() ? 0 : all.front();
		for (uint64_t &v : all)
			v -= first;
		return all;
	}
	std::vector<uint64_t> latencies() const
	{
		std::vector<uint64_t> all;
		for (const ft_request &q : requests)
			all.push_back(q.end_ns - q.intended_ns);
		std::sort(all.begin(), all.end());
		return all;
	}
};

inline Log read_log(const std::string &path)
{
	Log log;
	ft_reader *reader = nullptr;
	char error[512];
	if (ft_reader_open(&reader, path.c_str(), error, sizeof(error))) {
		log.error = error;
		return log;
	}
	std::vector<uint64_t> intended(FT_REQUEST_BLOCK), start(FT_REQUEST_BLOCK), end(FT_REQUEST_BLOCK),
	    arrival(FT_REQUEST_BLOCK);
	std::vector<uint32_t> connection(FT_REQUEST_BLOCK);
	std::vector<uint8_t> op(FT_REQUEST_BLOCK), status(FT_REQUEST_BLOCK), behind(FT_REQUEST_BLOCK);
	const ft_request_columns columns = {intended.data(), start.data(),  end.data(),	   connection.data(),
					    op.data(),	     status.data(), behind.data(), arrival.data(),
					    nullptr,	     nullptr,	    nullptr,	   nullptr};
	ft_block block;
	while (ft_reader_next(reader, &block)) {
		const std::string text(static_cast<const char *>(block.payload), block.bytes);
		if (block.kind == FT_BLOCK_MANIFEST)
			log.manifest = parse_json(text);
		if (block.kind == FT_BLOCK_SUMMARY)
			log.summary = parse_json(text);
		if (block.kind == FT_BLOCK_NOTE)
			log.notes.push_back(parse_json(text));
		for (uint32_t i = 0; i < block.count; i++) {
			ft_connection c;
			ft_clock clock;
			ft_drop drop;
			if (block.kind == FT_BLOCK_CONNECTION) {
				ft_block_record(&block, i, &c, sizeof(c));
				log.connections[c.id] = c;
				log.sockets[{c.id, c.opened_ns}] = c;
			} else if (block.kind == FT_BLOCK_CLOCK) {
				ft_block_record(&block, i, &clock, sizeof(clock));
				log.clocks.push_back(clock);
			} else if (block.kind == FT_BLOCK_DROP) {
				ft_block_record(&block, i, &drop, sizeof(drop));
				log.drops.push_back(drop);
			}
		}
		if (block.kind != FT_BLOCK_REQUEST)
			continue;
		const int n = ft_requests_decode(block.payload, block.bytes, block.count, &columns);
		if (n < 0)
			log.error = "a request block cannot be decoded";
		for (int i = 0; i < n; i++) {
			const auto k = static_cast<size_t>(i);
			log.requests.push_back({intended[k], start[k], end[k], connection[k], op[k],
						status[k], behind[k], arrival[k]});
		}
	}
	ft_reader_damage(reader, &log.damage);
	ft_reader_close(reader);
	return log;
}

// Nearest rank, of sorted values.
inline uint64_t percentile(const std::vector<uint64_t> &sorted, double p)
{
	const double n = static_cast<double>(sorted.size());
	auto rank = static_cast<size_t>(p * n / 100);
	if (static_cast<double>(rank) < p * n / 100 - 1e-9)
		rank++;
	return sorted.empty() ? 0 : sorted[std::max<size_t>(rank, 1) - 1];
}

inline size_t lines(const std::string &text)
{
	return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

} // namespace forktail::test
