// SPDX-License-Identifier: MIT
// `forktail watch` in a real terminal: tmux, whose screen can be read. A real server, a recorder with a ring,
// and a known stall. The test sends keys and compares the screen with what happened.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/process.h"
#include "tests/support/servers/server.h"
#include "tests/support/tempdir.h"
#include "tests/support/text.h"

using namespace forktail::test;

namespace
{

// Also where the screen breaks a line between two of its words.
bool Holds(const std::string &text, const std::string &part)
{
	return text.find(part) != std::string::npos || flat(text).find(part) != std::string::npos;
}

std::vector<std::string> LinesOf(const std::string &text)
{
	std::vector<std::string> lines;
	for (size_t at = 0; at < text.size();) {
		const size_t end = std::min(text.find('\n', at), text.size());
		lines.push_back(text.substr(at, end - at));
		at = end + 1;
	}
	return lines;
}

// UTF-8 characters. Every drawn character takes one column.
size_t Letters(const std::string &line)
{
	size_t letters = 0;
	for (char c : line)
		letters += (c & 0xc0) != 0x80;
	return letters;
}

// A terminal with this many columns and rows in which a command runs.
class Screen
{
public:
	Screen(const std::string &command, size_t columns, size_t rows)
	    : name_("ft-watch-" + std::to_string(getpid()))
	{
		Tmux({"new-session", "-d", "-s", "w", "-x", std::to_string(columns), "-y",
		      std::to_string(rows), command});
	}
	~Screen() { Tmux({"kill-server"}); }
	Screen(const Screen &) = delete;
	Screen &operator=(const Screen &) = delete;

	void Press(const std::string &key) { Tmux({"send-keys", "-t", "w", key}); }
	void Resize(size_t columns, size_t rows)
	{
		Tmux({"resize-window", "-t", "w", "-x", std::to_string(columns), "-y", std::to_string(rows)});
	}
	std::string Text() { return Tmux({"capture-pane", "-p", "-t", "w"}).out; }
	std::string Coded() { return Tmux({"capture-pane", "-e", "-p", "-t", "w"}).out; }
	// The screen once all texts are on it, or as it is at the end.
	std::string With(const std::vector<std::string> &parts, Seconds limit = Seconds(15))
	{
		std::string text;
		eventually(
		    [&] {
			    text = Text();
			    for (const std::string &part : parts)
				    if (!Holds(text, part)) {
					    sleep_for(Seconds(0.05));
					    return false;
				    }
			    return true;
		    },
		    limit);
		for (const std::string &part : parts) {
			INFO(text);
			INFO(part);
			CHECK(Holds(text, part));
		}
		return text;
	}

private:
	Result Tmux(std::vector<std::string> words)
	{
		words.insert(words.begin(), {"tmux", "-u", "-f", "/dev/null", "-L", name_});
		return run(words, Seconds(10), {{{"LC_ALL", "C.UTF-8"}, {"TERM", "xterm-256color"}}, "", ""});
	}
	std::string name_;
};

std::unique_ptr<Process> Record(const std::vector<pid_t> &pids, const std::string &ring,
				const std::vector<std::string> &more = {})
{
	std::vector<std::string> words = {program("forktail-record"), "--keep", "5m", "-o", ring};
	for (pid_t pid : pids)
		words.insert(words.end(), {"--pid", std::to_string(pid)});
	words.insert(words.end(), more.begin(), more.end());
	auto recorder = std::make_unique<Process>(words);
	REQUIRE(eventually([&] { return Holds(recorder->err(), "recording ") || !recorder->running(); },
			   Seconds(30)));
	INFO(recorder->err());
	REQUIRE(recorder->running());
	return recorder;
}

// A server, a recorder with a ring, and a directory for output.
struct Watched {
	TempDir dir;
	const std::string ring = dir.file("ring"), explained = dir.file("explained"),
			  ended = dir.file("ended");
	Redis redis{{.config = {"--enable-debug-command", "yes"}}};
	std::unique_ptr<Process> recorder = Record({redis.pid()}, ring);

