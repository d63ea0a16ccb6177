// SPDX-License-Identifier: MIT
// forktail watch: the figures of each second, their lines, and the screen.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/text.h"
#include "common/statistics.h"
#include "live/follow.h"

namespace forktail::live::watch
{

// The clients of a server for `forktail watch`: their requests in a second, and the slowest ones of a minute.

using OfClient = live::RequestSecond::OfClient;

// Requests that ended in one second. Counts and sums are multiplied by the sample.
struct RequestFigures {
	uint64_t count = 0, p50_ns = 0, p99_ns = 0, max_ns = 0;
	std::vector<OfClient> clients; // sorted by client
};

// Adds requests, each counted `sample` times. At most kMostClients clients remain, and one for others.
void AddClients(const std::vector<OfClient> &more, uint64_t sample, std::vector<OfClient> *to);

struct ClientFigures {
	std::string name;
	double per_second = 0;
	uint64_t count = 0, mean_ns = 0, max_ns = 0;
	double share = 0; // of the service time of all requests
};

// The `most` clients with the longest requests, the slowest first, and last the others together.
std::vector<ClientFigures> SlowestClients(std::vector<OfClient> all, double seconds, size_t most);

// Figures of one server in one second for `forktail watch`: made from live/follow, shown as text and as JSON.
// Times are ns.

using live::kSecondNs;
constexpr uint64_t kMinuteSeconds = 60;
using Part = live::CausePart;

constexpr uint64_t kNoIteration = UINT64_MAX; // in strips: no data for that second

struct ThreadFigures {
	std::string name;
	bool serves = false; // has an event loop, or is the server's main thread
	bool child = false;  // of a process that the server forked
	std::vector<Part> parts;
};

// Its texts are sanitized. duration_ns 0: none.
struct WorstIteration : live::Iteration {
	std::string thread_name = {};
};

// An unfinished span of a serving thread.
struct Open {
	std::string thread;
	analysis::Cause cause = analysis::Cause::Unknown;
	uint64_t start_ns = 0, so_far_ns = 0;
	std::string detail;
};

struct Child : live::Child {
	uint64_t last_took_ns = 0; // duration of the previous child in this role; 0: none seen
	// What the server's writes copied since it began, up to the second that is shown; nothing: its begin
	// is not in the history.
	std::optional<uint64_t> copied_bytes = {};
};

struct Taker {
	std::string comm;
	uint64_t ns = 0;
};

struct Figures {
	uint64_t start_ns = 0;	  // CLOCK_MONOTONIC of the recording host, a whole second
	uint64_t realtime_ns = 0; // since 1970; 0: unknown
	bool accounted = false;	  // complete; else only the events so far
	// Iterations of at least the recorder's --min-span that ended in this second, of all serving threads.
	uint64_t iterations = 0, p50_ns = 0, p99_ns = 0, max_ns = 0;
	WorstIteration worst;
	std::vector<ThreadFigures> threads;
	std::vector<Open> open;
	std::vector<Taker> taken; // largest first
	uint64_t forks = 0, fork_ns = 0;
	uint64_t fsyncs = 0, fsync_ns = 0, fsync_longest_ns = 0;
	std::string fsync_file; // of the longest
	uint64_t disk_reads = 0, disk_writes = 0, disk_bytes = 0, disk_longest_ns = 0;
	uint64_t dropped = 0; // records of all servers
	RequestFigures requests;

	uint64_t end_ns() const { return start_ns + kSecondNs; }
};

// The serving threads' time by cause, without idle: stalls first, then by time. *threads is their number.
std::vector<Part> ServingParts(const Figures &second, size_t *threads);
// Total stall time of the serving threads.
uint64_t StalledNs(const Figures &second);

// Adds `part` to the part of the same cause.
void AddPart(const Part &part, std::vector<Part> *to);
// Keeps the longer interval and its name.
void KeepLonger(uint64_t ns, const std::string &detail, Part *part);

// The percentile `p` (0 to 1): the smallest duration that at least this share of them does not exceed.
// Reorders the durations.
uint64_t Percentile(std::vector<uint64_t> *durations, double p);

// Figures of every server for the last ten minutes, per second, from live/follow. Older seconds are dropped,
// so memory is bounded.

constexpr uint64_t kHistorySeconds = 600;
constexpr size_t kMostServers = 64;	       // further servers are ignored
constexpr size_t kMostChildren = 64;	       // per server
constexpr size_t kMostClientEntries = 600'000; // of all seconds: clients of the oldest ones are dropped
constexpr size_t kMostDurations = 200'000;     // of a second's iterations, for its percentiles

struct ServerHistory {
	std::string name;
	uint32_t pid = 0;
	bool alive = false;
	std::map<uint64_t, Figures> seconds; // by start_ns
	std::deque<Child> children;	     // by start
};

// State of the recorder and the ring.
struct Health {
	bool recording = false; // data arrived within the last seconds
	uint64_t quiet_ns = 0;	// time without data
	bool cost_known = false;
	double cpu = 0;		   // share of one CPU since the previous reading
	std::optional<double> bpf; // likewise; none: the recorder does not know it
	uint64_t rss_bytes = 0;
	uint64_t dropped = 0, damaged = 0;
	uint64_t span_ns = 0, bytes = 0; // on disk
	uint32_t segments = 0;
	uint32_t request_sample = 0; // of one in this many connections; 0: no requests are recorded
};

class History
{
public:
	// A note of the recorder, or a mark.
	struct Event {
		uint64_t t_ns = 0, realtime_ns = 0;
		std::string text = {};
	};

