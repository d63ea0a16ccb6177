// SPDX-License-Identifier: MIT
// Opens the recordings of a run. Manifests are read first, because they show whether the files' clocks are
// the same: CLOCK_MONOTONIC starts with the boot, so another boot id is another clock.
#include "analysis/source.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <vector>

#include "analysis/run.h"
#include "common/files.h"
#include "common/format.h"
#include "common/json.h"
#include "log_reader.h"
#include "read_blocks.h"
#include "survey.h"

namespace forktail::analysis
{

// Finds the files of a run.

// A recording, and the name of the host directory that contains it; "" if none.
struct Found {
	std::string path, host;
	bool segment = false; // it is a ring segment
};

// The recordings of a path, sorted by name. Of a ring only the segments that may overlap the requested part:
// *whole is then the extent of the ring, or of the request log next to it. False: *error is one sentence.
bool FindRecordings(const std::string &path, const PartAsked &asked, std::vector<Found> *files,
		    std::optional<TimeSpan> *whole, Run *run, std::string *error);

namespace
{

namespace fs = std::filesystem;

std::string Describe(const ft_damage &d)
{
	std::string text;
	if (d.gaps)
		text += common::FormatBytes(d.bytes_skipped) + " in " +
			common::Plural(d.gaps, "place", "places") + " could not be read";
	if (d.bomb)
		text += ", because it unpacks to far more than any recording does";
	if (d.blocks_missing)
		text += (text.empty() ? "" : ", ") +
			common::Plural(d.blocks_missing, "block is", "blocks are") + " missing";
	if (d.no_trailer)
		text += std::string(text.empty() ? "" : ", ") +
			"the file has no end: its writer was killed or "
			"is still writing, or the file was truncated";
	return text;
}

// Adds warnings for a file's damage and its log's.
void WarnOfFile(const OpenFile &f, Run *run)
{
	if (f.segment)
		return; // see WarnOfRing
	const std::string &name = f.name;
	std::vector<std::string> warnings;
	if (std::string damage = Describe(f.about.damage); !damage.empty())
		warnings.push_back(name + ": " + damage);
	if (uint64_t slow_ns = common::Whole(f.manifest, "log_slow_ns"); slow_ns)
		warnings.push_back(
		    name + ": written with --log slow:, so it holds only failed requests and requests of " +
		    std::to_string(slow_ns / 1000) + " us or more; the percentiles are of those requests");
	if (f.malformed)
		warnings.push_back(name + ": " + common::Plural(f.malformed, "request", "requests") +
				   " of the log had impossible values and were ignored");
	if (f.lost)
		warnings.push_back(
		    name + ": " + common::Plural(f.lost, "block", "blocks") +
		    " could not be read: the file is damaged or was changed while it was read");
	run->warnings.insert(run->warnings.end(), warnings.begin(), warnings.end());
}

// Adds one set of warnings for all segments of a ring, which may be thousands.
void WarnOfRing(const SegmentMerge &ring, Run *run)
{
	if (ring.damaged) {
		std::string text = ring.damaged_name;
		if (ring.damaged > 1)
			text +=
			    " and " + common::Plural(ring.damaged - 1, "further segment", "further segments");
		run->warnings.push_back(text + ": " + Describe(ring.damage));
	}
	uint64_t down_ns = 0, last_ns = 0;
	for (const auto &[began_ns, session] : ring.sessions) {
		down_ns += last_ns && session.first_ns > last_ns ? session.first_ns - last_ns : 0;
		last_ns = std::max(last_ns, session.last_ns);
	}
	if (size_t times = ring.sessions.size() - 1)
		run->warnings.push_back("the recorder stopped and resumed in its ring" +
					(times > 1 ? " " + std::to_string(times) + " times" : std::string()) +
					": " + common::FormatDuration(down_ns) + " between are not recorded");
	if (ring.lost)
		run->warnings.push_back(
		    common::Plural(ring.lost, "block", "blocks") +
		    " of segments could not be read: they are damaged or were changed while they were read");
	if (ring.gone)
		run->warnings.push_back(
		    common::Plural(ring.gone, "segment of the ring was", "segments of the ring were") +
		    " evicted while it was read; their data may be missing");
}

void ReadRunInfo(const std::string &path, Run *run)
{
	constexpr size_t most = 64 << 20;
	std::string text;
	if (!common::ReadRegular(path, most, &text)) {
		if (errno != ENOENT)
			run->warnings.push_back(std::string("run.json is ignored: ") +
						(errno == EINVAL  ? "it is not a regular file"
						 : errno == EFBIG ? "it is larger than 64 MB"
								  : strerror(errno)));
		return;
	}
	common::Json j = common::ParseVisible({text});
	if (!j.is_object()) {
		run->warnings.push_back("run.json is not a JSON object and is ignored");
		return;
	}
	run->info.present = true;
	run->info.text = text;
	run->info.host = common::Text(j, "host");
	run->info.kernel = common::Text(j, "kernel");
	run->info.versions = common::TextMap(j, "versions");
	run->info.commands = common::Texts(j, "commands");
	run->info.redis_config.merge(common::TextMap(j, "redis_config"));
	run->info.rss_bytes = common::Whole(j, "rss_bytes");
	if (const common::Json *reports = common::Member(j, "server_reports"); reports && reports->is_array())
		for (const common::Json &report : *reports)
			run->reports.push_back(ReportOf(report));
}

// Gives each kernel an id space, and lists the run's hosts.
void NameHosts(std::vector<std::unique_ptr<OpenFile>> *files, Run *run)
{
	std::vector<std::string> boots;
	for (const auto &f : *files) {
		if (!f->about.overlaid)
			continue;
		// A recording without a boot id is assumed to be of the first.
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

// Sorts blocks of several logs by time, as one log would have them, keeping each file's order. So a window
// covers the same time in all logs, and what servers did then is read once.
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

// The progress when all files are open.
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
	case FT_BLOCK_CPU_SLICE:
	case FT_BLOCK_WRITES:
	case FT_BLOCK_CPU_SAMPLE:
	case FT_BLOCK_COUNTERS:
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
	const std::string held = "/proc/self/fd/" + std::to_string(f.hold.fd);
	ft_reader_open(&reader, f.hold.fd >= 0 ? held.c_str() : f.path.c_str(), message, sizeof message);
	return std::unique_ptr<ft_reader, CloseReader>(reader);
}

namespace
{

// The number of segments that can be held open, so that they stay readable after eviction. Some descriptors
// are reserved.
size_t FreeHolds()
{
	constexpr rlim_t others = 128;
	struct rlimit files = {};
	return getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > others
		   ? static_cast<size_t>(std::min<rlim_t>(files.rlim_cur - others, 1 << 20))
		   : 0;
}

// Assigns a segment to the process of its recorder.
void JoinSession(OpenFile *f)
{
	uint64_t began_ns = common::Whole(f->manifest, "ring_start_ns");
	if (!began_ns || began_ns > f->about.start_ns)
		began_ns = f->about.start_ns;
	auto [session, is_new] = f->merge->sessions.try_emplace(began_ns);
	f->session = &session->second;
	f->connections = &f->session->connections;
	if (!is_new)
		return;
	f->session->began_ns = began_ns;
	f->session->first_ns = f->about.start_ns;
}

} // namespace

// Opens a file and reads its manifest. False: *error has the reason; "": a segment that was evicted, or has
// no data yet.
bool RunSource::OpenFileOf(const Found &found, bool hold, OpenFile *f, Run *run, std::string *error)
{
	f->path = found.path;
	f->segment = found.segment;
	f->about.path = common::Visible(found.path);
	f->name = (found.host.empty() ? "" : "hosts/" + common::Visible(found.host) + "/") +
		  common::Visible(fs::path(found.path).filename().string());
	if (f->segment) {
		f->hold.fd = open(found.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (f->hold.fd < 0 && errno == ENOENT)
			return false;
		// Checked before reading: if its writer has ended, the file is complete.
		f->written = f->hold.fd >= 0 && BeingWritten(f->hold.fd);
	}
	char message[512];
	ft_reader *reader = nullptr;
	if (int rc = ft_reader_open(&reader, found.path.c_str(), message, sizeof message)) {
		if (!f->segment || (rc != -ENOENT && !f->written))
			*error = message;
		return false;
	}
	f->reader.reset(reader);
	// The manifest is the first block, unless the file's beginning is damaged.
	ft_block block;
	if (ft_reader_next(reader, &block) == 1 && block.kind == FT_BLOCK_MANIFEST)
		ReadManifest(f, PayloadText(block));
	else
		run->warnings.push_back(f->name +
					": the manifest is missing, so servers and settings are unknown");
	if (!found.host.empty())
		f->about.host = common::Visible(found.host);
	if (!hold)
		f->hold.Close();
	return true;
}

bool RunSource::OpenFiles(const std::string &of, const PartAsked &asked, Run *run, std::string *error)
{
	std::vector<Found> found;
	if (!FindRecordings(of, asked, &found, &whole_, run, error))
		return false;
	std::map<std::string, std::shared_ptr<SegmentMerge>> rings; // by host
	size_t holds = FreeHolds();
	*error = "all segments of " + of + " were evicted while it was read";
	for (const Found &one : found) {
		auto f = std::make_unique<OpenFile>();
		std::string why;
		std::shared_ptr<SegmentMerge> alone, &merge = one.segment ? rings[one.host] : alone;
		f->merge = merge = merge ? merge : std::make_shared<SegmentMerge>();
		if (!OpenFileOf(one, holds > 0, f.get(), run, &why)) {
			if (why.empty())
				continue;
			*error = why; // the last error counts if none can be read
			if (found.size() > 1)
				run->warnings.push_back(common::Visible(why));
			continue;
		}
		JoinSession(f.get());
		f->clients = &clients_;
		holds -= f->hold.fd >= 0;
		files_.push_back(std::move(f));
		ReaderOf(files_.back().get());
	}
	return !files_.empty();
}

// The reader of a file. Readers of segments take memory, so only the last few used are kept.
ft_reader *RunSource::ReaderOf(OpenFile *f)
{
	constexpr size_t most = 16;
	if (!f->segment)
		return f->reader.get();
	if (!recent_.empty() && recent_.back() == f)
		return f->reader.get();
	std::erase(recent_, f);
	if (recent_.size() == most) {
		recent_.front()->reader.reset();
		recent_.erase(recent_.begin());
	}
	if (!f->reader)
		f->reader = OpenAgain(*f);
	recent_.push_back(f);
	f->gone |= !f->reader;
	return f->reader.get();
}

bool RunSource::Get(OpenFile *f, const ft_place &place, ft_block *block)
{
	ft_reader *reader = ReaderOf(f);
	return reader && ft_reader_read(reader, &place, block) == 1;
}

bool RunSource::ReadFile(OpenFile *f, bool scan, Run *run, std::string *error)
{
	ft_places places;
	Run *of_log = f->of_log;
	if (progress_)
		progress_->Begin();
	auto at = [](void *progress, uint64_t done, uint64_t all) {
		if (progress && all)
			static_cast<Progress *>(progress)->At(done, all);
		return 0;
	};
	ft_reader *reader = ReaderOf(f);
	if (!reader)
		return true; // it was evicted
	int rc = ft_reader_places(reader, scan, &places, at, progress_);
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
		has_log_ |= place.kind == FT_BLOCK_REQUEST && !f->joined;
		f->session->last_ns = std::max(f->session->last_ns, place.end_ns);
		if (place.kind == FT_BLOCK_REQUEST)
			(f->joined ? kernel_log_ : log_).push_back({f, place});
		else if (IsServers(place.kind))
			servers_.push_back({f, place});
		else if (Get(f, place, &block))
			ReadBlock(f, place.kind == FT_BLOCK_CONNECTION ? of_log : run, block);
		else
			f->lost++;
	}
	ft_places_free(&places);
	if (f->session->load < of_log->loads.size()) {
		auto &load = of_log->loads[f->session->load];
		load.connection_count =
		    static_cast<uint32_t>(of_log->connections.size()) - load.first_connection;
	}
	common::Json summary = common::ParseVisibleObject(f->about.summary);
	f->about.end_ns = f->clock.Map(common::Whole(summary, "end_ns"));
	f->about.end_reason = common::Text(summary, "reason");
	return true;
}

// A load generator's log says when requests were due, sent and read. With a kernel log of the same run its
// requests would be counted twice, so that one only completes them.
void RunSource::ChooseLog(Run *run)
{
	auto is_load = [](const auto &f) { return f->about.overlaid && f->about.program == "forktail-load"; };
	if (std::none_of(files_.begin(), files_.end(), is_load))
		return;
	for (const auto &f : files_)
		run->kernel_log_joined |= f->joined = f->about.overlaid && IsKernelLog(*f);
	kernel_run_.hosts = run->hosts;
	kernel_run_.spaces = run->spaces;
}

// Adds a file to the run's list. All segments of a ring are one entry.
void RunSource::List(const OpenFile &f, Run *run)
{
	struct stat st = {};
	if (stat(f.path.c_str(), &st) == 0)
		run->shared_mode &= st.st_mode;
	SegmentMerge *ring = f.merge.get();
	const ft_damage &d = f.about.damage;
	if (f.segment && (d.gaps || d.blocks_missing || (d.no_trailer && !f.written))) {
		if (!ring->damaged++)
			ring->damaged_name = f.name;
		ring->damage.bytes_skipped += d.bytes_skipped;
		ring->damage.gaps += d.gaps;
		ring->damage.blocks_missing += d.blocks_missing;
		ring->damage.bomb |= d.bomb;
		ring->damage.no_trailer |= d.no_trailer && !f.written;
	}
	if (ring->file >= run->files.size()) {
		ring->file = run->files.size();
		run->files.push_back(f.about);
		return;
	}
	RecordingFile about = f.about; // of the newest segment
	about.start_ns = run->files[ring->file].start_ns;
	about.path = run->files[ring->file].path;
	about.damage = ring->damage;
	run->files[ring->file] = about;
}

bool RunSource::Open(const std::string &path, bool scan, Run *run, std::string *error, const PartAsked &asked)
{
	run->path = common::Visible(path);
	run->details.emplace_back();
	run->stacks.emplace_back();
	if (!OpenFiles(path, asked, run, error)) {
		*error = common::Visible(*error); // sanitized: it has file names
		return false;
	}
	DecideClocks(scan, run);
	NameHosts(&files_, run);
	ChooseLog(run);
	if (progress_)
		progress_->Plan(ShareOut(0, kOpened, files_.size()));
	warnings_at_ = run->warnings.size();
	for (const auto &f : files_) {
		if (f->about.overlaid) {
			f->of_log = f->joined ? &kernel_run_ : run;
			UseManifest(f.get(), run);
			if (!ReadFile(f.get(), scan, run, error)) {
				*error = common::Visible(*error);
				return false;
			}
		}
		List(*f, run);
	}
	OrderByTime(&log_);
	OrderByTime(&kernel_log_);
	same_sockets_ = PairSockets(kernel_run_, *run, run->clocks_bound_ns);
	TakeReaders(kernel_run_, same_sockets_, run);
	passed_on_ = FindPassedOn(run->targets, run->kernel_log_joined ? &kernel_run_ : run);
	std::error_code ec;
	if (fs::is_directory(path, ec))
		ReadRunInfo((fs::path(path) / "run.json").string(), run);
	return true;
}

void RunSource::LoadServers(Run *run)
{
	for (size_t i = 0; i < servers_.size();) {
		OpenFile *f = servers_[i].file;
		size_t first_span = run->spans.size(), first_tally = run->tallies.size(),
		       first_cpu_sample = run->cpu_samples.size();
		for (; i < servers_.size() && servers_[i].file == f; i++) {
			ft_block block;
			if (Get(f, servers_[i].place, &block))
				ReadBlock(f, run, block);
			else
				f->lost++;
		}
		TakeNames(f, first_span, first_cpu_sample, run);
		NoteEnds(f, *run, first_span, first_tally);
	}
	for (const ft_span &open : StillOpen())
		run->spans.push_back(open);
	IndexRun(run);
}

// Notes which open spans ended, by the records from these indexes on.
void RunSource::NoteEnds(OpenFile *f, const Run &run, size_t first_span, size_t first_tally)
{
	OpenSpans &open = f->session->open;
	for (size_t i = first_span; !open.empty() && i < run.spans.size(); i++)
		open.Note(run.spans[i]);
	for (size_t i = first_tally; !open.empty() && i < run.tallies.size(); i++)
		open.Note(run.tallies[i]);
}

std::vector<ft_span> RunSource::StillOpen() const
{
	std::vector<ft_span> all;
	std::set<const Session *> seen;
	for (const auto &f : files_)
		if (seen.insert(f->session).second) {
			const std::vector<ft_span> some = f->session->open.StillOpen();
			all.insert(all.end(), some.begin(), some.end());
		}
	return all;
}

bool RunSource::Misled() const
{
	return std::any_of(files_.begin(), files_.end(),
			   [](const auto &f) { return f->indexed && f->lost && !f->gone; });
}

std::unique_ptr<LogReader> RunSource::OpenLog(size_t window, Run *run)
{
	return OpenJoined(log_, window, part_, run);
}

// A request is at its server after it was due, maybe after the end of the part.
std::unique_ptr<LogReader> RunSource::OpenJoined(const std::vector<LogBlock> &blocks, size_t window,
						 const TimeSpan &part, Run *run)
{
	auto log =
	    std::make_unique<LogReader>(blocks, window, run, part, ConnectionsRead{&passed_on_, false});
	const TimeSpan later = {part.since_ns, UINT64_MAX};
	std::vector<LogBlock> kernel = kernel_log_;
	std::erase_if(kernel, [&](const LogBlock &b) { return b.place.end_ns < part.since_ns; });
	std::unique_ptr<WindowJoin> join;
	if (!passed_on_.empty())
		join = std::make_unique<PassedOnJoin>(run->kernel_log_joined ? kernel : blocks, window, later,
						      passed_on_, run->targets,
						      run->kernel_log_joined ? kernel_run_ : *run);
	if (!kernel.empty())
		join = std::make_unique<KernelJoin>(std::move(kernel), window, later, same_sockets_,
						    std::move(join), &kernel_run_, run);
	log->Join(std::move(join));
	return log;
}

void RunSource::Finish(Run *run)
{
	std::vector<std::string> later(run->warnings.begin() + static_cast<ptrdiff_t>(warnings_at_),
				       run->warnings.end());
	run->warnings.resize(warnings_at_);
	std::set<SegmentMerge *> rings;
	for (const auto &f : files_) {
		if (!f->about.overlaid)
			continue;
		WarnOfFile(*f, run);
		if (!f->segment)
			continue;
		rings.insert(f->merge.get());
		f->merge->gone += f->gone;
		f->merge->lost += f->gone ? 0 : f->lost;
	}
	for (const SegmentMerge *ring : rings)
		WarnOfRing(*ring, run);
	run->warnings.insert(run->warnings.end(), later.begin(), later.end());
	FindMarks(run);
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

// A ring may cover days when only five minutes are requested. The needed segments are found by opening only a
// few.

namespace
{

namespace fs = std::filesystem;

// What is needed around a part of a run, and late answers.
constexpr uint64_t kSegmentsBeforeNs = 11'000'000'000, kSegmentsAfterNs = 2'000'000'000,
		   kAnswersNs = 30'000'000'000;
constexpr size_t kFew = 4; // this many segments are always read

void FindIn(const fs::path &directory, const std::string &host, std::vector<Found> *files,
	    std::error_code *ec)
{
	fs::directory_iterator entries(directory, *ec);
	std::error_code ignored;
	for (; !*ec && entries != fs::directory_iterator(); entries.increment(*ec)) {
		const std::string path = entries->path().string();
		if (entries->path().extension() == ".forktail" && !entries->is_directory(ignored))
			files->push_back({path, host, IsSegment(path)});
	}
}

bool FindAll(const std::string &path, std::vector<Found> *files, std::string *error)
{
	std::error_code ec;
	fs::file_status status = fs::status(path, ec);
	if (ec || !fs::exists(status)) {
		*error = "no run at " + path +
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
		*error = "cannot list " + path + ": " + ec.message();
		return false;
	}
	if (files->empty()) {
		*error = path + " holds no recording (*.forktail). Name a run directory";
		return false;
	}
	return true;
}

// The extent of the requests in a ring's segments; until_ns 0: it has no requests.
TimeSpan RequestsOf(const Ring &ring)
{
	TimeSpan all = {UINT64_MAX, 0};
	uint64_t start_ns = 0, end_ns = 0;
	for (size_t i = 0; i < ring.size() && all.since_ns == UINT64_MAX; i++)
		if (TimeOfBlocks(ring.path(i), FT_BLOCK_REQUEST, &start_ns, &end_ns, nullptr))
			all.since_ns = start_ns;
	for (size_t i = ring.size(); i-- > 0 && all.until_ns == 0 && all.since_ns != UINT64_MAX;)
		if (TimeOfBlocks(ring.path(i), FT_BLOCK_REQUEST, &start_ns, &end_ns, nullptr))
			all.until_ns = end_ns;
	return all;
}

// The extent to which a part refers: that of the request logs next to a ring, else of the requests in it,
// else of the ring. False: unknown before everything is read.
bool FindWhole(Ring *ring, const std::vector<Found> &others, Run *run, TimeSpan *whole, bool *has_log)
{
	const SegmentHead &first = ring->Head(0);
	const std::string &last = ring->path(ring->size() - 1);
	uint64_t start_ns = 0, end_ns = 0;
	if (!first.known || !TimeOfBlocks(ring->path(0), 0, &start_ns, &end_ns, &run->clocks) ||
	    !TimeOfBlocks(last, 0, &start_ns, &end_ns, &run->clocks))
		return false;
	*whole = {first.start_ns, end_ns};
	TimeSpan logs = {UINT64_MAX, 0};
	for (const Found &other : others) {
		if (ReadHead(other.path).boot_id != first.boot_id)
			return false;
		if (TimeOfBlocks(other.path, FT_BLOCK_REQUEST, &start_ns, &end_ns, nullptr))
			logs = {std::min(logs.since_ns, start_ns), std::max(logs.until_ns, end_ns)};
	}
	if (!logs.until_ns && first.has_requests)
		logs = RequestsOf(*ring);
	*has_log = logs.until_ns != 0;
	if (*has_log)
		*whole = logs;
	return true;
}

// Keeps only the segments of a ring that a part may need.
void KeepPart(const PartAsked &asked, const std::string &path, const std::vector<Found> &others, Ring *ring,
	      std::optional<TimeSpan> *whole)
{
	Run run; // for the recorded time of day
	run.path = common::Visible(path);
	TimeSpan all, part;
	bool has_log = false;
	std::string error; // ignored here: the error is reported when the run is read
	if (!FindWhole(ring, others, &run, &all, &has_log) ||
	    FindPart(asked, run, all.since_ns, all.until_ns, &part, &error))
		return;
	const uint64_t after_ns = has_log ? kAnswersNs : kSegmentsAfterNs;
	*whole = all;
	ring->Leave(
	    ring->Reaching(part.since_ns - std::min(part.since_ns, kSegmentsBeforeNs),
			   part.until_ns > UINT64_MAX - after_ns ? UINT64_MAX : part.until_ns + after_ns));
}

} // namespace

bool FindRecordings(const std::string &path, const PartAsked &asked, std::vector<Found> *files,
		    std::optional<TimeSpan> *whole, Run *run, std::string *error)
{
	std::vector<Found> all;
	if (!FindAll(path, &all, error))
		return false;
	std::map<std::string, std::vector<std::string>> segments; // by host
	for (const Found &f : all)
		if (f.segment)
			segments[f.host].push_back(f.path);
	std::erase_if(all, [](const Found &f) { return f.segment; });
	std::sort(all.begin(), all.end(), [](const Found &a, const Found &b) { return a.path < b.path; });
	*files = all;
	for (const auto &[host, paths] : segments) {
		Ring ring(paths);
		if (size_t older = ring.LeaveNewestBoot())
			run->warnings.push_back(
			    common::Plural(older, "segment is", "segments are") +
			    " of an earlier boot and ignored: the clock starts at the boot");
		if (asked.any() && segments.size() == 1 && ring.size() > kFew)
			KeepPart(asked, path, all, &ring, whole);
		for (size_t i = 0; i < ring.size(); i++)
			files->push_back({ring.path(i), host, true});
	}
	return true;
}

// Merges the manifests of several recordings into the run's lists. A ring's segments repeat theirs.

namespace
{

// Several load generators may use the same proxy. A request has one byte for the server behind it.
void UseBehind(OpenFile *f, Run *run)
{
	f->behind.push_back(0);
	const common::Json *list = common::Member(f->manifest, "behind");
	if (!list || !list->is_array())
		return;
	const std::string host = IsKernelLog(*f) && SeveralHosts(*run) ? f->about.host : "";
	for (const common::Json &one : *list)
		f->behind.push_back(
		    AddBehind({common::Text(one, "name"), common::Text(one, "address"), host}, run));
}

// A ring's later segments have more facts about a target.
void AddTarget(const Target &target, bool segment, Run *run)
{
	for (Target &t : run->targets)
		if (segment && t.pid == target.pid && t.cmdline == target.cmdline && t.host == target.host) {
			t = target;
			return;
		}
	run->targets.push_back(target);
}

void UseOps(OpenFile *f, Run *run)
{
	const std::vector<std::string> ops = common::Texts(f->manifest, "ops"),
				       commands = common::Texts(f->manifest, "commands");
	for (size_t i = 0; i < ops.size(); i++) {
		auto known = std::find(run->ops.begin(), run->ops.end(), ops[i]);
		f->ops.push_back(static_cast<uint8_t>(known - run->ops.begin()));
		if (known != run->ops.end())
			continue;
		run->ops.push_back(ops[i]);
		run->op_commands.push_back(commands.size() == ops.size() ? commands[i] : ops[i]);
	}
}

// A kernel log is one load per process of the recorder, however many segments it wrote.
void UseKernelLog(OpenFile *f, Run *run)
{
	if (f->session->load < run->loads.size())
		return;
	Load load;
	load.kernel = true;
	load.arrival = "closed";
	load.sample = SampleOf(*common::Member(f->manifest, "requests"));
	load.slices = common::Flag(*common::Member(f->manifest, "requests"), "slices");
	load.first_connection = static_cast<uint32_t>(run->connections.size());
	load.file = static_cast<uint32_t>(std::min(f->merge->file, run->files.size()));
	f->session->load = static_cast<uint32_t>(run->loads.size());
	run->loads.push_back(load);
}

// What describes its requests.
void UseLog(OpenFile *f, Run *run)
{
	const common::Json &m = f->manifest;
	UseServers(m, f, run);
	UseBehind(f, run);
	UseOps(f, run);
	if (IsKernelLog(*f))
		return UseKernelLog(f, run);
	if (f->about.program != "forktail-load")
		return;
	Load load;
	load.arrival = common::Text(m, "arrival");
	load.rate = common::Number(m, "rate");
	load.pipeline = static_cast<uint32_t>(std::clamp<uint64_t>(common::Whole(m, "pipeline"), 1, 1 << 20));
	load.first_connection = static_cast<uint32_t>(run->connections.size());
	load.behind = f->behind.size() > 1;
	load.only_slow = common::Whole(m, "log_slow_ns") != 0;
	load.file = static_cast<uint32_t>(run->files.size());
	f->session->load = static_cast<uint32_t>(run->loads.size());
	run->loads.push_back(load);
}

} // namespace

uint32_t SampleOf(const common::Json &j)
{
	return static_cast<uint32_t>(std::clamp<uint64_t>(common::Whole(j, "sample"), 1, 1 << 20));
}

void AddMissing(const common::Json &j, Run *run)
{
	const Missing missing = {common::Text(j, "what"), common::Text(j, "why")};
	auto same = [&](const Missing &m) { return m.what == missing.what && m.why == missing.why; };
	if (std::none_of(run->missing.begin(), run->missing.end(), same))
		run->missing.push_back(missing);
}

void ReadManifest(OpenFile *f, const common::Raw &text)
{
	f->about.manifest = text;
	f->manifest = common::ParseVisibleObject(text);
	const common::Json &m = f->manifest;
	f->about.program = common::Text(m, "program");
	f->about.version = common::Text(m, "version");
	f->about.host = common::Text(m, "host");
	f->about.kernel = common::Text(m, "kernel");
	f->about.boot_id = common::Text(m, "boot_id");
	f->about.clock_id = common::Text(m, "clock_id");
	if (f->about.clock_id.empty())
		f->about.clock_id = f->about.boot_id;
	f->about.argv = common::Texts(m, "argv");
	f->about.start_ns = common::Whole(m, "start_ns");
}

void UseManifest(OpenFile *f, Run *run)
{
	const common::Json &m = f->manifest;
	if (uint64_t min_span_ns = common::Whole(m, "min_span_ns"))
		run->min_span_ns = std::max(run->min_span_ns, min_span_ns);
	run->metrics_ns = std::max(run->metrics_ns, common::Whole(m, "metrics_ns"));
	if (const common::Json *cpus = common::Member(m, "cpus"))
		f->about.cpus = run->cpus =
		    static_cast<uint32_t>(cpus->is_array() ? cpus->size() : common::Whole(m, "cpus"));
	if (const common::Json *targets = common::Member(m, "targets"); targets && targets->is_array())
		for (const common::Json &t : *targets)
			AddTarget({f->space.Id(static_cast<uint32_t>(common::Whole(t, "pid"))),
				   common::Text(t, "comm"), common::Text(t, "cmdline"),
				   common::Texts(t, "listens"), common::Text(t, "cgroup"),
				   common::Text(t, "cgroup_of"), common::Flag(t, "io_uring"),
				   common::Texts(t, "addresses"), f->about.host, common::Texts(t, "peers"),
				   common::Texts(t, "local_ends")},
				  f->segment, run);
	if (const common::Json *missing = common::Member(m, "missing"); missing && missing->is_array())
		for (const common::Json &item : *missing)
			AddMissing(item, run);

	if (const common::Json *devices = common::Member(m, "block_devices"); devices && devices->is_object())
		for (const auto &[number, name] : devices->items()) {
			unsigned major = 0, minor = 0;
			if (std::sscanf(number.c_str(), "%u:%u", &major, &minor) == 2 && name.is_string())
				run->devices[DeviceOf(f->space, major << 20 | minor, run)] =
				    name.get<std::string>() +
				    (SeveralHosts(*run) ? OnHost(f->about.host) : "");
		}

	for (const auto &[number, name] : common::TextMap(m, "syscalls"))
		run->syscalls[std::atoi(number.c_str())] = name;

	if (std::vector<std::string> programs = common::Texts(m, "programs");
	    f->merge->programs != programs) {
		f->merge->first_program = static_cast<uint32_t>(run->programs.size());
		run->programs.insert(run->programs.end(), programs.begin(), programs.end());
		f->merge->programs = std::move(programs);
	}
	f->first_program = f->merge->first_program;

	UseLog(f, f->of_log);
}

// Restricts a run to a part: blocks without anything of the part are dropped before they are read.

namespace
{

// What threads did: what the part's first requests may have queued for, and what crosses its end.
constexpr uint64_t kBeforeNs = 10'000'000'000, kAfterNs = 1'000'000'000;

} // namespace

TimeSpan RunSource::Span(Run *run) const
{
	if (whole_)
		return *whole_;
	TimeSpan span = {UINT64_MAX, 0};
	for (const LogBlock &b : log_) {
		span.since_ns = std::min(span.since_ns, b.place.end_ns ? b.place.start_ns : UINT64_MAX);
		span.until_ns = std::max(span.until_ns, b.place.end_ns);
	}
	if (has_log_ && span.until_ns)
		return span;
	FindExtent(run);
	span = {run->start_ns, run->end_ns};
	for (const ServerBlock &b : servers_)
		span.until_ns = std::max(span.until_ns, b.place.end_ns);
	return span;
}

void RunSource::Restrict(const TimeSpan &part)
{
	part_ = part;
	auto outside = [](const auto &block, uint64_t from_ns, uint64_t to_ns) {
		return block.place.end_ns && (block.place.end_ns < from_ns || block.place.start_ns >= to_ns);
	};
	const uint64_t before_ns = BeforePart();
	for (const LogBlock &b : log_)
		if (b.place.end_ns && !outside(b, before_ns, part.since_ns))
			log_before_.push_back(b);
	std::erase_if(log_, [&](const LogBlock &b) { return outside(b, part.since_ns, part.until_ns); });
	uint64_t last_ns = part.until_ns;
	for (const LogBlock &b : log_)
		last_ns = std::max(last_ns, b.place.end_ns);
	std::erase_if(servers_, [&](const ServerBlock &b) {
		return outside(b, before_ns,
			       last_ns > UINT64_MAX - kAfterNs ? UINT64_MAX : last_ns + kAfterNs);
	});
}

std::unique_ptr<LogReader> RunSource::OpenLogBefore(size_t window, Run *run)
{
	if (log_before_.empty())
		return nullptr;
	return OpenJoined(log_before_, window, TimeSpan{BeforePart(), part_.since_ns}, run);
}

uint64_t RunSource::BeforePart() const
{
	return part_.since_ns - std::min(part_.since_ns, kBeforeNs);
}

void RunSource::Bound(uint64_t from_ns, uint64_t to_ns)
{
	for (Stretch &s : stretches_)
		s = {std::max(s.from_ns, from_ns), std::min(s.to_ns, to_ns)};
	std::erase_if(stretches_, [](const Stretch &s) { return s.from_ns >= s.to_ns; });
}

} // namespace forktail::analysis