	// forktail watch, started by a shell. Its exit status goes into `ended`.
	std::string Command(const std::string &environment, const std::string &options) const
	{
		return "env LC_ALL=C.UTF-8 " + environment + " PAGER='cat >" + explained + "' " +
		       program("forktail") + " watch " + ring + " " + options + " --snapshots " + dir.path() +
		       " 2>" + dir.file("err") + "; echo $? >" + ended;
	}
};

bool CanRun()
{
	if (geteuid() != 0) {
		WARN("SKIPPED: needs root to record");
		return false;
	}
	if (run({"tmux", "-V"}).status != 0) {
		WARN("SKIPPED: needs tmux");
		return false;
	}
	return true;
}

// Whether a screen has a text in colour. tmux resets colours with 39 and 49.
bool Coloured(const std::string &coded)
{
	for (size_t at = 0; (at = coded.find("\033[3", at)) != std::string::npos; at += 3)
		if (coded.compare(at, 5, "\033[39m") != 0)
			return true;
	return false;
}

// The text after the first word of a line with this beginning.
std::string LineWith(const std::string &screen, const std::string &part)
{
	for (const std::string &line : LinesOf(screen))
		if (Holds(line, part))
			return line;
	return "";
}

std::string Clock(const std::string &screen)
{
	const std::string title = screen.substr(0, screen.find('\n'));
	const size_t at = title.find(" UTC");
	return at == std::string::npos || at < 8 ? "" : title.substr(at - 8, 8);
}

} // namespace

TEST_CASE("watch: a stall is on the screen with its evidence, keys move through time, sizes change")
{
	if (!CanRun())
		return;
	Watched w;
	Screen screen(w.Command("TERM=tmux-256color", ""), 80, 24);
	screen.With({"redis-server", "iterations", "recorder", "q quit"});
	w.redis.command({"DEBUG", "SLEEP", "0.25"});
	w.redis.command({"BGSAVE"});

	// The stall is the minute's longest iteration, and its parts are printed.
	std::string text = screen.With({"longest iteration of the minute: ", "25", "sleep 25", "live"});
	for (const std::string &line : LinesOf(text))
		CHECK(Letters(line) <= 80);

	// Its second: frozen, the bars' cause and the strip's pointer.
	screen.Press("w");
	text = screen.With({"FROZEN", "! sleep", "longest 25"});
	CHECK(Coloured(screen.Coded())); // stalls are
	const std::string at = Clock(text);
	CHECK(at.size() == 8);
	CHECK(Holds(LineWith(text, "longest iteration per second"), at));
	sleep_for(Seconds(2.5));
	text = screen.Text();
	CHECK(Clock(text) == at);
	CHECK(Holds(text, "longest 25"));

	// Two seconds earlier (it may have begun in the second before) it is absent. Forward again it is
	// there.
	screen.Press("Left");
	screen.Press("Left");
	CHECK(eventually([&] { return Clock(text = screen.Text()) < at && !Holds(text, "! sleep"); }));
	screen.Press("Right");
	screen.Press("Right");
	CHECK(eventually([&] { return Clock(text = screen.Text()) == at && Holds(text, "! sleep"); }));
	screen.Press("Home");
	CHECK(eventually([&] { return Clock(text = screen.Text()) < at; }));
	screen.Press("w");
	screen.Press("End");
	screen.With({"live"});
	screen.Press("Space");
	screen.With({"FROZEN"});
	screen.Press("p");
	screen.With({"live"});

	screen.Press("?");
	screen.With({"freeze or resume"});
	screen.Press("?");
	screen.With({"q quit", "longest iteration of the minute:"});

	screen.Resize(60, 15);
	text = screen.With({"longest iteration of the minute:", "e explain  ? help"});
	CHECK(LinesOf(text).size() <= 15);
	screen.Resize(200, 50);
	text = screen.With({"s snapshot  ? help"});
	CHECK(eventually([&] { return LinesOf(text = screen.Text()).size() > 40; }));
	CHECK(Holds(text, "longest iteration of the minute:"));

	// Explain, for the stall's second, in the pager. Also a snapshot.
	screen.Press("w");
	screen.With({"! sleep"});
	screen.Press("e");
	CHECK(eventually([&] { return !read_file(w.explained).empty(); }, Seconds(20)));
	INFO(read_file(w.explained));
	CHECK(Holds(read_file(w.explained), "sleep"));
	screen.Press("s");
	screen.With({"snapshot " + w.dir.path()});
	size_t snapshots = 0;
	for (const auto &entry : std::filesystem::directory_iterator(w.dir.path()))
		if (Holds(entry.path(), "/forktail-2"))
			snapshots += std::filesystem::exists(entry.path() / "run.json");
	CHECK(snapshots == 1);

	// The recorder ends, another one continues in the ring.
	w.recorder->signal(SIGINT);
	CHECK(w.recorder->wait(Seconds(30)) == 0);
	screen.Press("End");
	screen.With({"no recorder: no data for", "the recorder ended"});
	w.recorder = Record({w.redis.pid()}, w.ring);
	screen.With({"a recorder started", "recorder CPU"}, Seconds(25));

	screen.Press("q");
	CHECK(eventually([&] { return !read_file(w.ended).empty(); }));
	CHECK(read_file(w.ended) == "0\n");
	CHECK(read_file(w.dir.file("err")).empty());
}

