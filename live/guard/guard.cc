// SPDX-License-Identifier: MIT
// The guard.
//
// One thread with an event loop: twice a second a timer reads the ring, and checks the children and the
// configuration file.
#include "live/guard.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <filesystem>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/confine.h"
#include "common/format.h"
#include "common/json.h"
#include "common/metrics.h"
#include "common/text.h"
#include "jobs.h"
#include "live/config.h"
#include "live/follow.h"
#include "metrics.h"
#include "recording/recording.h"

namespace forktail::live::guard
{

namespace
{

constexpr struct timeval kPeriod = {0, 500'000};
constexpr int kMostPolls = 8; // per period, while it catches up with the ring
constexpr uint64_t kTextfileNs = 5'000'000'000;
constexpr uint64_t kStatusNs = 10'000'000'000;
constexpr uint64_t kRoom = 16 << 20; // with less free space a disk counts as full

uint64_t RealNow()
{
	struct timespec t = {};
	clock_gettime(CLOCK_REALTIME, &t);
	return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

std::string DirectoryOf(const std::string &path)
{
	std::error_code ec;
	if (std::filesystem::is_directory(path, ec))
		return path;
	const std::string parent = std::filesystem::path(path).parent_path();
	return parent.empty() ? "." : parent;
}

// Where a Unix socket is to be removed at the end; "": it is none.
std::string DirectoryOfSocket(const std::string &address)
{
	return address.starts_with('/') ? DirectoryOf(std::filesystem::path(address).parent_path()) : "";
}

// State of a file: it differs if the file was rewritten.
struct Stamp {
	struct timespec changed = {};
	ino_t inode = 0;
	off_t size = 0;
	bool operator==(const Stamp &o) const
	{
		return changed.tv_sec == o.changed.tv_sec && changed.tv_nsec == o.changed.tv_nsec &&
		       inode == o.inode && size == o.size;
	}
};

Stamp StampOf(const std::string &path)
{
	struct stat s = {};
	if (path.empty() || stat(path.c_str(), &s))
		return {};
	return {s.st_mtim, s.st_ino, s.st_size};
}

class Guard
{
public:
	Guard(const GuardOptions &options, const Config &config, Runner *runner)
	    : options_(options), config_(config), follower_(options.path, {}), runner_(*runner),
	      jobs_(DirectoryOf(options.path), options.forktail, runner), planner_(config.limits.cooldown_ns),
	      stamp_(StampOf(options.config))
	{
		Use();
	}
	~Guard()
	{
		for (struct event *e : events_)
			event_free(e);
	}
	bool Begin(struct event_base *base, std::string *error);

private:
	static void OnTick(evutil_socket_t, short, void *arg) { static_cast<Guard *>(arg)->Tick(); }
	static void OnReload(evutil_socket_t, short, void *arg) { static_cast<Guard *>(arg)->Reload(); }
	static void OnStop(evutil_socket_t, short, void *arg)
	{
		event_base_loopbreak(static_cast<Guard *>(arg)->base_);
	}
	static void OnChild(evutil_socket_t, short, void *arg) { static_cast<Guard *>(arg)->LookAfter(); }

	bool Add(struct event *event, const struct timeval *period);
	void Use();
	void Tick();
	void Follow();
	void Fire(const Firing &fired, const Trigger &trigger);
	bool HandleRequest(const std::string &name, std::string *answer);
	Trigger TriggerOf(const Firing &fired) const;
	void LookAfter();
	void MakeDue();
	std::vector<CommandOf> CommandsOf(const Plan &plan) const;
	void Reload();
	void LookAtConfig();
	void WriteMetrics();
	void ReportToManager();
	bool DiskIsFull() const;

	const GuardOptions options_;
	Config config_;
	live::Follower follower_;
	TriggerMatcher matcher_;
	Runner &runner_;
	SnapshotJobs jobs_;
	Planner planner_;
	Control control_;
	metrics::Metrics metrics_;
	std::unique_ptr<common::MetricsServer> server_;
	struct event_base *base_ = nullptr;
	std::vector<struct event *> events_;
	Stamp stamp_, changing_;
	std::string last_error_; // of the ring, as last printed
	const uint64_t began_ns_ = ft_now_ns();
	bool ready_ = false;
	std::string textfile_error_;
	uint64_t textfile_ns_ = 0, status_ns_ = 0, watchdog_ns_ = 0;
};

void Guard::Use()
{
	matcher_.Use(config_.triggers);
	jobs_.Use(config_.limits);
	planner_.SetCooldown(config_.limits.cooldown_ns);
	for (const Trigger &t : config_.triggers)
		if (!t.command.argv.empty() && geteuid() == 0) {
			Say(Level::Warning,
			    "the commands in the configuration are not run because root owns the ring. "
			    "Start the recorder with --user.");
			break;
		}
}

bool Guard::Add(struct event *event, const struct timeval *period)
{
	if (!event)
		return false;
	events_.push_back(event);
	return event_add(event, period) == 0;
}

bool Guard::Begin(struct event_base *base, std::string *error)
{
	base_ = base;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, SIG_IGN); // the recorder's
	if (!Add(event_new(base, -1, EV_PERSIST, OnTick, this), &kPeriod) ||
	    !Add(evsignal_new(base, SIGHUP, OnReload, this), nullptr) ||
	    !Add(evsignal_new(base, SIGTERM, OnStop, this), nullptr) ||
	    !Add(evsignal_new(base, SIGINT, OnStop, this), nullptr) ||
	    !Add(evsignal_new(base, SIGCHLD, OnChild, this), nullptr) ||
	    !Add(event_new(base, runner_.fd(), EV_READ | EV_PERSIST, OnChild, this), nullptr)) {
		*error = "cannot wait for events";
		return false;
	}
	if (!config_.control.empty() &&
	    !control_.Listen(
		base, config_.control,
		[this](const std::string &name, std::string *answer) { return HandleRequest(name, answer); },
		error))
		return false;
	if (!config_.metrics.empty()) {
		server_ = common::MetricsServer::Open(
		    base, config_.metrics,
		    [this](metrics::MetricsFormat format) { return metrics_.Text(follower_, format); },
		    error);
		if (!server_)
			return false;
	}
	return true;
}

void Guard::Tick()
{
	LookAtConfig();
	Follow();
	LookAfter();
	WriteMetrics();
	ReportToManager();
}

void Guard::Follow()
{
	live::Batch batch;
	for (int polls = 0; polls < kMostPolls; polls++) {
		std::string error;
		std::vector<Firing> fired;
		const bool good = follower_.Poll(&batch, &error);
		if (!good && error != last_error_)
			Say(Level::Warning, error);
		last_error_ = good ? "" : error;
		if (!good)
			return;
		metrics_.Take(follower_, batch);
		matcher_.See(batch, follower_.servers(), follower_.threads(), &fired);
		for (const Firing &f : fired)
			Fire(f, TriggerOf(f));
		if (!batch.more)
			return;
	}
}

Trigger Guard::TriggerOf(const Firing &fired) const
{
	if (const Trigger *t = FindTrigger(config_.triggers, fired.trigger))
		return *t;
	Trigger trigger = PlainTrigger({});
	trigger.name = fired.trigger;
	return trigger;
}

void Guard::Fire(const Firing &fired, const Trigger &trigger)
{
	if (planner_.Fire(fired, trigger.before_ns, trigger.after_ns) == FireResult::Begun)
		Say(Level::Info, trigger.name + " fired: " + fired.what +
				     (fired.server.empty() ? "" : " on " + fired.server));
}

bool Guard::HandleRequest(const std::string &name, std::string *answer)
{
	const Trigger *trigger = FindTrigger(config_.triggers, name);
	if (!trigger || trigger->rule.what != What::Named) {
		*answer = !trigger ? "the configuration has no trigger of that name"
				   : "that trigger has a rule. It fires only by its rule.";
		return false;
	}
	const uint64_t now = ft_now_ns();
	const Firing fired{name, trigger->server, "requested", now, now};
	switch (planner_.Fire(fired, trigger->before_ns, trigger->after_ns)) {
	case FireResult::Begun:
		*answer = name + " fired: a snapshot will be in " + jobs_.directory();
		return true;
	case FireResult::Added:
		*answer = name + " fired: added to the snapshot in progress";
		return true;
	case FireResult::Counted:
		break;
	}
	*answer = name + " fired during the cooldown: no snapshot. The cooldown ends in " +
		  common::FormatDuration(planner_.cool_ns() - now) + ".";
	return false;
}

void Guard::LookAfter()
{
	if (runner_.gone()) { // forktail-start starts another guard
		event_base_loopbreak(base_);
		return;
	}
	if (jobs_.Look()) {
		planner_.Made(ft_now_ns());
		metrics_.Snapshot(jobs_.last_trigger(), jobs_.last_made());
	}
	MakeDue();
}

void Guard::MakeDue()
{
	const uint64_t now = ft_now_ns();
	const Plan plan = planner_.Due(follower_.newest_ns(), now);
	if (plan.empty())
		return;
	uint64_t at = follower_.RealtimeNs(plan.fired[0].start_ns);
	at = at ? at : RealNow() - (now - std::min(now, plan.fired[0].start_ns));
	if (!jobs_.Take(plan, at, CommandsOf(plan))) {
		planner_.Made(now);
		metrics_.Snapshot(plan.fired[0].trigger, false);
	}
}

std::vector<CommandOf> Guard::CommandsOf(const Plan &plan) const
{
	std::vector<CommandOf> commands;
	for (const Firing &f : plan.fired) {
		const Trigger trigger = TriggerOf(f);
		const bool there = std::any_of(commands.begin(), commands.end(), [&](const CommandOf &c) {
			return c.command.argv == trigger.command.argv;
		});
		if (!trigger.command.argv.empty() && !there)
			commands.push_back({trigger.name, trigger.command});
	}
	return commands;
}

void Guard::LookAtConfig()
{
	const Stamp stamp = StampOf(options_.config);
	// The same state twice: no process is writing the file.
	if (!(stamp == stamp_) && stamp == changing_)
		Reload();
	changing_ = stamp;
}

void Guard::Reload()
{
	Config config;
	std::string error;
	stamp_ = StampOf(options_.config);
	if (!ReadOptions(options_, &config, &error)) {
		Say(Level::Error, error + ". The previous configuration stays in effect.");
		return;
	}
	if (config.record != config_.record)
		Say(Level::Warning, "[record] has changed. Restart the recorder to apply it.");
	if (config.metrics != config_.metrics || config.metrics_textfile != config_.metrics_textfile ||
	    config.control != config_.control)
		Say(Level::Warning, "[metrics] or [control] has changed. Restart the recorder to apply it.");
	Say(Level::Notice,
	    "reloaded the configuration: " + common::Plural(config.triggers.size(), "trigger", "triggers"));
	config_ = config;
	Use();
}

void Guard::WriteMetrics()
{
	const uint64_t now = ft_now_ns();
	std::string error;
	if (config_.metrics_textfile.empty() || now - textfile_ns_ < kTextfileNs)
		return;
	textfile_ns_ = now;
	if (!metrics::WriteMetricsTextfile(config_.metrics_textfile,
					   metrics_.Text(follower_, metrics::MetricsFormat::Text), &error) &&
	    error != textfile_error_)
		Say(Level::Warning, error);
	textfile_error_ = error;
}

bool Guard::DiskIsFull() const
{
	struct statvfs disk = {};
	return statvfs(options_.path.c_str(), &disk) == 0 &&
	       static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize < kRoom;
}

void Guard::ReportToManager()
{
	const uint64_t now = ft_now_ns(), watchdog = WatchdogUs() * 1000;
	// What a previous recorder wrote seconds ago is no sign of this one.
	if (!ready_ && follower_.recording() && follower_.newest_ns() > began_ns_) {
		ready_ = true;
		Notify("READY=1");
	}
	// A recorder that writes nothing hangs, unless it sends this message by itself because the disk
	// refuses to write. Without the message systemd restarts the service.
	if (watchdog && now - watchdog_ns_ > watchdog / 3 && (follower_.recording() || DiskIsFull())) {
		watchdog_ns_ = now;
		Notify("WATCHDOG=1");
	}
	if (now - status_ns_ < kStatusNs)
		return;
	status_ns_ = now;
	const live::Follower::Buffer buffer = follower_.buffer();
	uint64_t taken = 0;
	for (const auto &[name, count] : jobs_.figures().taken)
		taken += count;
	Notify("STATUS=" + std::string(follower_.recording() ? "recording" : "nothing is recorded") + "; " +
	       common::FormatDuration(buffer.newest_ns - buffer.oldest_ns) + " in " +
	       common::FormatBytes(buffer.bytes) + "; " + common::Plural(taken, "snapshot", "snapshots") +
	       " taken");
}

} // namespace

bool RunGuard(const GuardOptions &options, const Config &config, std::string *error)
{
	struct event_base *base = event_base_new();
	if (!base) {
		*error = "cannot wait for events";
		return false;
	}
	// Before the guard limits itself and starts anything else; it ends last.
	Runner runner;
	const std::string directory = DirectoryOf(options.path);
	bool good = runner.Begin(options, config, directory + "/snapshots", error);
	if (good) {
		Guard guard(options, config, &runner);
		const common::Allowed allowed = {
		    .writable = {directory, config.metrics_textfile},
		    .removable = {DirectoryOfSocket(config.control), DirectoryOfSocket(config.metrics)},
		    .children = true,
		    .sockets = true};
		// Sockets are opened before; the ring is not read before.
		good = guard.Begin(base, error) && common::Confine(allowed, error);
		if (good)
			event_base_dispatch(base);
		if (good && runner.gone()) {
			*error = "the process that starts programs has ended";
			good = false;
		}
		Notify("STOPPING=1");
	}
	event_base_free(base);
	return good;
}

namespace
{

constexpr int kMostCallers = 16, kBacklog = 16;
constexpr struct timeval kPatience = {2, 0};

} // namespace

// One connection. Its timer starts with the connection, so a slow sender cannot hold it open.
struct Caller {
	Control *control;
	struct bufferevent *stream;
	struct event *timer;
	bool answered = false;

