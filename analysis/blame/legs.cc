// SPDX-License-Identifier: MIT
// The sum of both directions does not depend on the clocks: an offset takes from one direction what it gives
// to the other. So the sum stays network time, and only the legs become unknown where the clocks are too
// uncertain.
#include "legs.h"

#include <algorithm>

namespace forktail::analysis
{

namespace
{

const RecordingFile *FileOf(const Run &run, uint32_t file)
{
	return file < run.files.size() ? &run.files[file] : nullptr;
}

const RecordingFile *LoadFile(const Run &run, uint32_t connection)
{
	for (const Load &load : run.loads)
		if (connection - load.first_connection < load.connection_count)
			return FileOf(run, load.file);
	return nullptr;
}

} // namespace

uint64_t ClocksBound(const Run &run, uint32_t connection, uint32_t server_thread)
{
	if (!run.clocks_bound_ns)
		return 0;
	const RecordingFile *load = LoadFile(run, connection),
			    *server = server_thread < run.threads.size()
					  ? FileOf(run, run.threads[server_thread].file)
					  : nullptr;
	if (!load || !server)
		return run.clocks_bound_ns;
	return load->clock_id == server->clock_id ? 0 : load->bound_ns + server->bound_ns;
}

Legs LegsOf(const Blame &blame, const SlowRequest &r)
{
	Legs legs;
	uint64_t network_ns = 0;
	for (size_t p = r.first_part; p < r.first_part + size_t{r.part_count}; p++) {
		const Part &part = blame.parts[p];
		uint64_t *leg = part.cause == Cause::ClientLate ? &legs.late_ns
				: part.cause == Cause::Network	? &network_ns
				: part.cause == Cause::Unknown	? &legs.unknown_ns
								: &legs.server_ns;
		*leg += part.total_ns();
	}
	legs.unread_ns = std::min(r.unread_ns, legs.late_ns);
	legs.late_ns -= legs.unread_ns;
	// Idle time with another cause (a stalled load generator, uncertain clocks) may belong to either
	// direction.
	const uint64_t ways_ns = r.way.request_ns + r.way.answer_ns,
		       elsewhere_ns = ways_ns - std::min(ways_ns, network_ns);
	legs.there_ns = r.way.request_ns - std::min(r.way.request_ns, elsewhere_ns);
	legs.back_ns = r.way.answer_ns - std::min(r.way.answer_ns, elsewhere_ns);
	legs.unknown_ns += network_ns - legs.there_ns - legs.back_ns;
	return legs;
}

} // namespace forktail::analysis
