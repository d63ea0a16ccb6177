// SPDX-License-Identifier: MIT
// See recorded.h. The recorder is a child in its own process group: Ctrl-C reaches this program, which ends
// the command first and the recorder after it.
#include "recorded.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <sys/prctl.h>
#include <unistd.h>

#include "analysis/text.h"
#include "command.h"
#include "common/files.h"
#include "common/format.h"
#include "common/json.h"
#include "common/process.h"
#include "common/text.h"
#include "live/follow.h"
#include "recording/recording.h"

namespace fs = std::filesystem;
namespace forktail::cli
{
namespace
{

constexpr uint64_t kSlowIterationNs = 10'000'000; // as Redis' slow log by default
constexpr int kTickMs = 250;

// The line of a running recording: how many event-loop iterations were slow, and the worst so far.
class LiveLine
{
public:
	explicit LiveLine(bool wanted) : wanted_(wanted) {}
	void Begin(const std::string &path)
	{
		began_ns_ = ft_now_ns();
		if (wanted_)
			follower_.emplace(path, live::Options{.disk = false});
	}
	// Reads what was recorded since, and writes the line again.
	void Show()
	{
		std::string error;
		if (!follower_)
			return;
		do { // what cannot be read now can be later
			if (!follower_->Poll(&batch_, &error))
				break;
			for (const live::Iteration &i : batch_.iterations)
				Take(i);
		} while (batch_.more);
		const size_t columns = terminal_columns(STDERR_FILENO, 80);
		const std::vector<std::string> forms = Forms();
		const auto fits = std::ranges::find_if(
		    forms, [&](const std::string &form) { return form.size() < columns; });
		fprintf(stderr, "\r%.*s\033[K", static_cast<int>(columns) - 1,
			(fits == forms.end() ? forms.back() : *fits).c_str());
		fflush(stderr);
		shown_ = true;
	}
	// Call it before any other output.
	void Wipe()
	{
		if (shown_)
			fputs("\r\033[K", stderr);
		shown_ = false;
	}

private:
	void Take(const live::Iteration &i)
	{
		slow_ += i.duration_ns >= kSlowIterationNs;
		if (i.duration_ns <= worst_.duration_ns)
			return;
		worst_ = i;
		const auto stall =
		    std::find_if(i.parts.begin(), i.parts.end(), [](const live::CausePart &part) {
			    return part.cause != analysis::Cause::ServerBusy;
		    });
		cause_ = stall != i.parts.end() && stall->ns * 2 > i.duration_ns
			     ? std::string(" (") + analysis::CauseName(stall->cause) + ")"
			     : "";
	}
	// The same in fewer and fewer words.
	std::vector<std::string> Forms() const
	{
		const std::string seconds =
		    std::to_string((ft_now_ns() - began_ns_) / 1'000'000'000) + " s: ";
		if (!worst_.duration_ns)
			return {seconds + "no slow event-loop iteration so far"};
		const std::string worst = " over " + common::FormatDuration(kSlowIterationNs) +
					  ", the longest " + common::FormatDuration(worst_.duration_ns);
		return {seconds + common::Plural(slow_, "event-loop iteration", "event-loop iterations") +
			    worst + cause_ + " at " + common::FormatOffset(worst_.start_ns, began_ns_),
			seconds + common::FormatCount(slow_) + worst + cause_,
			seconds + "longest " + common::FormatDuration(worst_.duration_ns)};
	}

	bool wanted_, shown_ = false;
	std::optional<live::Follower> follower_;
	live::Batch batch_;
	uint64_t began_ns_ = 0, slow_ = 0;
	live::Iteration worst_;
	std::string cause_;
};

// Processes of a command that listen on a socket: its servers.

// The inodes of listening sockets, of this network namespace.
std::set<std::string> ListeningInodes()
{
	// Column numbers of the state and the inode, and the state that listens.
	static const struct {
		const char *path;
		size_t state, inode;
		const char *listens;
	} kTables[] = {{"/proc/net/tcp", 3, 9, "0A"},
		       {"/proc/net/tcp6", 3, 9, "0A"},
		       {"/proc/net/unix", 3, 6, "00010000"}};
	std::set<std::string> inodes;
	for (const auto &table : kTables) {
		std::string text, line;
		constexpr size_t most = 64 << 20;
		if (!common::ReadRegular(table.path, most, &text))
			continue;
		for (std::istringstream lines(text); std::getline(lines, line);) {
			std::istringstream fields(line);
			std::vector<std::string> words;
			for (std::string word; fields >> word;)
				words.push_back(word);
			if (words.size() > table.inode && words[table.state] == table.listens)
				inodes.insert(words[table.inode]);
		}
	}
	return inodes;
}

// A process and all that it started, as far as they run.
std::vector<pid_t> Descendants(pid_t top)
{
	std::multimap<pid_t, pid_t> children;
	std::error_code ec;
	for (const fs::directory_entry &entry : fs::directory_iterator("/proc", ec)) {
		const pid_t pid = atoi(entry.path().filename().c_str());
		std::string stat;
		if (pid <= 0 || !common::ReadRegular(entry.path() / "stat", 4096, &stat))
			continue;
		int parent = 0;
		const size_t name_end = stat.rfind(')');
		if (name_end != std::string::npos &&
		    sscanf(stat.c_str() + name_end, ") %*c %d", &parent) == 1)
			children.emplace(parent, pid);
	}
	std::vector<pid_t> all = {top};
	for (size_t i = 0; i < all.size(); i++) {
		const auto [first, last] = children.equal_range(all[i]);
		for (auto child = first; child != last; ++child)
			all.push_back(child->second);
	}
	return all;
}

std::vector<pid_t> ServersOf(pid_t ours)
{
	const std::set<std::string> inodes = ListeningInodes();
	std::vector<pid_t> servers;
	for (const pid_t pid : Descendants(ours)) {
		std::error_code ec, gone;
		bool listens = false;
		if (pid == ours)
			continue;
		for (const fs::directory_entry &fd :
		     fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ec)) {
			const std::string link = fs::read_symlink(fd.path(), gone);
			listens |=
			    link.starts_with("socket:[") && inodes.count(link.substr(8, link.size() - 9));
		}
		if (listens)
			servers.push_back(pid);
	}
	return servers;
}

// The command, as the user's shell would start it: on our terminal, and with our standard input.
bool StartCommand(const std::vector<std::string> &words, common::Child *child)
{
	std::string error;
	if (common::StartChild({.name = words[0],
				.argv = words,
				.in = 0,
				.err = 2,
				.group = common::Group::kOurs,
				.death_signal = SIGTERM},
			       child, &error))
		return true;
	Refuse(error, kCant);
	return false;
}

// Waits until processes of the command listen, and gives them a moment more. Empty: it ended before, or a
// signal did; why is printed.
std::string FindServers(common::Child *command)
{
	constexpr int moment_ms = 200, soon_looks = 40;
	for (int looks = 0; !common::HasEnded(command) && common::Stops() == 0; looks++) {
		if (ServersOf(getpid()).empty()) {
			if (looks == soon_looks)
				fputs("forktail record: waiting for a process of the command to listen on a "
				      "socket. To record another server, add --port\n",
				      stderr);
			// A look reads /proc of all processes.
			common::WaitForAny({command->pidfd}, looks < soon_looks ? moment_ms / 4 : 1000);
			continue;
		}
		common::WaitForAny({command->pidfd}, moment_ms);
		std::string pids;
		for (const pid_t pid : ServersOf(getpid()))
			pids += (pids.empty() ? "" : ",") + std::to_string(pid);
		if (!pids.empty())
			return pids;
	}
	if (common::Stops() == 0)
		Refuse("none of the command's processes listened on a socket, so there is no server to "
		       "record. Name one with --port, --unix, --name or --pid",
		       kCant);
	return "";
}

int StatusOfEnded(const common::Child &child)
{
	return WIFSIGNALED(child.status) ? 128 + WTERMSIG(child.status) : WEXITSTATUS(child.status);
}

// The recorder, and the pipe on which it says that it records.
struct Recorder {
	common::Child child;
	common::Lines told;
	bool Start(std::vector<std::string> words)
	{
		std::string error;
		int pipe[2];
		const std::string program = common::FindProgram("forktail-record");
		if (program.empty()) {
			Refuse(
			    "cannot find forktail-record: install it in the directory of forktail or on PATH",
			    kCant);
			return false;
		}
		if (pipe2(pipe, O_CLOEXEC)) {
			Refuse(std::string("cannot make a pipe: ") + strerror(errno), kCant);
			return false;
		}
		words.insert(words.begin(), {program, "--tell", std::to_string(pipe[1])});
		const bool started = common::StartChild(
		    {.name = "forktail-record", .argv = words, .kept = pipe[1], .death_signal = SIGTERM},
		    &child, &error);
		close(pipe[1]);
		told.fd = pipe[0];
		fcntl(told.fd, F_SETFL, O_NONBLOCK);
		if (!started)
			Refuse(error, kCant);
		return started;
	}
	// Its messages, which must not be written into the line.
	void Forward(LiveLine *line, bool last)
	{
		for (const std::string &text : child.err.Read(last)) {
			line->Wipe();
			fprintf(stderr, "%s\n", common::Visible(text).c_str());
		}
	}
};

} // namespace

bool HasOption(const std::vector<std::string> &words, const std::string &name, char letter)
{
	constexpr size_t least = 3;
	return std::any_of(words.begin(), words.end(), [&](const std::string &word) {
		const std::string given = word.starts_with("--") ? word.substr(2, word.find('=') - 2) : "";
		return (given.size() >= least && name.starts_with(given)) || given == name ||
		       (letter && word.size() > 1 && word[0] == '-' && word[1] == letter);
	});
}

bool HasTarget(const std::vector<std::string> &words)
{
	static constexpr const char *kTargets[] = {"port", "unix", "name", "container", "unit", "cgroup"};
	return HasOption(words, "pid", 'p') ||
	       std::any_of(std::begin(kTargets), std::end(kTargets),
			   [&](const char *name) { return HasOption(words, name); });
}

Recorded Supervise(const Supervised &asked)
{
	Recorded result;
	Recorder recorder;
	common::Child command;
	LiveLine line(asked.line);
	std::vector<std::string> words = asked.recorder;
	const bool has_command = !asked.command.empty(), owns_server = has_command && !HasTarget(words);
	result.status = kCant;
	common::CatchStops();
	if (owns_server) {
		prctl(PR_SET_CHILD_SUBREAPER, 1); // a server that becomes a daemon is still the command's
		if (!StartCommand(asked.command, &command))
			return result;
		const std::string pids = FindServers(&command);
		if (pids.empty()) {
			common::EndChild(&command);
			return result;
		}
		words.insert(words.end(), {"--pid", pids});
	}
	if (!recorder.Start(words)) {
		common::EndChild(&command);
		return result;
	}
	bool begun = false, asked_to_end = false;
	int stops = 0;
	while (!common::HasEnded(&recorder.child)) {
		common::WaitForAny({recorder.child.pidfd, command.pidfd, recorder.child.err.fd,
				    begun ? -1 : recorder.told.fd},
				   kTickMs);
		recorder.Forward(&line, false);
		const std::vector<std::string> told =
		    begun ? std::vector<std::string>() : recorder.told.Read();
		if (!told.empty()) {
			begun = true;
			result.path = told[0];
			result.began_s = time(nullptr);
			line.Begin(result.path);
			if (has_command && !owns_server && !StartCommand(asked.command, &command))
				asked_to_end = true, common::SignalChild(&recorder.child, SIGINT);
		}
		const bool stopped = common::Stops() > stops;
		stops = common::Stops();
		// A terminal sends Ctrl-C to the command too.
		if (stopped && command.running() && (stops > 1 || !isatty(STDIN_FILENO)))
			common::SignalChild(&command, stops > 1 ? SIGTERM : SIGINT);
		const bool ends = has_command && command.pid > 0 ? common::HasEnded(&command) : stopped;
		if (ends && !asked_to_end) {
			asked_to_end = true;
			common::SignalChild(&recorder.child, SIGINT);
		}
		if (begun && !asked_to_end)
			line.Show();
	}
	recorder.Forward(&line, true);
	line.Wipe();
	const int status = StatusOfEnded(recorder.child);
	result.recorded = begun && status == kDone;
	if (owns_server && !begun) // a server of the user's own would not end by itself
		common::SignalChild(&command, SIGTERM);
	// --duration is over, or its server has exited.
	while (command.running() && !common::HasEnded(&command)) {
		common::WaitForAny({command.pidfd}, kTickMs);
		if (common::Stops() > stops) {
			stops = common::Stops();
			common::SignalChild(&command, SIGTERM);
		}
	}
	result.status = status != kDone || !has_command ? status
			: command.pid > 0		? StatusOfEnded(command)
							: kCant;
	close(recorder.told.fd);
	return result;
}

std::string RunOf(const Recorded &recorded)
{
	std::error_code ec;
	const fs::path directory = fs::absolute(recorded.path, ec).parent_path();
	const auto written = fs::last_write_time(directory / "load.forktail", ec);
	if (ec || fs::is_directory(recorded.path, ec))
		return recorded.path;
	const auto written_s = std::chrono::duration_cast<std::chrono::seconds>(
	    std::chrono::file_clock::to_sys(written).time_since_epoch());
	return written_s.count() >= recorded.began_s ? directory.string() : recorded.path;
}

} // namespace forktail::cli
