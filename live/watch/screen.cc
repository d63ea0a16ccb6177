// SPDX-License-Identifier: MIT
// The screen's loop.
//
// One loop: read new data, draw, wait for a key. Nothing in it blocks for long: reading is bounded, snapshots
// are taken on a thread, and explain is a separate program.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <future>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "common/format.h"
#include "common/json.h"
#include "common/process.h"
#include "live/watch.h"
#include "recording/recording.h"
#include "terminal.h"

namespace forktail::live::watch
{

// Shows a program's output in the user's pager.

// Runs argv with its output and errors in $PAGER (else less, else more), with `columns` columns. Returns when
// the pager ends: "" or an error.
std::string ShowInPager(const std::vector<std::string> &argv, size_t columns);

namespace
{

constexpr uint64_t kAtFirstNs = 60 * kSecondNs; // read at the start: the minute of the longest iteration
constexpr uint64_t kPollNs = 300'000'000;	// longest time of reading before keys are checked
constexpr uint64_t kMessageNs = 8 * kSecondNs;
constexpr uint64_t kHalfSnapshotNs = 30 * kSecondNs;
constexpr const char *kExplainWidth = "10s";

uint64_t RealtimeNow()
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return static_cast<uint64_t>(t.tv_sec) * kSecondNs + static_cast<uint64_t>(t.tv_nsec);
}

live::Options FromAMinuteAgo()
{
	live::Options options;
	const uint64_t now_ns = ft_now_ns();
	options.from_ns = std::max<uint64_t>(now_ns - std::min(now_ns, kAtFirstNs), 1);
	options.request_seconds = true;
	return options;
}

class Watching
{
public:
	Watching(const ScreenOptions &options, Terminal *terminal)
	    : options_(options), terminal_(terminal), follower_(options.path, FromAMinuteAgo())
	{
	}
	void Run();

private:
	void Read();
	void ReadOlder();
	void Show();
	void Do(Key key);
	void Explain();
	void Snapshot();
	void Say(const std::string &text);
	Frame FrameNow();