TEST_CASE("watch: a terminal without colour or Unicode, and without a terminal")
{
	if (!CanRun())
		return;
	Watched w;
	w.redis.command({"DEBUG", "SLEEP", "0.1"});
	{
		Screen screen(w.Command("TERM=vt100", "--ascii"), 80, 24);
		screen.With({"longest iteration of the minute: ", "sleep 10"});
		screen.Press("w");
		const std::string text = screen.With({"! sleep"});
		for (char c : text)
			CHECK(static_cast<unsigned char>(c) < 0x80);
		CHECK_FALSE(Coloured(screen.Coded()));
		screen.Press("q");
		CHECK(eventually([&] { return read_file(w.ended) == "0\n"; }));
	}
	{
		// NO_COLOR on a terminal that has them.
		Screen screen(w.Command("TERM=tmux-256color NO_COLOR=1", ""), 80, 24);
		screen.With({"sleep 10"});
		CHECK_FALSE(Coloured(screen.Coded()));
		CHECK(run({program("forktail"), "mark", w.ring, "deploy 42"}).status == 0);
		screen.With({": mark: deploy 42"});
		CHECK(run({program("forktail"), "mark", w.ring, "deploy 43"}).status == 0);
		screen.With({": mark: deploy 43"});
	}

	const ProcessOptions dumb = {{{"TERM", "dumb"}}, "", ""};
	Result once = run({program("forktail"), "watch", w.ring, "--once"}, Seconds(30), dumb);
	INFO(once.out << once.err);
	CHECK(once.status == 0);
	CHECK(Holds(once.out, "iterations"));
	CHECK_FALSE(Holds(once.out, "\033"));
	CHECK(Holds(once.out, "mark: deploy 43"));
	const auto json = [&] {
		const Result r =
		    run({program("forktail"), "watch", w.ring, "--once", "--json"}, Seconds(30), dumb);
		REQUIRE(r.status == 0);
		return parse_json(r.out);
	};
	const auto j = json();
	REQUIRE(j["servers"].size() == 1);
	CHECK(j["servers"][0]["pid"] == w.redis.pid());
	CHECK(j["servers"][0]["worst_of_minute"]["parts"][0]["cause"] == "sleep");
	CHECK(j["recorder"]["recording"] == true);
	// Each serving thread's second adds up to a second, but for the one in which the recorder started.
	const auto is_whole = [](const auto &server) {
		uint64_t ns = 0;
		for (const auto &thread : server["threads"])
			if (thread["serves"] == true)
				for (const auto &part : thread["parts"])
					ns += part["ns"].template get<uint64_t>();
		return ns == server["serving_threads"].template get<uint64_t>() * 1'000'000'000;
	};
	CHECK(eventually([&] { return is_whole(json()["servers"][0]); }));

	Result refused = run({program("forktail"), "watch", w.ring}, Seconds(10), dumb);
	CHECK(refused.status == 3);
	CHECK(Holds(refused.err, "watch needs a terminal. Use --once"));
	Screen screen(w.Command("TERM=dumb", ""), 80, 24);
	CHECK(eventually([&] { return Holds(read_file(w.dir.file("err")), "cannot move its cursor"); }));
}

