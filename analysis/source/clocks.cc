// SPDX-License-Identifier: MIT
// Chooses the clock of a run's times, and maps times of other clocks to it.
#include <algorithm>

#include "common/format/sanitize.h"
#include "common/json/json_read.h"
#include "merge_segments.h"
#include "source.h"

namespace forktail::analysis
{

namespace
{

std::vector<ft_probe> ReadProbes(ft_reader *reader, bool scan)
{
	std::vector<ft_probe> probes;
	ft_places places;
	if (ft_reader_places(reader, scan, &places, nullptr, nullptr))
		return probes; // reported when the file is read
	for (size_t i = 0; i < places.count; i++) {
		ft_block block;
		if (places.all[i].kind != FT_BLOCK_PROBE ||
		    ft_reader_read(reader, &places.all[i], &block) != 1)
			continue;
		for (uint32_t k = 0; k < block.count; k++) {
			probes.emplace_back();
			ft_block_record(&block, k, &probes.back(), sizeof(ft_probe));
		}
	}
	ft_places_free(&places);
	return probes;
}

std::vector<ClockPair> ReadPairs(const std::vector<std::unique_ptr<OpenFile>> &files, bool scan)
{
	std::vector<ClockPair> pairs;
	for (const auto &f : files)
		if (const common::Json *peer = common::Member(f->manifest, "peer");
		    f->about.program == kClockProgram && peer && peer->is_object())
			pairs.push_back({f->about.clock_id, common::Text(*peer, "clock_id"),
					 ReadProbes(f->reader.get(), scan)});
	return pairs;
}

// The first recording by that program.
const OpenFile *FirstBy(const std::vector<std::unique_ptr<OpenFile>> &files, const std::string &program)
{
	for (const auto &f : files)
		if (!f->about.clock_id.empty() && f->about.program == program)
			return f.get();
	return nullptr;
}

const ClockPath *Find(const std::vector<ClockPath> &paths, const std::string &clock)
{
	auto found =
	    std::find_if(paths.begin(), paths.end(), [&](const ClockPath &p) { return p.clock == clock; });
	return found == paths.end() ? nullptr : &*found;
}

void IgnoreFile(OpenFile *f, const OpenFile &reference, bool compared, Run *run)
{
	const std::string &name = f->name, &other = reference.name;
	f->about.overlaid = false;
	if (f->about.program == kClockProgram)
		return;
	// Once per ring.
	if (f->segment && std::exchange(f->merge->left_out, true))
		return;
	if (f->about.boot_id != reference.about.boot_id && !compared)
		run->warnings.push_back(
		    name + " and " + other +
		    " come from different boots (boot ids differ), so their times cannot be compared; " +
		    name + " is ignored");
	else
		run->warnings.push_back(
		    name + " and " + other +
		    " use different clocks, and no round trips between them were recorded "
		    "(forktail clock); " +
		    name + " is ignored");
}

// Records the uncertainty of a file with another clock. The end of a killed recording is not known yet.
void NoteClock(OpenFile *f, const ClockPath &path, Run *run)
{
	const uint64_t start_ns = f->about.start_ns,
		       end_ns = common::Whole(common::ParseVisibleObject(f->about.summary), "end_ns");
	f->clock = path.map;
	f->about.bound_ns = path.map.Bound(start_ns, std::max(start_ns, end_ns));
	for (const ClockMap::Knot &k : path.map.knots())
		f->about.bound_ns = std::max(f->about.bound_ns, k.bound_ns);
	f->about.start_ns = path.map.Map(start_ns);
	if (f->about.program == kClockProgram)
		return;
	auto known = std::find_if(run->host_clocks.begin(), run->host_clocks.end(),
				  [&](const HostClock &c) { return c.clock_id == path.clock; });
	if (known == run->host_clocks.end()) {
		HostClock clock = {f->about.host, path.clock, 0, path.map.DriftPpm(), 0, path.samples};
		clock.offset_ns = static_cast<int64_t>(path.map.Map(start_ns) - start_ns);
		known = run->host_clocks.insert(run->host_clocks.end(), clock);
	}
	known->bound_ns = std::max(known->bound_ns, f->about.bound_ns);
}

} // namespace

// The run's clock is that of the server's recording, which has most of the related times, if it can be
// compared with the load generator's. Otherwise it is that of the load generator, because without requests
// there is less to explain.
void RunSource::DecideClocks(bool scan, Run *run)
{
	const OpenFile *reference = FirstBy(files_, "forktail-load"),
		       *server = FirstBy(files_, "forktail-record");
	for (const auto &f : files_)
		if (!reference && !f->about.clock_id.empty() && f->about.program != kClockProgram)
			reference = f.get();
	if (!reference)
		return;
	std::vector<ClockPair> pairs = ReadPairs(files_, scan);
	const bool compared = !pairs.empty();
	if (compared && server) {
		std::vector<ClockPath> paths = ConnectClocks(server->about.clock_id, pairs);
		if (Find(paths, reference->about.clock_id))
			reference = server;
	}
	const std::vector<ClockPath> paths = ConnectClocks(reference->about.clock_id, std::move(pairs));
	for (const auto &file : files_) {
		OpenFile *f = file.get();
		const ClockPath *path = Find(paths, f->about.clock_id);
		if (f->about.clock_id.empty())
			continue;
		if (!path)
			IgnoreFile(f, *reference, compared, run);
		else if (!path->map.same())
			NoteClock(f, *path, run);
	}
	uint64_t loads_ns = 0, servers_ns = 0;
	for (const auto &f : files_)
		if (f->about.program == "forktail-load")
			loads_ns = std::max(loads_ns, f->about.bound_ns);
		else if (f->about.program == "forktail-record")
			servers_ns = std::max(servers_ns, f->about.bound_ns);
	run->clocks_bound_ns = loads_ns + servers_ns;
	if (!run->host_clocks.empty())
		run->host_clocks.insert(
		    run->host_clocks.begin(),
		    HostClock{reference->about.host, reference->about.clock_id, 0, 0, 0, 0});
}

} // namespace forktail::analysis