	static void Accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *, int,
			   void *arg)
	{
		auto *control = static_cast<Control *>(arg);
		struct event_base *base = evconnlistener_get_base(listener);
		if (control->callers_ == kMostCallers) {
			close(fd);
			return;
		}
		auto *caller = new Caller{control, nullptr, nullptr};
		control->callers_++;
		caller->stream = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
		caller->timer = event_new(base, -1, 0, TimedOut, caller);
		if (!caller->stream || !caller->timer) {
			caller->End();
			return;
		}
		bufferevent_setwatermark(caller->stream, EV_READ, 0, kMostAsked + 1);
		bufferevent_setcb(caller->stream, OnRead, OnWritten, OnEvent, caller);
		bufferevent_enable(caller->stream, EV_READ | EV_WRITE);
		event_add(caller->timer, &kPatience);
	}

	static void OnRead(struct bufferevent *, void *arg) { static_cast<Caller *>(arg)->Read(); }
	static void OnWritten(struct bufferevent *, void *arg)
	{
		if (static_cast<Caller *>(arg)->answered)
			static_cast<Caller *>(arg)->End();
	}
	static void OnEvent(struct bufferevent *, short, void *arg) { static_cast<Caller *>(arg)->End(); }
	static void TimedOut(evutil_socket_t, short, void *arg) { static_cast<Caller *>(arg)->End(); }