TEST_CASE("watch: two servers, one with terminal control sequences in its name")
{
	if (!CanRun())
		return;
	TempDir dir;
	const std::string name = "\033[31mred\nis", seen = "\\x1b[31mred\\x0ais", ring = dir.file("ring"),
			  hostile = dir.file(name);
	const Result found = run({"sh", "-c", "command -v redis-server"});
	REQUIRE(found.status == 0);
	std::filesystem::create_symlink(LinesOf(found.out)[0], hostile);
	Redis usual{{.config = {"--enable-debug-command", "yes"}}};
	Redis odd{{.config = {"--enable-debug-command", "yes"}, .program = hostile}};
	auto recorder = Record({usual.pid(), odd.pid()}, ring);

	// Each has its own longest iteration.
	Screen screen("env LC_ALL=C.UTF-8 TERM=tmux-256color NO_COLOR=1 " + program("forktail") + " watch " +
			  ring,
		      80, 24);
	screen.With({" of 2, tab]"});
	usual.command({"DEBUG", "SLEEP", "0.15"});
	odd.command({"DEBUG", "SLEEP", "0.35"});
	std::set<std::string> titles;
	for (int server = 0; server < 2; server++) {
		const std::string title = LinesOf(screen.With({" of 2, tab]"}))[0];
		INFO(title);
		const bool is_odd = Holds(title, seen);
		CHECK(Holds(title, is_odd ? seen + ":/" : "redis-server:/"));
		CHECK(
		    eventually([&] { return Holds(flat(screen.Text()), is_odd ? "sleep 35" : "sleep 15"); }));
		CHECK_FALSE(Coloured(screen.Coded()));
		titles.insert(title.substr(0, title.find(']')));
		CHECK(Letters(title) <= 80);
		screen.Press("Tab");
		screen.With({server ? "[1 of 2" : "[2 of 2"});
	}
	CHECK(titles.size() == 2);

	const Result once = run({program("forktail"), "watch", ring, "--once"}, Seconds(30));
	INFO(once.out << once.err);
	CHECK(once.status == 0);
	CHECK_FALSE(Holds(once.out, "\033"));
	const Result json = run({program("forktail"), "watch", ring, "--once", "--json"}, Seconds(30));
	REQUIRE(json.status == 0);
	const auto j = parse_json(json.out);
	REQUIRE(j["servers"].size() == 2);
	CHECK(std::count_if(j["servers"].begin(), j["servers"].end(), [&](const auto &server) {
		      return server["name"] == seen + ":" + odd.socket() && server["pid"] == odd.pid();
	      }) == 1);
}

TEST_CASE("watch: no ring, an empty one, and invalid options")
{
	TempDir dir;
	Result r = run({program("forktail"), "watch", dir.file("none")});
	CHECK(r.status == 3);
	CHECK((Holds(r.err, "cannot find") && Holds(r.err, "forktail record --keep 10m -o")));
	r = run({program("forktail"), "watch", dir.path(), "--json"});
	CHECK(r.status == 2);
	CHECK(Holds(r.err, "--json needs --once"));
	CHECK(run({program("forktail"), "watch"}).status == 2);
	CHECK(run({program("forktail"), "watch", dir.path(), "--interval", "0"}).status == 2);
	r = run({program("forktail"), "watch", dir.path(), "--once"}, Seconds(30));
	CHECK(r.status == 3);
	CHECK(Holds(r.err, "nothing is recorded in"));
	write_file(dir.file("text"),
		   "this is no recording, whatever it is called, and it is long enough to be one");
	r = run({program("forktail"), "watch", dir.file("text"), "--once"}, Seconds(30));
	CHECK(r.status == 3);
	CHECK(LinesOf(r.err).size() == 1);
}

TEST_CASE("watch: requests are in the header, and the key c lists the slowest clients")
{
	if (!CanRun())
		return;
	TempDir dir;
	Redis redis;
	const std::string ring = dir.file("ring");
	const auto recorder = Record({redis.pid()}, ring, {"--requests=1/1"});
	Process load(
	    {"redis-benchmark", "-s", redis.socket(), "-t", "get", "-n", "100000000", "-c", "2", "-q"});
	Screen screen("env LC_ALL=C.UTF-8 TERM=tmux-256color " + program("forktail") + " watch " + ring, 80,
		      24);
	screen.With({"requests ", "/s  p99 ", " in the server", "c clients"});
	screen.Press("c");
	const std::string text = screen.With({"slowest clients of the minute", "redis-benchmark", "100 %"});
	CHECK_FALSE(Holds(text, "longest iteration of the minute"));
	for (const std::string &line : LinesOf(text))
		CHECK(Letters(line) <= 80);
	screen.Press("c");
	screen.With({"longest iteration of the minute"});
	load.signal(SIGTERM);
}