	// `seconds`: how many seconds are retained.
	explicit History(uint64_t seconds = kHistorySeconds) : seconds_(seconds) {}

	// Adds the result of a Poll().
	void Take(const live::Batch &batch, const live::Follower &follower);
	// Reads the marks of the ring or recording (analysis/source.h), if there are
	// others than before.
	void TakeMarks(const std::string &path, const live::Follower &follower);
	// Adds the seconds of `older` before the first one here.
	void PutBefore(const History &older);

	const std::vector<ServerHistory> &servers() const { return servers_; }
	// Accounted seconds; 0: none.
	uint64_t first_ns() const;
	uint64_t last_ns() const;
	const Figures *Second(size_t server, uint64_t start_ns) const;
	// The second with the longest iteration among the `seconds` up to last_ns; nullptr: none.
	const Figures *Worst(size_t server, uint64_t last_ns, uint64_t seconds) const;
	// Clients in the `seconds` up to last_ns. *complete is the number of those with complete figures, in
	// which requests were recorded.
	std::vector<OfClient> Clients(size_t server, uint64_t last_ns, uint64_t seconds,
				      size_t *complete) const;
	// The last note or mark of the minute before the end of that second, or (`latest`) also after it;
	// without text without one.
	Event EventAt(uint64_t second_ns, bool latest) const;

	Health health; // as of the last Take(); the caller may change it

private:
	size_t ServerOf(uint32_t live_index, const live::Follower &follower);
	Figures *At(uint32_t live_index, uint64_t t_ns, const live::Follower &follower);
	void TakeIterations(const live::Batch &batch, const live::Follower &follower);
	void TakeRequests(const live::Batch &batch, const live::Follower &follower);
	void TakeStalls(const live::Batch &batch, const live::Follower &follower);
	void TakeEvents(const live::Batch &batch, const live::Follower &follower);
	void TakeChildren(const live::Batch &batch, const live::Follower &follower);
	void TakeSeconds(const live::Batch &batch, const live::Follower &follower);
	void TakeNotes(const live::Batch &batch, const live::Follower &follower);
	void TakeHealth(const live::Batch &batch, const live::Follower &follower);
	void Forget();
	void ForgetClients();

	uint64_t seconds_;
	std::vector<ServerHistory> servers_;
	std::map<std::pair<size_t, uint64_t>, std::vector<uint64_t>> durations_; // server, second
	std::map<std::pair<size_t, uint64_t>, common::Histogram> service_times_; // likewise
	std::map<uint64_t, uint64_t> dropped_;					 // by second
	std::deque<Event> events_;
	std::vector<Event> marks_;		       // by time
	std::string marks_text_;		       // the file's, as of the last TakeMarks()
	std::deque<std::pair<uint64_t, bool>> slices_; // from when on requests are recorded, or not
	bool RequestsRecorded(uint64_t second_ns) const;
	uint64_t last_ns_ = 0, first_ns_ = 0;
	live::RecorderCost cost_before_;
};

// Seconds from before the start of `forktail watch`: read from the ring when the user scrolls back, in
// pieces, so that keys are still answered.

class Backlog
{
public:
	// Reads the seconds from from_ns to to_ns; later ones are known already.
	Backlog(const std::string &path, uint64_t from_ns, uint64_t to_ns);