	void Read()
	{
		struct evbuffer *input = bufferevent_get_input(stream);
		size_t length = 0;
		char *line = answered ? nullptr : evbuffer_readln(input, &length, EVBUFFER_EOL_CRLF);
		if (line) {
			std::string sentence;
			const std::string name(line, length);
			free(line);
			const bool yes = control->handler_(name, &sentence);
			Answer((yes ? "yes " : "no ") + sentence);
		} else if (!answered && evbuffer_get_length(input) > kMostAsked) {
			Answer("no the name is too long for a trigger");
		}
	}

	void Answer(const std::string &text)
	{
		answered = true;
		bufferevent_disable(stream, EV_READ);
		bufferevent_write(stream, (text + "\n").data(), text.size() + 1);
	}

	void End()
	{
		if (stream)
			bufferevent_free(stream);
		if (timer)
			event_free(timer);
		control->callers_--;
		delete this;
	}
};

Control::~Control()
{
	if (!listener_)
		return;
	evconnlistener_free(listener_);
	// After a restart the socket there may be the next guard's.
	struct stat there = {};
	if (lstat(path_.c_str(), &there) == 0 && there.st_ino == inode_)
		unlink(path_.c_str());
}

bool Control::Listen(struct event_base *base, const std::string &path, RequestHandler handler,
		     std::string *error)
{
	struct sockaddr_un at = {};
	struct stat there = {};
	at.sun_family = AF_UNIX;
	*error = "cannot listen on " + path + ": ";
	if (path.size() >= sizeof(at.sun_path)) {
		*error += strerror(ENAMETOOLONG);
		return false;
	}
	memcpy(at.sun_path, path.c_str(), path.size());
	if (lstat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode))
		unlink(path.c_str());
	handler_ = std::move(handler);
	path_ = path;
	listener_ =
	    evconnlistener_new_bind(base, Caller::Accept, this, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC,
				    kBacklog, reinterpret_cast<struct sockaddr *>(&at), sizeof(at));
	if (listener_ && chmod(path.c_str(), 0660) == 0 && lstat(path.c_str(), &there) == 0) {
		inode_ = there.st_ino;
		return true;
	}
	*error += strerror(errno);
	return false;
}

