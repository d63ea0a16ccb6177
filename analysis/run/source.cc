// SPDX-License-Identifier: MIT
// Opens the recordings of a run. Manifests first, because they say whether the files' clocks are the same
// clock: CLOCK_MONOTONIC begins with the boot, so another boot id is another time.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "analysis/json_read.h"
#include "analysis/outside.h"
#include "analysis/units.h"
#include "source.h"
#include "survey.h"

namespace forktail
{

namespace
{

namespace fs = std::filesystem;

void ReadManifest(OpenFile *f, const std::string &text)
{
	f->about.manifest = text;
	f->manifest = ParseVisibleObject(text);
	const Json &m = f->manifest;
	f->about.program = Text(m, "program");
	f->about.version = Text(m, "version");
	f->about.host = Text(m, "host");
	f->about.kernel = Text(m, "kernel");
	f->about.boot_id = Text(m, "boot_id");
	f->about.clock_id = Text(m, "clock_id");
	if (f->about.clock_id.empty())
		f->about.clock_id = f->about.boot_id;
	f->about.argv = Texts(m, "argv");
	f->about.start_ns = Whole(m, "start_ns");
}

// Several load generators may talk to the same proxy. A request has a byte for the server behind it.
void UseBehind(OpenFile *f, Run *run)
{
	constexpr size_t most = UINT8_MAX;
	f->behind.push_back(0);
	const Json *list = Member(f->manifest, "behind");
	if (!list || !list->is_array())
		return;
	for (const Json &one : *list) {
		std::string address = Text(one, "address");
		auto known = std::find_if(run->behind.begin(), run->behind.end(),
					  [&](const Behind &b) { return b.address == address; });
		size_t index = static_cast<size_t>(known - run->behind.begin());
		if (known == run->behind.end() && index < most)
			run->behind.push_back({Text(one, "name"), address});
		f->behind.push_back(index < run->behind.size() ? static_cast<uint8_t>(index + 1) : 0);
	}
}

// Takes over what a manifest says about the run as a whole.
void UseManifest(OpenFile *f, Run *run)
{
	const Json &m = f->manifest;
	if (uint64_t min_span_ns = Whole(m, "min_span_ns"))
		run->min_span_ns = std::max(run->min_span_ns, min_span_ns);
	if (const Json *cpus = Member(m, "cpus"))
		f->about.cpus = run->cpus =
		    static_cast<uint32_t>(cpus->is_array() ? cpus->size() : Whole(m, "cpus"));
	if (const Json *targets = Member(m, "targets"); targets && targets->is_array())
		for (const Json &t : *targets)
			run->targets.push_back({f->space.Id(static_cast<uint32_t>(Whole(t, "pid"))),
						Text(t, "comm"), Text(t, "cmdline"), Texts(t, "listens"),
						Text(t, "cgroup"), Text(t, "cgroup_of"), Flag(t, "io_uring"),
						Texts(t, "addresses"), f->about.host});
	if (const Json *missing = Member(m, "missing"); missing && missing->is_array())
		for (const Json &item : *missing)
			run->missing.push_back({Text(item, "what"), Text(item, "why")});

	if (const Json *devices = Member(m, "block_devices"); devices && devices->is_object())
		for (const auto &[number, name] : devices->items()) {
			unsigned major = 0, minor = 0;
			if (std::sscanf(number.c_str(), "%u:%u", &major, &minor) == 2 && name.is_string())
				run->devices[DeviceOf(f->space, major << 20 | minor, run)] =
				    name.get<std::string>() +
				    (SeveralHosts(*run) ? OnHost(f->about.host) : "");
		}

	for (const auto &[number, name] : TextMap(m, "syscalls"))
		run->syscalls[std::atoi(number.c_str())] = name;

	f->first_program = static_cast<uint32_t>(run->programs.size());
	for (const std::string &program : Texts(m, "programs"))
		run->programs.push_back(program);

	f->first_connection = static_cast<uint32_t>(run->connections.size());
	const Json *infos = Member(m, "server_info");
	std::vector<std::string> servers = Texts(m, "servers");
	for (size_t i = 0; i < servers.size(); i++) {
		std::string host = SeveralHosts(*run) && IsLocalAddress(servers[i]) ? f->about.host : "";
		size_t known = 0;
		while (known < run->servers.size() &&
		       (run->servers[known] != servers[i] || run->server_hosts[known] != host))
			known++;
		f->servers.push_back(static_cast<uint32_t>(known));
		if (known != run->servers.size())
			continue;
		run->servers.push_back(servers[i]);
		run->server_hosts.push_back(host);
		run->server_pids.push_back(infos && infos->is_array() && i < infos->size()
					       ? static_cast<uint32_t>(Whole((*infos)[i], "pid"))
					       : 0);
	}
	UseBehind(f, run);
	for (const std::string &op : Texts(m, "ops")) {
		auto known = std::find(run->ops.begin(), run->ops.end(), op);
		f->ops.push_back(static_cast<uint8_t>(known - run->ops.begin()));
		if (known == run->ops.end())
			run->ops.push_back(op);
	}
	if (f->about.program == "forktail-load") {
		Load load;
		load.arrival = Text(m, "arrival");
		load.rate = Number(m, "rate");
		load.pipeline = static_cast<uint32_t>(std::clamp<uint64_t>(Whole(m, "pipeline"), 1, 1 << 20));
		load.first_connection = f->first_connection;
		load.behind = f->behind.size() > 1;
		load.file = static_cast<uint32_t>(run->files.size());
		run->loads.push_back(load);
	}
}

std::string Describe(const ft_damage &d)
{
	std::string text;
	if (d.gaps)
		text += FormatBytes(d.bytes_skipped) + " in " + Plural(d.gaps, "place", "places") +
			" could not be read";
	if (d.blocks_missing)
		text += (text.empty() ? "" : ", ") + Plural(d.blocks_missing, "block is", "blocks are") +
			" missing";
	if (d.no_trailer)
		text += std::string(text.empty() ? "" : ", ") +
			"it has no end: its writer was killed, is still writing, or the file was cut";
	return text;
}

// What a file's damage and its log's come to.
void WarnOfFile(const OpenFile &f, Run *run)
{
	const std::string &name = f.name;
	std::vector<std::string> warnings;
	if (std::string damage = Describe(f.about.damage); !damage.empty())
		warnings.push_back(name + ": " + damage);
	if (uint64_t slow_ns = Whole(f.manifest, "log_slow_ns"); slow_ns)
		warnings.push_back(name + ": it was written with --log slow:, so only requests of " +
				   std::to_string(slow_ns / 1000) +
				   " us or more and failed ones are in it, and the percentiles are theirs");
	if (f.malformed)
		warnings.push_back(name + ": " + Plural(f.malformed, "request", "requests") +
				   " of the log made no sense and were left out");
	if (f.lost)
		warnings.push_back(name + ": " + Plural(f.lost, "block", "blocks") +
				   " could not be read: the file is damaged, or changed meanwhile");
	run->warnings.insert(run->warnings.end(), warnings.begin(), warnings.end());
}

void ReadRunInfo(const std::string &path, Run *run)
{
	std::ifstream in(path, std::ios::binary);
	if (!in)
		return;
	std::ostringstream text;
	text << in.rdbuf();
	Json j = ParseVisible(text.str());
	if (!j.is_object()) {
		run->warnings.push_back("run.json is not a JSON object and was left out");
		return;
	}
	run->info.present = true;
	run->info.text = text.str();
	run->info.host = Text(j, "host");
	run->info.kernel = Text(j, "kernel");
	run->info.versions = TextMap(j, "versions");
	run->info.commands = Texts(j, "commands");
	run->info.redis_config = TextMap(j, "redis_config");
	run->info.rss_bytes = Whole(j, "rss_bytes");
	if (const Json *reports = Member(j, "server_reports"); reports && reports->is_array())
		for (const Json &report : *reports)
			run->reports.push_back(ReportOf(report));
}

// A recording, and the host whose directory it lies in, as it is called there; "" if in none.
struct Found {
	std::string path, host;
};

void FindIn(const fs::path &directory, const std::string &host, std::vector<Found> *files,
	    std::error_code *ec)
{
	fs::directory_iterator entries(directory, *ec);
	std::error_code ignored;
	for (; !*ec && entries != fs::directory_iterator(); entries.increment(*ec))
		if (entries->path().extension() == ".forktail" && !entries->is_directory(ignored))
			files->push_back({entries->path().string(), host});
}

// The recordings a path names, by name. False: *error says what is wrong with it.
bool FindRecordings(const std::string &path, std::vector<Found> *files, std::string *error)
{
	std::error_code ec;
	fs::file_status status = fs::status(path, ec);
	if (ec || !fs::exists(status)) {
		*error = "there is no run at " + path +
			 (ec && ec != std::errc::no_such_file_or_directory ? ": " + ec.message() : "");
		return false;
	}
	if (!fs::is_directory(status)) {
		files->push_back({path, ""});
		return true;
	}
	FindIn(path, "", files, &ec);
	fs::path hosts = fs::path(path) / "hosts";
	if (std::error_code none; !ec && fs::is_directory(hosts, none))
		for (fs::directory_iterator each(hosts, ec); !ec && each != fs::directory_iterator();
		     each.increment(ec))
			if (each->is_directory(none))
				FindIn(each->path(), each->path().filename().string(), files, &ec);
	if (ec) {
		*error = "can't list " + path + ": " + ec.message();
		return false;
	}
	std::sort(files->begin(), files->end(),
		  [](const Found &a, const Found &b) { return a.path < b.path; });
	if (files->empty()) {
		*error = path + " holds no recording (*.forktail): is it a run directory?";
		return false;
	}
	return true;
}

// Gives each kernel's numbers a space, and tells the run which hosts there are.
void NameHosts(std::vector<std::unique_ptr<OpenFile>> *files, Run *run)
{
	std::vector<std::string> boots;
	for (const auto &f : *files) {
		if (!f->about.overlaid)
			continue;
		// One that does not say is believed to be of the first.
		if (const std::string &id = f->about.boot_id; !id.empty()) {
			auto boot = std::find(boots.begin(), boots.end(), id);
			f->space.number = f->about.space = static_cast<uint32_t>(boot - boots.begin());
			if (boot == boots.end())
				boots.push_back(id);
		}
		if (f->about.host.empty())
			continue;
		if (std::find(run->hosts.begin(), run->hosts.end(), f->about.host) == run->hosts.end())
			run->hosts.push_back(f->about.host);
	}
	run->spaces = static_cast<uint32_t>(std::max<size_t>(boots.size(), 1));
	run->cpus_of_space = UINT16_MAX / run->spaces;
	for (const auto &f : *files)
		f->space = {f->space.number, f->space.number * run->cpus_of_space, run->cpus_of_space};
}

// Blocks of several logs in the order of time, as one log of all would have them; a file's stay in its order.
// So a window is of one time in all logs, and what servers did then is read once.
void OrderByTime(std::vector<LogBlock> *blocks)
{
	std::vector<std::pair<uint64_t, LogBlock>> timed;
	const OpenFile *file = nullptr;
	uint64_t last_ns = 0;
	for (const LogBlock &b : *blocks) {
		last_ns = b.file == file ? std::max(last_ns, b.place.start_ns) : b.place.start_ns;
		file = b.file;
		timed.push_back({last_ns, b});
	}
	std::stable_sort(timed.begin(), timed.end(),
			 [](const auto &a, const auto &b) { return a.first < b.first; });
	for (size_t i = 0; i < timed.size(); i++)
		(*blocks)[i] = timed[i].second;
}

// How far an explanation is when files have been opened.
constexpr double kOpened = 0.05;

std::vector<double> ShareOut(double from, double to, size_t count)
{
	std::vector<double> ends;
	for (size_t i = 1; i <= count; i++)
		ends.push_back(from + (to - from) * static_cast<double>(i) / static_cast<double>(count));
	return ends;
}

bool IsServers(uint32_t kind)
{
	switch (kind) {
	case FT_BLOCK_SPAN:
	case FT_BLOCK_TALLY:
	case FT_BLOCK_IO:
	case FT_BLOCK_TURN:
	case FT_BLOCK_WRITES:
	case FT_BLOCK_CPU_SAMPLE:
		return true;
	default:
		return false;
	}
}

} // namespace

std::unique_ptr<ft_reader, CloseReader> OpenAgain(const OpenFile &f)
{
	char message[512];
	ft_reader *reader = nullptr;
	ft_reader_open(&reader, f.path.c_str(), message, sizeof message);
	return std::unique_ptr<ft_reader, CloseReader>(reader);
}

bool RunSource::OpenFiles(const std::string &of, Run *run, std::string *error)
{
	std::vector<Found> paths;
	if (!FindRecordings(of, &paths, error))
		return false;
	for (const auto &[path, host] : paths) {
		auto f = std::make_unique<OpenFile>();
		f->path = path;
		f->about.path = Visible(path);
		f->name = (host.empty() ? "" : "hosts/" + Visible(host) + "/") +
			  Visible(fs::path(path).filename().string());
		char message[512];
		ft_reader *reader = nullptr;
		if (ft_reader_open(&reader, path.c_str(), message, sizeof message)) {
			*error = message; // the last one counts if none can be read
			if (paths.size() > 1)
				run->warnings.push_back(Visible(message));
			continue;
		}
		f->reader.reset(reader);
		// The manifest is the first block, unless the file's beginning is damaged.
		ft_block block;
		if (ft_reader_next(reader, &block) == 1 && block.kind == FT_BLOCK_MANIFEST)
			ReadManifest(f.get(), PayloadText(block));
		else
			run->warnings.push_back(
			    f->name + ": its manifest is lost, so what was recorded has to be guessed");
		if (!host.empty())
			f->about.host = Visible(host);
		files_.push_back(std::move(f));
	}
	return !files_.empty();
}

bool RunSource::ReadFile(OpenFile *f, bool scan, Run *run, std::string *error)
{
	ft_places places;
	if (progress_)
		progress_->Begin();
	auto at = [](void *progress, uint64_t done, uint64_t all) {
		if (progress && all)
			static_cast<Progress *>(progress)->At(done, all);
		return 0;
	};
	int rc = ft_reader_places(f->reader.get(), scan, &places, at, progress_);
	if (rc) {
		*error = "cannot read " + f->path + ": " + std::strerror(-rc);
		return false;
	}
	f->about.damage = places.damage;
	f->indexed = places.indexed;
	for (size_t i = 0; i < places.count; i++) {
		ft_place &place = places.all[i];
		ft_block block;
		place.start_ns = f->clock.Map(place.start_ns);
		place.end_ns = f->clock.Map(place.end_ns);
		has_log_ |= place.kind == FT_BLOCK_REQUEST;
		if (place.kind == FT_BLOCK_REQUEST)
			log_.push_back({f, place});
		else if (IsServers(place.kind))
			servers_.push_back({f, place});
		else if (ft_reader_read(f->reader.get(), &place, &block) == 1)
			ReadBlock(f, run, block);
		else
			f->lost++;
	}
	ft_places_free(&places);
	if (!run->loads.empty() && run->loads.back().file == run->files.size())
		run->loads.back().connection_count =
		    static_cast<uint32_t>(run->connections.size()) - f->first_connection;
	Json summary = ParseVisibleObject(f->about.summary);
	f->about.end_ns = f->clock.Map(Whole(summary, "end_ns"));
	f->about.end_reason = Text(summary, "reason");
	return true;
}

bool RunSource::Open(const std::string &path, bool scan, Run *run, std::string *error)
{
	run->path = Visible(path);
	run->details.emplace_back();
	run->stacks.emplace_back();
	if (!OpenFiles(path, run, error)) {
		*error = Visible(*error); // it names files
		return false;
	}
	DecideClocks(scan, run);
	NameHosts(&files_, run);
	if (progress_)
		progress_->Plan(ShareOut(0, kOpened, files_.size()));
	warnings_at_ = run->warnings.size();
	for (const auto &f : files_) {
		if (f->about.overlaid) {
			UseManifest(f.get(), run);
			if (!ReadFile(f.get(), scan, run, error)) {
				*error = Visible(*error);
				return false;
			}
		}
		run->files.push_back(f->about);
	}
	OrderByTime(&log_);
	std::error_code ec;
	if (fs::is_directory(path, ec))
		ReadRunInfo((fs::path(path) / "run.json").string(), run);
	return true;
}

void RunSource::LoadServers(Run *run)
{
	for (size_t i = 0; i < servers_.size();) {
		OpenFile *f = servers_[i].file;
		size_t first_span = run->spans.size(), first_cpu_sample = run->cpu_samples.size();
		for (; i < servers_.size() && servers_[i].file == f; i++) {
			ft_block block;
			if (ft_reader_read(f->reader.get(), &servers_[i].place, &block) == 1)
				ReadBlock(f, run, block);
			else
				f->lost++;
		}
		TakeNames(f, first_span, first_cpu_sample, run);
	}
	IndexRun(run);
}

bool RunSource::Misled() const
{
	return std::any_of(files_.begin(), files_.end(), [](const auto &f) { return f->indexed && f->lost; });
}

std::unique_ptr<LogReader> RunSource::OpenLog(size_t window, Run *run)
{
	return std::make_unique<LogReader>(log_, window, run, part_);
}

void RunSource::Finish(Run *run)
{
	std::vector<std::string> later(run->warnings.begin() + static_cast<ptrdiff_t>(warnings_at_),
				       run->warnings.end());
	run->warnings.resize(warnings_at_);
	for (const auto &f : files_)
		if (f->about.overlaid)
			WarnOfFile(*f, run);
	run->warnings.insert(run->warnings.end(), later.begin(), later.end());
}

bool LoadRun(const std::string &path, Run *run, std::string *error)
{
	RunSource source;
	if (!source.Open(path, true, run, error))
		return false;
	std::unique_ptr<LogReader> log = source.OpenLog(SIZE_MAX, run);
	log->Rewind();
	log->Next();
	source.LoadServers(run);
	source.Finish(run);
	return true;
}

} // namespace forktail
