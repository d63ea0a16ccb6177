// SPDX-License-Identifier: MIT
// forktail watch.
#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <langinfo.h>
#include <string>
#include <sys/ioctl.h>
#include <thread>
#include <unistd.h>

#include "command.h"
#include "common/format.h"
#include "common/json.h"
#include "live/follow.h"
#include "live/snapshot.h"
#include "live/watch.h"
#include "schemas.h"

namespace forktail::cli
{

namespace
{

using live::watch::kSecondNs;
constexpr uint64_t kMinuteNs = 60 * kSecondNs;
constexpr uint64_t kOnceWaitNs = 8 * kSecondNs; // for a recorder that has just begun

struct WatchWords {
	std::string path, snapshots = ".";
	bool once = false, json = false, ascii = false;
	double interval_s = 1;
};

uint64_t Now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return static_cast<uint64_t>(t.tv_sec) * kSecondNs + static_cast<uint64_t>(t.tv_nsec);
}

bool Utf8()
{
	setlocale(LC_CTYPE, "");
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

analysis::Style WatchStyle(const WatchWords &asked)
{
	const char *no_colour = getenv("NO_COLOR");
	analysis::Style style;
	style.unicode = Utf8() && !asked.ascii;
	style.colour = !(no_colour && *no_colour);
	return style;
}

// Reads until the accounts of one second are complete. False: *error is one sentence.
bool ReadOnce(const std::string &path, live::Follower *follower, live::watch::History *history,
	      std::string *error)
{
	const uint64_t began_ns = Now(CLOCK_MONOTONIC);
	live::Batch batch;
	for (;;) {
		if (!follower->Poll(&batch, error))
			return false;
		history->Take(batch, *follower);
		if (batch.more)
			continue;
		if (history->last_ns())
			break;
		if (Now(CLOCK_MONOTONIC) - began_ns > kOnceWaitNs) {
			*error = "nothing is recorded in " + path +
				 " yet. Start forktail record --keep 10m -o " + path + " --pid PID";
			return false;
		}
		std::this_thread::sleep_for(std::chrono::milliseconds(200));
	}
	// Iterations are reported one Poll() after they are read.
	if (!follower->Poll(&batch, error))
		return false;
	history->Take(batch, *follower);
	history->TakeMarks(path, *follower);
	return true;
}

int Once(const WatchWords &asked)
{
	live::Options options;
	const uint64_t now_ns = Now(CLOCK_MONOTONIC);
	options.from_ns = std::max<uint64_t>(now_ns - std::min(now_ns, kMinuteNs), 1);
	options.request_seconds = true;
	live::Follower follower(asked.path, options);
	live::watch::History history;
	std::string error;
	if (!ReadOnce(asked.path, &follower, &history, &error)) {
		fprintf(stderr, "forktail: %s\n", common::Visible(error).c_str());
		return kCant;
	}
	analysis::Style style = WatchStyle(asked);
	style.colour = false;
	std::vector<live::watch::Frame> frames;
	const uint64_t realtime_ns = Now(CLOCK_REALTIME);
	const uint64_t newest_ns = follower.RealtimeNs(follower.newest_ns());
	for (size_t i = 0; i < history.servers().size(); i++) {
		live::watch::Frame frame = live::watch::MakeFrame(history, {i, false, 0, true}, 1);
		frame.path = common::Visible(asked.path);
		frame.age_ns = realtime_ns - std::min(realtime_ns, frame.second.realtime_ns + kSecondNs);
		frame.health.quiet_ns = realtime_ns - std::min(realtime_ns, newest_ns);
		frames.push_back(std::move(frame));
	}
	std::string text;
	if (asked.json)
		text = live::watch::OnceJson(frames);
	else
		for (const live::watch::Frame &frame : frames)
			for (const live::watch::Line &line : live::watch::LayOutOnce(frame, Columns(), style))
				text += live::watch::TextOf(line) + "\n";
	if (fwrite(text.data(), 1, text.size(), stdout) != text.size() || fflush(stdout)) {
		fprintf(stderr, "forktail: cannot write the figures: %s\n", strerror(errno));
		return kCant;
	}
	return kDone;
}

// Takes a snapshot. Returns one sentence for the last line of the screen.
std::string TakeOne(const WatchWords &asked, uint64_t from_ns, uint64_t to_ns, uint64_t at_ns)
{
	const time_t seconds = static_cast<time_t>(at_ns / kSecondNs);
	struct tm t;
	gmtime_r(&seconds, &t);
	live::snapshot::SnapshotRequest snapshot;
	snapshot.ring = asked.path;
	snapshot.from_ns = from_ns;
	snapshot.to_ns = to_ns;
	snapshot.why = "requested in forktail watch";
	snapshot.out =
	    asked.snapshots + analysis::Format("/forktail-%04d%02d%02d-%02d%02d%02d", t.tm_year + 1900,
					       t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
	live::snapshot::SnapshotResult taken;
	std::string error;
	if (live::snapshot::TakeSnapshot(snapshot, &taken, &error) != live::snapshot::SnapshotWhy::Done)
		return "no snapshot: " + error;
	return "snapshot " + snapshot.out + ": " + common::FormatDuration(taken.to_ns - taken.from_ns) +
	       ", " + common::FormatBytes(taken.bytes);
}

int Screen(const WatchWords &asked)
{
	std::error_code ec;
	live::watch::ScreenOptions options;
	options.path = asked.path;
	options.program = std::filesystem::read_symlink("/proc/self/exe", ec);
	options.interval_s = asked.interval_s;
	options.utf8 = Utf8();
	options.style = WatchStyle(asked);
	options.snapshot = [&asked](uint64_t from_ns, uint64_t to_ns, uint64_t at_ns) {
		return TakeOne(asked, from_ns, to_ns, at_ns);
	};
	std::string error;
	if (live::watch::RunScreen(options, &error))
		return kDone;
	fprintf(stderr, "forktail: %s\n", common::Visible(error).c_str());
	return kCant;
}

} // namespace

int WatchCommand(int argc, char **argv)
{
	CLI::App app("Show live what recorded servers do (docs/reference/watch-and-metrics.md).",
		     "forktail watch");
	app.footer("  forktail watch /run/forktail\n  forktail watch /run/forktail --once --json\n");
	WatchWords asked;
	app.add_option("DIR", asked.path,
		       "Directory that forktail record --keep writes, or a recording that is being written")
	    ->required();
	app.add_flag("--once", asked.once, "Print the figures of the last second and exit");
	app.add_flag("--json", asked.json, "With --once: print JSON");
	AddJsonSchema(&app, ft_watch_schema);
	app.add_option("--interval", asked.interval_s, "Update the screen every N seconds (default: 1)")
	    ->type_name("SECONDS")
	    ->check(CLI::Range(0.1, 3600.0));
	app.add_option("--snapshots", asked.snapshots,
		       "Save snapshots (key s) in DIR (default: the current directory)")
	    ->type_name("DIR");
	app.add_flag("--ascii", asked.ascii, "Use only ASCII characters");
	int status = kDone;
	if (!Parse(&app, argc, argv, &status))
		return status;
	if (asked.json && !asked.once) {
		fprintf(stderr, "forktail: --json needs --once\n");
		return kUsage;
	}
	if (access(asked.path.c_str(), F_OK)) {
		fprintf(stderr,
			"forktail: cannot find %s. Start forktail record --keep 10m -o %s --pid PID.\n",
			common::Visible(asked.path).c_str(), common::Visible(asked.path).c_str());
		return kCant;
	}
	return asked.once ? Once(asked) : Screen(asked);
}

} // namespace forktail::cli