// Each message has a new socket, because the manager may have made another one since.

namespace
{

std::string notify_path;
unsigned long watchdog_us;
bool journal;

} // namespace

void Say(Level level, const std::string &text)
{
	std::string line = journal ? "<" + std::to_string(static_cast<int>(level)) + ">" : "";
	line += "forktail-guard: " + common::Visible(text) + "\n";
	fputs(line.c_str(), stderr);
}

void NotifyBegin()
{
	if (const char *path = getenv("NOTIFY_SOCKET"); path && (*path == '/' || *path == '@'))
		notify_path = path;
	if (const char *us = getenv("WATCHDOG_USEC"))
		watchdog_us = strtoul(us, nullptr, 10);
	journal = getenv("JOURNAL_STREAM") || !notify_path.empty();
	for (const char *name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
		unsetenv(name);
	setvbuf(stderr, nullptr, _IOLBF, 0);
}

void Notify(const std::string &state)
{
	const int manager = manager_connect(notify_path.c_str());
	manager_send(manager, state.data(), state.size());
	if (manager >= 0)
		close(manager);
}

unsigned long WatchdogUs()
{
	return watchdog_us;
}

// Merges the guard's command line and the configuration file: --on adds to the file's triggers, the other
// options override the file.

bool ReadOptions(const GuardOptions &options, Config *config, std::string *error)
{
	*config = {};
	if (!options.config.empty() && !ReadConfig(options.config, config, error))
		return false;
	for (const std::string &text : options.rules) {
		Rule rule;
		if (!ParseRule(text, &rule, error))
			return false;
		Trigger trigger = PlainTrigger(rule);
		// Two rules of the same name: iteration, iteration-2.
		for (int n = 2; FindTrigger(config->triggers, trigger.name); n++)
			trigger.name = rule.name + "-" + std::to_string(n);
		config->triggers.push_back(trigger);
	}
	if (!options.metrics.empty())
		config->metrics = options.metrics;
	if (!options.metrics_textfile.empty())
		config->metrics_textfile = options.metrics_textfile;
	if (options.control)
		config->control = options.path + "/" + kControlName;
	return true;
}

} // namespace forktail::live::guard
