// SPDX-License-Identifier: MIT
// Reading a recording into vectors. See recorded.h.
#include "tests/support/recorded.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace forktail::test
{

namespace
{

template <class Record> void append(const ft_block &block, std::vector<Record> &into)
{
	for (uint32_t i = 0; i < block.count; i++) {
		Record r;
		ft_block_record(&block, i, &r, sizeof r);
		into.push_back(r);
	}
}

std::string text(const ft_block &block)
{
	return std::string(static_cast<const char *>(block.payload), block.bytes);
}

uint32_t id_of(const std::string &json)
{
	unsigned id = 0;
	const size_t at = json.find("\"id\":");
	if (at != std::string::npos)
		std::sscanf(json.c_str() + at + 5, "%u", &id);
	return id;
}

bool in_account(const ft_span &s)
{
	return s.owner < FT_OWNER_LIMIT;
}

} // namespace

Recorded read_recording(const std::string &path)
{
	Recorded r;
	char error[256] = "";
	ft_reader *reader = nullptr;
	if (ft_reader_open(&reader, path.c_str(), error, sizeof error) != 0) {
		r.error = error;
		return r;
	}
	ft_block block;
	while (ft_reader_next(reader, &block) == 1) {
		switch (block.kind) {
		case FT_BLOCK_MANIFEST:
			r.manifest = text(block);
			break;
		case FT_BLOCK_SUMMARY:
			r.summary = text(block);
			break;
		case FT_BLOCK_COST:
			r.cost = text(block);
			break;
		case FT_BLOCK_NOTE:
			r.notes.push_back(text(block));
			break;
		case FT_BLOCK_DETAIL:
			r.details[id_of(text(block))] = text(block);
			break;
		case FT_BLOCK_SERIES:
			r.series[id_of(text(block))] = text(block);
			break;
		case FT_BLOCK_THREAD: {
			std::vector<ft_thread> threads;
			append(block, threads);
			for (const ft_thread &t : threads)
				r.threads[{t.tid, t.start_ns}] = t;
			break;
		}
		case FT_BLOCK_SPAN:
			append(block, r.spans);
			break;
		case FT_BLOCK_TALLY:
			append(block, r.tallies);
			break;
		case FT_BLOCK_STACK:
			r.stacks[id_of(text(block))] = text(block);
			break;
		case FT_BLOCK_CPU_SAMPLE:
			append(block, r.cpu_samples);
			break;
		case FT_BLOCK_COUNTERS:
			append(block, r.counters);
			break;
		case FT_BLOCK_CPU_SLICE:
			append(block, r.slices);
			break;
		case FT_BLOCK_LOOP:
			append(block, r.loops);
			break;
		case FT_BLOCK_SOCKET:
			append(block, r.sockets);
			break;
		case FT_BLOCK_WRITES:
			append(block, r.writes);
			break;
		case FT_BLOCK_IO:
			append(block, r.io);
			break;
		case FT_BLOCK_DROP:
			append(block, r.drops);
			break;
		case FT_BLOCK_SAMPLE:
			append(block, r.samples);
			break;
		default:
			break;
		}
	}
	ft_reader_damage(reader, &r.damage);
	ft_reader_close(reader);
	return r;
}

uint64_t json_number(const std::string &json, const std::string &key)
{
	const size_t at = json.find("\"" + key + "\":");
	return at == std::string::npos ? 0 : std::strtoull(json.c_str() + at + key.size() + 3, nullptr, 10);
}

uint64_t Recorded::dropped() const
{
	uint64_t sum = 0;
	for (const ft_drop &d : drops)
		sum += d.source == FT_DROP_MISSED ? 0 : d.count;
	return sum;
}

uint64_t Recorded::missed() const
{
	uint64_t sum = 0;
	for (const ft_drop &d : drops)
		sum += d.source == FT_DROP_MISSED ? d.count : 0;
	return sum;
}

uint64_t Recorded::unseen_switches() const
{
	return json_number(cost, "switches_unseen");
}

uint64_t Recorded::owned_ns(uint32_t tid, ft_owner owner) const
{
	uint64_t sum = 0;
	for (const ft_span &s : spans)
		if (s.tid == tid && s.owner == owner)
			sum += s.on_cpu_ns + s.runnable_ns + s.blocked_ns;
	for (const ft_tally &t : tallies)
		if (t.tid == tid && t.owner == static_cast<uint32_t>(owner))
			sum += t.total_ns;
	return sum;
}

uint64_t Recorded::count(uint32_t tid, ft_owner owner) const
{
	uint64_t sum = 0;
	for (const ft_span &s : spans)
		sum += s.tid == tid && s.owner == owner && !(s.off_cpu && s.depth);
	for (const ft_tally &t : tallies)
		if (t.tid == tid && t.owner == static_cast<uint32_t>(owner))
			sum += t.count;
	return sum;
}

uint64_t Recorded::accounted_ns(uint32_t tid) const
{
	uint64_t sum = 0;
	for (const ft_span &s : spans)
		if (s.tid == tid && in_account(s))
			sum += s.on_cpu_ns + s.runnable_ns + s.blocked_ns;
	for (const ft_tally &t : tallies)
		if (t.tid == tid)
			sum += t.total_ns;
	return sum;
}

const ft_span *Recorded::longest(const std::function<bool(const ft_span &)> &wanted) const
{
	const ft_span *best = nullptr;
	for (const ft_span &s : spans)
		if (wanted(s) && (!best || s.duration_ns > best->duration_ns))
			best = &s;
	return best;
}

uint64_t Recorded::held_ns(const ft_span &wait, uint32_t tid, const std::string &comm) const
{
	const uint64_t from = wait.start_ns + wait.blocked_ns, until = wait.start_ns + wait.duration_ns;
	std::map<uint64_t, uint64_t>
	    ends; // of the task's CPU slices in it, by start: the same one may be there twice
	for (const ft_cpu_slice &t : slices)
		if (t.tid == tid && t.cpu + 1 == wait.queue_cpu && t.start_ns < until && t.end_ns > from &&
		    (comm.empty() || comm == std::string(t.comm.raw, strnlen(t.comm.raw, sizeof t.comm.raw))))
			ends[t.start_ns] = std::max(ends[t.start_ns], t.end_ns);
	uint64_t sum = 0;
	for (const auto &[start, end] : ends)
		sum += std::min(end, until) - std::max(start, from);
	return sum;
}

std::string Recorded::detail(const ft_span &span) const
{
	const auto found = details.find(span.detail);
	return found == details.end() ? "" : found->second;
}

const ft_thread *Recorded::role(const std::string &role) const
{
	for (const auto &[key, t] : threads)
		if (role == std::string(t.role.raw, strnlen(t.role.raw, sizeof t.role.raw)))
			return &t;
	return nullptr;
}

} // namespace forktail::test