	const ScreenOptions &options_;
	Terminal *terminal_;
	live::Follower follower_;
	live::Batch batch_;
	History history_;
	View view_;
	std::unique_ptr<Backlog> backlog_;
	bool older_read_ = false;
	std::string waiting_, message_;
	uint64_t message_at_ns_ = 0;
	std::future<std::string> snapshot_;
	bool gone_ = false;
};

void Watching::Say(const std::string &text)
{
	message_ = common::Visible(text);
	message_at_ns_ = ft_now_ns();
}

void Watching::Read()
{
	const uint64_t began_ns = ft_now_ns();
	std::string error;
	do {
		if (!follower_.Poll(&batch_, &error)) {
			waiting_ = common::Visible(error);
			if (history_.last_ns())
				Say(error);
			return;
		}
		waiting_.clear();
		history_.Take(batch_, follower_);
	} while (batch_.more && ft_now_ns() - began_ns < kPollNs);
	history_.TakeMarks(options_.path, follower_);
	if (!history_.last_ns())
		waiting_ = batch_.more ? "reading " + common::Visible(options_.path)
				       : "nothing is recorded in " + common::Visible(options_.path) +
					     " yet. Start forktail record --keep 10m -o " +
					     common::Visible(options_.path) + " --pid PID";
}

// Reads seconds before the first one when the user scrolls there.
void Watching::ReadOlder()
{
	const uint64_t shown_ns = ShownNs(history_, view_);
	if (!older_read_ && !backlog_ && shown_ns && shown_ns < history_.first_ns())
		backlog_ =
		    std::make_unique<Backlog>(options_.path, EarliestNs(history_), history_.first_ns());
	if (!backlog_)
		return;
	if (!backlog_->Step()) {
		Say("reading older seconds: " + common::FormatShare(backlog_->done()));
		return;
	}
	history_.PutBefore(backlog_->history());
	backlog_.reset();
	older_read_ = true;
	message_.clear();
	// Seconds evicted from the ring meanwhile cannot be shown.
	if (view_.choice.frozen)
		view_.choice.second_ns = std::max(view_.choice.second_ns, history_.first_ns());
}

Frame Watching::FrameNow()
{
	Frame frame = MakeFrame(history_, view_.choice, StripSeconds(terminal_->columns()));
	const uint64_t now_ns = RealtimeNow(), end_ns = frame.second.realtime_ns + kSecondNs;
	const uint64_t newest_ns = follower_.RealtimeNs(follower_.newest_ns());
	frame.path = common::Visible(options_.path);
	frame.age_ns = now_ns - std::min(now_ns, end_ns);
	frame.health.quiet_ns = newest_ns ? now_ns - std::min(now_ns, newest_ns) : 0;
	frame.waiting = waiting_;
	frame.message = message_;
	return frame;
}

void Watching::Show()
{
	if (!message_.empty() && !backlog_ && ft_now_ns() - message_at_ns_ > kMessageNs)
		message_.clear();
	if (snapshot_.valid() && snapshot_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
		Say(snapshot_.get());
	const size_t columns = terminal_->columns(), rows = terminal_->rows();
	terminal_->Draw(view_.help ? LayOutHelp(columns, rows)
				   : LayOut(FrameNow(), columns, rows, options_.style));
}

void Watching::Explain()
{
	const uint64_t shown_ns = ShownNs(history_, view_);
	const uint64_t at_ns = shown_ns ? follower_.RealtimeNs(shown_ns) + kSecondNs / 2 : 0;
	if (at_ns < kSecondNs)
		return Say("no data to explain yet");
	const std::string around =
	    analysis::Format("%llu.%llu,", static_cast<unsigned long long>(at_ns / kSecondNs),
			     static_cast<unsigned long long>(at_ns % kSecondNs / 100'000'000)) +
	    kExplainWidth;
	std::vector<std::string> argv = {options_.program, "explain", options_.path, "--around", around};
	if (options_.style.colour)
		argv.push_back("--color=always");
	if (!options_.style.unicode)
		argv.push_back("--ascii");
	terminal_->Lend();
	const std::string error = ShowInPager(argv, terminal_->columns());
	terminal_->TakeBack();
	if (!error.empty())
		Say(error);
}

void Watching::Snapshot()
{
	if (snapshot_.valid())
		return Say("a snapshot is being taken");
	const uint64_t shown_ns = ShownNs(history_, view_);
	if (!shown_ns)
		return Say("no data to save yet");
	const uint64_t from_ns =
	    shown_ns - std::min(shown_ns, view_.choice.frozen ? kHalfSnapshotNs : kAtFirstNs);
	const uint64_t to_ns = view_.choice.frozen ? shown_ns + kHalfSnapshotNs : UINT64_MAX;
	const uint64_t at_ns = follower_.RealtimeNs(shown_ns);
	snapshot_ = std::async(std::launch::async, options_.snapshot, from_ns, to_ns, at_ns);
	Say("taking a snapshot");
}

void Watching::Do(Key key)
{
	const bool in_help = view_.help;
	Press(key, history_, StripSeconds(terminal_->columns()), &view_);
	if (in_help)
		return;
	if (key == Key::Explain)
		Explain();
	else if (key == Key::Snapshot)
		Snapshot();
}

void Watching::Run()
{
	uint64_t read_at_ns = 0;
	while (!view_.quit && !gone_) {
		// Keys are handled immediately; data is read once per interval.
		const uint64_t interval_ns = static_cast<uint64_t>(options_.interval_s * 1e9);
		uint64_t now_ns = ft_now_ns();
		if (!read_at_ns || batch_.more || now_ns - read_at_ns >= interval_ns) {
			read_at_ns = now_ns;
			Read();
		}
		ReadOlder();
		Show();
		now_ns = ft_now_ns();
		const uint64_t due_ns = batch_.more || backlog_ ? now_ns : read_at_ns + interval_ns;
		const double wait_s = due_ns > now_ns ? static_cast<double>(due_ns - now_ns) / 1e9 : 0;
		Do(terminal_->Wait(wait_s, &gone_));
	}
}

} // namespace

bool RunScreen(const ScreenOptions &options, std::string *error)
{
	Terminal terminal;
	if (!terminal.Open(options.style.colour, options.utf8, error))
		return false;
	Watching(options, &terminal).Run();
	return true;
}

// $PAGER is the user's command line and is run by the shell; the program's arguments are not.

namespace
{

// While the pager runs, it handles the keys that end programs.
class IgnoredKeys
{
public:
	IgnoredKeys()
	{
		struct sigaction ignore = {};
		ignore.sa_handler = SIG_IGN;
		sigaction(SIGINT, &ignore, &interrupt_);
		sigaction(SIGQUIT, &ignore, &quit_);
	}
	~IgnoredKeys()
	{
		sigaction(SIGINT, &interrupt_, nullptr);
		sigaction(SIGQUIT, &quit_, nullptr);
	}

private:
	struct sigaction interrupt_, quit_;
};

} // namespace

std::string ShowInPager(const std::vector<std::string> &argv, size_t columns)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return std::string("cannot open a pager: ") + strerror(errno);
	const char *pager = getenv("PAGER");
	if (!pager || !*pager)
		pager = "if command -v less >/dev/null; then exec less; else exec more; fi";
	common::Command writes{.name = "a program for the pager",
			       .argv = argv,
			       .environment = {{"COLUMNS", std::to_string(columns)}},
			       .in = 0,
			       .out = ends[1],
			       .err = 1,
			       .group = common::Group::kOurs,
			       .death_signal = 0};
	common::Command shows{.name = "a pager",
			      .argv = {"/bin/sh", "-c", pager},
			      .in = ends[0],
			      .err = 2,
			      .group = common::Group::kOurs,
			      .death_signal = 0};
	if (!getenv("LESS"))
		shows.environment = {{"LESS", "R"}}; // colours, and stay when it all fits
	common::Child program, shown;
	std::string error;
	const bool started =
	    common::StartChild(writes, &program, &error) && common::StartChild(shows, &shown, &error);
	close(ends[0]);
	close(ends[1]);
	IgnoredKeys ignored;
	while (started && !common::HasEnded(&shown))
		common::WaitForAny({shown.pidfd}, -1);
	common::EndChild(&program); // its remaining output has no reader
	return started && WIFEXITED(shown.status) && WEXITSTATUS(shown.status) == common::kNotStarted
		   ? "cannot find a pager: set PAGER"
		   : error;
}

} // namespace forktail::live::watch