	// Reads the next piece. True: finished, or the ring cannot be read.
	bool Step();
	// Progress, 0 to 1.
	double done() const;
	const History &history() const { return history_; }

private:
	uint64_t from_ns_, to_ns_;
	live::Follower follower_;
	live::Batch batch_;
	History history_;
};

// The data of one screen of `forktail watch`: the server, the second and the strip around it. layout.h
// converts it to lines.

struct Frame {
	std::string path;
	std::string server; // "": none yet
	uint32_t pid = 0;
	bool alive = false;
	size_t server_index = 0, servers = 0;

	bool has_second = false;
	Figures second;
	uint64_t age_ns = 0; // from the end of the second to the creation of the frame
	bool frozen = false;

	// The longest iteration of the minute that ends with the second; duration 0: none.
	WorstIteration worst;
	uint64_t worst_realtime_ns = 0; // of its second
	uint64_t worst_age_ns = 0;	// from that second to the one shown

	// Longest iteration per second, oldest first; kNoIteration without data. strip[chosen] is the shown
	// second.
	std::vector<uint64_t> strip;
	size_t chosen = 0;

	std::vector<Child> children;	    // that ran in the second
	std::vector<ClientFigures> clients; // the slowest of that minute, if Choice::clients
	bool show_clients = false;
	Health health;
	History::Event event; // the latest recent note of the recorder
	std::string message;  // of this program: the result of a key
	std::string waiting;  // why there is no data, one sentence; else ""
};

// The selected server and second.
struct Choice {
	size_t server = 0;
	bool frozen = false;
	uint64_t second_ns = 0; // the frozen second
	bool clients = false;	// the slowest clients, too
};

// `strip`: its number of seconds.
Frame MakeFrame(const History &history, const Choice &choice, size_t strip);

// A screen of `forktail watch` as lines of text. Pure functions, so that tests need no terminal. Colors only
// repeat what text and lengths show; without Unicode everything is ASCII.

enum class Look : uint8_t {
	Plain,
	Strong,
	Dim,
	Alarm,
	Tinted,	 // in the color of the cause
	Chosen,	 // the second that is shown, in the strip
	Reverse, // the lines at the top and at the bottom
};

struct Words {
	std::string text;
	Look look = Look::Plain;
	analysis::Cause cause = analysis::Cause::Unknown; // of Tinted
};
using Line = std::vector<Words>;

// At most `columns` wide and `rows` high. From 40 x 10 on all important lines fit; on smaller screens the
// last lines are dropped.
std::vector<Line> LayOut(const Frame &frame, size_t columns, size_t rows, const analysis::Style &style);
// The help screen.
std::vector<Line> LayOutHelp(size_t columns, size_t rows);
// The second as text for a pipe: without strip and keys, of any length.
std::vector<Line> LayOutOnce(const Frame &frame, size_t columns, const analysis::Style &style);

// Number of seconds that fit in the strip.
size_t StripSeconds(size_t columns);

size_t WidthOf(const Line &line);
// Without looks.
std::string TextOf(const Line &line);

// `forktail watch --once --json`: the figures of a second for scripts (docs/reference/watch-and-metrics.md).

// One line with one object for all servers.
std::string OnceJson(const std::vector<Frame> &frames);

// How keys change the view: the server, the second, frozen or live. Independent of the terminal, for tests.

enum class Key : uint8_t {
	None,
	Other,
	Quit,
	Freeze,
	Back,
	On,
	PageBack,
	PageOn,
	First,
	Live,
	Worst,
	NextServer,
	Explain,
	Snapshot,
	Clients,
	Help,
};

struct View {
	Choice choice;
	bool help = false;
	bool quit = false;
};

// `strip`: seconds on the screen. The caller handles Explain and Snapshot.
void Press(Key key, const History &history, size_t strip, View *view);
// The earliest second of the ring that the view can show, at most ten minutes back.
uint64_t EarliestNs(const History &history);
// The shown second; 0: none.
uint64_t ShownNs(const History &history, const View &view);

// `forktail watch` on a terminal.

struct ScreenOptions {
	std::string path;    // a ring's directory, or a recording
	std::string program; // forktail itself, for explain
	double interval_s = 1;
	analysis::Style style;
	bool utf8 = false; // the terminal's locale is UTF-8
	// Takes a snapshot of [from_ns, to_ns) and returns one sentence. Called on a separate thread; `at_ns`
	// is the middle, since 1970.
	std::function<std::string(uint64_t from_ns, uint64_t to_ns, uint64_t at_ns)> snapshot;
};

// Runs until the user quits. False: the terminal is not usable; *error is one sentence.
bool RunScreen(const ScreenOptions &options, std::string *error);

} // namespace forktail::live::watch
