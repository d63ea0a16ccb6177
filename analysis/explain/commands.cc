// SPDX-License-Identifier: MIT
// Which command ran in an event-loop iteration, and which client sent it.
//
// Four sources know of commands, and none of them all: the server's slow log has the words and the client,
// but only the second; the kernel's log of requests has the client, the size and when the thread read it;
// samples have the function, which several commands may share; the recorder's notes have large requests. What
// they say of one iteration is put together here. The recorder dates an iteration to the nanosecond, and so
// the command in it.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>

#include "analysis/explain.h"
#include "analysis/run.h"
#include "analysis/sender.h"
#include "common/format.h"
#include "common/json.h"
#include "scene.h"

namespace forktail::analysis
{

namespace
{

constexpr uint64_t kSlackNs = 1'000'000;    // the server and the recorder read different clocks
constexpr uint64_t kSampledNs = 25'000'000; // a begin is seen at most two sampling periods late
// Iterations looked at for one entry of the slow log, those of the nearest length.
constexpr size_t kMostIterations = 8;
// With fewer samples an iteration's command is not known from them.
constexpr uint64_t kFewSamples = 5;
// What has this part of an iteration, or of a time, is named alone.
constexpr double kMain = 0.8;
// A request this many times larger than all others of an iteration was the one that took long.
constexpr uint64_t kMuchLarger = 10;

std::string Upper(std::string text)
{
	std::ranges::transform(text, text.begin(),
			       [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
	return text;
}

// A slow command as long as most of an iteration was that iteration.
bool Fits(uint64_t iteration_ns, uint64_t duration_ns)
{
	return iteration_ns <= duration_ns + duration_ns / 10 + kSlackNs;
}

// Whether a command of this duration may have run in the iteration, whose begin may not have been seen
// (FT_SPAN_SAMPLED), and whose end is when the next wait began, by another clock than the server's.
bool Holds(const ft_span &iteration, uint64_t duration_ns)
{
	return iteration.duration_ns + duration_ns / 20 + kSlackNs >= duration_ns;
}

// Whether samples of this activity are of another command than this.
bool Contradicts(const std::string &activity, const std::string &command)
{
	const std::string named =
	    activity.starts_with("command/") ? activity.substr(activity.find('/') + 1) : "";
	return !named.empty() && command != "EXEC" && !MayBe(activity, command) &&
	       !(IsScript(named) && IsScript(command));
}

// The activity that most samples of a thread in [from_ns, to_ns) are of, whatever the kernel did in between:
// faults and interrupts are inside of a command. "" if none is of most, or there are few samples.
std::string MainActivity(const Run &run, const Activities &activities, const Thread &thread, uint64_t from_ns,
			 uint64_t to_ns)
{
	const ft_cpu_sample *first = run.cpu_samples.data() + thread.first_cpu_sample;
	const ft_cpu_sample *end = first + thread.cpu_sample_count;
	std::map<std::string, uint64_t> by_name;
	uint64_t all = 0;
	for (const ft_cpu_sample *s =
		 std::partition_point(first, end, [&](const ft_cpu_sample &x) { return x.t_ns < from_ns; });
	     s < end && s->t_ns < to_ns; s++, all++)
		by_name[activities.Of(static_cast<size_t>(s - run.cpu_samples.data())).name]++;
	const auto most =
	    std::ranges::max_element(by_name, {}, [](const auto &named) { return named.second; });
	return all < kFewSamples || static_cast<double>(most->second) < kMain * static_cast<double>(all)
		   ? ""
		   : most->first;
}

// The client of a connection and its port: "127.0.0.1:5123"; "" if it is unknown.
std::string SenderOf(const Run &run, uint32_t connection)
{
	return connection < run.connections.size() ? NameOfSender(run, run.connections[connection]) : "";
}

// Whether the kernel's log names the command: some have a common name, and encrypted ones none.
bool IsNamed(const std::string &command)
{
	return command != "UNKNOWN" && command != "OTHER";
}

// "40,000 keys", "about 1,200 arguments", by a note of a request with very many.
std::string ArgumentsOf(const common::Json &note)
{
	const std::string command = common::Text(note, "command");
	const bool keys = command == "GET" || command == "GETS" || command == "MGET" || command == "DEL" ||
			  command == "UNLINK" || command == "EXISTS";
	const uint64_t count = common::Whole(note, "arguments");
	return (note.contains("estimated") ? About(count) : common::FormatCount(count)) +
	       (keys ? " keys" : " arguments");
}

// The name of a request's command, in upper case.
std::string CommandOf(const Run &run, uint8_t op)
{
	return op < run.ops.size() ? Upper(run.ops[op]) : "";
}

} // namespace

bool IsVague(const std::string &activity)
{
	return activity == "script" || activity == "command" || activity == "unknown" ||
	       activity.find(" or ") != std::string::npos; // a function of several commands
}

bool MayBe(const std::string &activity, const std::string &command)
{
	const size_t slash = activity.find('/');
	if (slash == std::string::npos)
		return activity != "script" || IsScript(command);
	for (size_t at = slash + 1; at < activity.size();) {
		const size_t end = std::min(activity.find_first_of(", ", at), activity.size());
		if (activity.compare(at, end - at, command) == 0)
			return true;
		at = std::min(activity.find_first_not_of(", ", end), activity.size());
	}
	return false;
}

// The slow log. Entries and iterations are matched by their lengths: an entry's command ended within the
// second that the server notes, in an iteration that is at least as long.

SlowLog::SlowLog(const Run &run) : reports_(run.reports.size())
{
	for (size_t i = 0; i < run.reports.size(); i++)
		if (run.reports[i].kind == "slowlog")
			entries_.push_back({i, SlowEntryOf(run.reports[i]), {}});
}

void SlowLog::Add(const Run &run, const Activities &activities, uint64_t from_ns, uint64_t to_ns)
{
	looked_ |= !run.iterations.empty();
	for (const Thread &t : run.threads) {
		const ft_span *first = run.iterations.data() + t.first_iteration,
			      *end = first + t.iteration_count;
		if (first == end || t.flags & (FT_THREAD_CHILD | FT_THREAD_CLIENT))
			continue;
		for (Entry &e : entries_) {
			const uint64_t early_ns = e.of.t_ns - std::min(e.of.t_ns, e.of.error_ns + kSlackNs),
				       late_ns = e.of.t_ns + e.of.error_ns + kSlackNs;
			for (const ft_span *i = std::partition_point(
				 first, end, [&](const ft_span &s) { return SpanEnd(s) < early_ns; });
			     i != end && i->start_ns <= late_ns; i++)
				if (i->start_ns >= from_ns && i->start_ns < to_ns &&
				    Holds(*i, e.of.duration_ns) &&
				    (i->flags & FT_SPAN_SAMPLED || i->start_ns + e.of.duration_ns <= late_ns))
					e.may.push_back({i->start_ns, SpanEnd(*i), &t, ""});
			Trim(run, activities, &e);
		}
	}
}

// Keeps the iterations of the nearest length, and looks at what ran in them while their samples are loaded.
void SlowLog::Trim(const Run &run, const Activities &activities, Entry *e)
{
	std::ranges::stable_sort(e->may, {}, &May::length_ns);
	if (e->may.size() > kMostIterations) {
		// Those that are shorter than the command are as near as what may be missing of them.
		const auto longer = std::ranges::find_if(
		    e->may, [&](const May &m) { return m.length_ns() >= e->of.duration_ns; });
		const size_t shorter = static_cast<size_t>(longer - e->may.begin());
		if (shorter > kMostIterations / 2)
			e->may.erase(e->may.begin(), longer - static_cast<ptrdiff_t>(kMostIterations / 2));
		e->may.resize(std::min(e->may.size(), kMostIterations));
	}
	for (May &m : e->may)
		if (m.thread) {
			m.activity = MainActivity(run, activities, *m.thread, m.start_ns, m.end_ns);
			m.thread = nullptr;
		}
}

std::vector<std::vector<TimeSpan>> SlowLog::Date() const
{
	if (!looked_)
		return {};
	std::vector<std::vector<TimeSpan>> all(reports_);
	std::vector<const Entry *> order;
	for (const Entry &e : entries_)
		order.push_back(&e);
	// The longest first: few iterations are as long. A command that a script called is found after the
	// script.
	std::ranges::stable_sort(order, std::greater(), [](const Entry *e) { return e->of.duration_ns; });
	std::set<uint64_t> taken; // by start
	for (const Entry *e : order) {
		std::vector<const May *> fit, agree;
		const May *longer = nullptr;
		for (const May &m : e->may) {
			const bool fits = Fits(m.length_ns(), e->of.duration_ns);
			if (fits && Contradicts(m.activity, e->of.command))
				continue;
			if (fits && !taken.contains(m.start_ns))
				fit.push_back(&m);
			else if (!longer || longer->length_ns() < e->of.duration_ns)
				longer = &m;
		}
		// An iteration is longer than its command, unless its begin was not seen.
		if (std::ranges::any_of(fit,
					[&](const May *m) { return m->length_ns() >= e->of.duration_ns; }))
			std::erase_if(fit, [&](const May *m) { return m->length_ns() < e->of.duration_ns; });
		for (const May *m : fit)
			if ((m->activity.starts_with("command/") || m->activity == "script") &&
			    MayBe(m->activity, e->of.command))
				agree.push_back(m);
		// Several commands of one name and length may change places.
		if (!agree.empty())
			fit = {*std::ranges::min_element(agree, {}, [&](const May *m) {
				const uint64_t ns = m->length_ns(), own_ns = e->of.duration_ns;
				return std::max(ns, own_ns) - std::min(ns, own_ns);
			})};
		if (fit.empty() && longer)
			fit = {longer};
		for (const May *m : fit)
			all[e->report].push_back({m->start_ns, m->end_ns});
		if (fit.size() == 1)
			taken.insert(fit[0]->start_ns);
	}
	return all;
}

std::vector<SlowEntry> SlowLog::Entries() const
{
	std::vector<SlowEntry> all(reports_);
	for (const Entry &e : entries_)
		all[e.report] = e.of;
	return all;
}

Commands CommandsOf(const Run &run, const SlowLog &slow_log)
{
	Commands commands = {slow_log.Date(), slow_log.Entries(), {}, {}, {}};
	const std::set<OthersRequest> others(run.others.begin(), run.others.end()); // each reader notes them
	commands.others.assign(others.begin(), others.end());
	for (size_t i = 0; i < commands.ran_in.size(); i++) {
		if (commands.ran_in[i].size() != 1)
			continue;
		const SlowEntry &entry = commands.entries[i];
		SlowEntry &longest = commands.dated[commands.ran_in[i][0].since_ns];
		if (IsDated(commands, i, entry.duration_ns) && entry.duration_ns >= longest.duration_ns)
			longest = entry;
	}
	for (const ServerReport &r : run.reports)
		if (r.kind == "many-arguments") {
			const common::Json note = common::ParseJson(r.text);
			commands.arguments.insert({{r.t_ns, common::Whole(note, "tid")}, ArgumentsOf(note)});
		}
	return commands;
}

SlowEntry SlowEntryOf(const ServerReport &report)
{
	const common::Json j = common::ParseJson(report.text);
	SlowEntry entry = {report.t_ns,
			   common::Whole(j, "duration_us") * 1000,
			   common::Whole(j, "t_error_ns"),
			   "",
			   common::Text(j, "client"),
			   0};
	if (const std::vector<std::string> words = common::Texts(j, "command"); !words.empty()) {
		entry.command = Upper(words[0]);
		entry.arguments = words.size() - 1;
		unsigned long long more = 0; // the server truncates them
		if (sscanf(words.back().c_str(), "... (%llu more arguments)", &more) == 1)
			entry.arguments += more - 1;
	}
	if (entry.client.starts_with("/")) // a Unix socket's path is the same for all
		entry.client.clear();
	return entry;
}

namespace
{

const std::vector<TimeSpan> &RanInOf(const Commands &commands, size_t report)
{
	static const std::vector<TimeSpan> none;
	return report < commands.ran_in.size() ? commands.ran_in[report] : none;
}

} // namespace

bool IsDated(const Commands &commands, size_t report, uint64_t duration_ns)
{
	const std::vector<TimeSpan> &in = RanInOf(commands, report);
	return in.size() == 1 && Fits(in[0].until_ns - in[0].since_ns, duration_ns);
}

bool MayBeOf(const Commands &commands, size_t report, const SlowEntry &entry, uint64_t from_ns,
	     uint64_t to_ns)
{
	if (commands.ran_in.empty()) {
		const uint64_t begin_ns =
		    entry.t_ns - std::min(entry.t_ns, entry.error_ns + entry.duration_ns);
		return begin_ns <= to_ns && entry.t_ns + entry.error_ns >= from_ns;
	}
	// Of most of an iteration: another episode may end or begin in it.
	return std::ranges::any_of(RanInOf(commands, report), [&](const TimeSpan &in) {
		const uint64_t since = std::max(in.since_ns, from_ns), until = std::min(in.until_ns, to_ns);
		return until > since &&
		       (until - since) * 2 >= std::min(in.until_ns - in.since_ns, entry.duration_ns);
	});
}

// The requests of an iteration.

namespace
{

struct Candidate {
	std::string command, sender, arguments, key;
	uint64_t bytes;
};

// Whether the thread read a request in the iteration. A loop that does not wait is cut where samples saw it:
// what was read since the thread last waited counts.
bool ReadIn(const Scene &scene, const ft_span &iteration, uint64_t read_ns)
{
	if (read_ns + kSlackNs >= iteration.start_ns)
		return read_ns <= SpanEnd(iteration);
	if (!(iteration.flags & FT_SPAN_SAMPLED) || read_ns + kSampledNs < iteration.start_ns)
		return false;
	CauseTimes since = {};
	AddTimes(scene.timeline, read_ns, iteration.start_ns, &since);
	return since[Index(Cause::Idle)] == 0;
}

// Requests that the scene's thread read in the iteration, and answered towards its end or later.
std::vector<Candidate> RequestsIn(const Scene &scene, const ft_span &iteration, const std::string &activity)
{
	const Run &run = scene.run;
	const uint64_t from_ns = iteration.start_ns, to_ns = SpanEnd(iteration);
	const uint32_t tid = OwnId(run, scene.thread.tid);
	static const Commands none;
	const Commands &commands = scene.commands ? *scene.commands : none;
	std::vector<Candidate> all;
	auto add = [&](const std::string &command, const std::string &sender, uint64_t read_ns,
		       uint64_t end_ns, uint64_t bytes) {
		if (!ReadIn(scene, iteration, read_ns) ||
		    end_ns < std::max(read_ns, from_ns) + (to_ns - from_ns) / 2 ||
		    (IsNamed(command) && Contradicts(activity, command)))
			return;
		const auto arguments = commands.arguments.find({read_ns, tid});
		const SlowKey *key = FindKey(run, read_ns, tid, false);
		all.push_back({command, sender,
			       arguments == commands.arguments.end() ? "" : arguments->second,
			       key ? KeyText(*key) : "", bytes});
	};
	for (const SlowRequest &r : scene.requests) { // by due_ns
		if (r.due_ns > to_ns)
			break;
		if (!r.read_ns || !r.written_ns || !scene.timelines || r.hop >= scene.timelines->size() ||
		    (*scene.timelines)[r.hop].thread != scene.timeline.thread)
			continue;
		add(CommandOf(run, r.op), SenderOf(run, r.connection), r.read_ns, r.written_ns,
		    uint64_t{r.request_bytes} + r.answer_bytes);
	}
	const std::vector<OthersRequest> &others = commands.others;
	const uint64_t early_ns = iteration.flags & FT_SPAN_SAMPLED ? kSampledNs : kSlackNs;
	const bool one_thread = scene.timelines && scene.timelines->size() == 1;
	for (auto o = std::ranges::lower_bound(others, from_ns - std::min(from_ns, early_ns), {},
					       &OthersRequest::read_ns);
	     o != others.end() && o->read_ns <= to_ns; ++o)
		if (o->reader ? o->reader == scene.thread.tid : one_thread)
			add(Upper(o->command), o->client, o->read_ns, o->answered_ns, o->bytes);
	return all;
}

// The only one, or the one that is much larger than all others.
const Candidate *MainOf(const std::vector<Candidate> &requests)
{
	const Candidate *largest = nullptr;
	uint64_t next = 0;
	for (const Candidate &r : requests)
		if (!largest || r.bytes > largest->bytes) {
			next = largest ? largest->bytes : 0;
			largest = &r;
		} else {
			next = std::max(next, r.bytes);
		}
	return requests.size() == 1 || (largest && largest->bytes >= kMuchLarger * next) ? largest : nullptr;
}

// Whether the scene's thread serves a connection of the load generator.
bool Serves(const Scene &scene, uint32_t connection)
{
	const auto known = std::ranges::find(scene.requests, connection, &SlowRequest::connection);
	const uint32_t server =
	    connection < scene.run.connections.size() ? scene.run.connections[connection].server : 0;
	const size_t hop = known != scene.requests.end() && known->hop != kNoHop ? known->hop : server;
	return scene.timelines && hop < scene.timelines->size() &&
	       (*scene.timelines)[hop].thread == scene.timeline.thread;
}

// The keys of the load generator's requests that may have been the command of the iteration: those that it
// sent before and that were unanswered for most of it. A request sent later only waited. Empty: one is not
// known.
std::set<std::string> LoadKeysIn(const Scene &scene, const ft_span &iteration, const std::string &activity)
{
	constexpr uint64_t back_ns = 60'000'000'000; // a request of an iteration was hardly sent before this
	const Run &run = scene.run;
	const uint64_t from_ns = iteration.start_ns + run.clocks_bound_ns,
		       middle_ns = iteration.start_ns + iteration.duration_ns / 2;
	auto may_be_it = [&](uint64_t sent_ns, uint64_t end_ns, uint32_t connection, size_t op) {
		const std::string command = op < run.op_commands.size() ? Upper(run.op_commands[op]) : "";
		return sent_ns <= from_ns && end_ns + run.clocks_bound_ns >= middle_ns &&
		       Serves(scene, connection) && (command.empty() || !Contradicts(activity, command));
	};
	std::set<std::string> keys;
	for (auto key = std::ranges::upper_bound(run.keys, from_ns, {}, &SlowKey::t_ns);
	     key != run.keys.begin() && std::prev(key)->t_ns + back_ns > from_ns;) {
		--key;
		if (key->of_load && may_be_it(key->t_ns, key->t_ns + key->took_ns, key->id, key->op))
			keys.insert(KeyText(*key));
	}
	for (const SlowRequest &r : scene.requests)
		if (!keys.empty() && may_be_it(r.sent_ns, r.end_ns(), r.connection, r.op) &&
		    !FindKey(run, r.sent_ns, r.connection, true))
			return {};
	return keys;
}

} // namespace

Ran RanIn(const Scene &scene, const ft_span &iteration)
{
	const uint64_t from_ns = iteration.start_ns, to_ns = SpanEnd(iteration);
	Ran ran;
	if (scene.commands)
		if (const auto entry = scene.commands->dated.find(from_ns);
		    entry != scene.commands->dated.end())
			ran = {entry->second.command, entry->second.client, "", entry->second.duration_ns};
	if (scene.activities)
		ran.activity = MainActivity(scene.run, *scene.activities, scene.thread, from_ns, to_ns);
	const std::string activity = ran.command.empty() ? ran.activity : "command/" + ran.command;
	const std::vector<Candidate> requests = RequestsIn(scene, iteration, activity);
	// Without a command that ran most of the time, only a very large request may be what took long.
	const bool in_command =
	    !ran.command.empty() || ran.activity.starts_with("command") || ran.activity == "script";
	const Candidate *one = MainOf(requests);
	if (one && (in_command || !one->arguments.empty())) {
		if (ran.command.empty() && IsNamed(one->command))
			ran.command = one->command;
		ran.sender = one->sender.empty() ? ran.sender : one->sender;
		ran.arguments = one->arguments;
		if (one->arguments.empty() && !one->key.empty())
			ran.keys = {one->key};
	}
	if (requests.empty() && in_command)
		ran.keys = LoadKeysIn(scene, iteration, activity);
	if (ran.command.empty() && ran.activity.starts_with("command/") && !IsVague(ran.activity))
		ran.command = ran.activity.substr(ran.activity.find('/') + 1);
	return ran;
}

std::string Ran::Words() const
{
	return arguments.empty() ? command : "One " + command + " of " + arguments;
}

std::string MainCommandIn(const Scene &scene, Cause cause)
{
	std::map<std::string, uint64_t> by_command;
	EachIteration(scene, [&](const ft_span &iteration) {
		Scene part = scene;
		part.from_ns = std::max(scene.from_ns, iteration.start_ns);
		part.to_ns = std::min(scene.to_ns, SpanEnd(iteration));
		part.totals = {};
		part.holders.clear();
		if (iteration.duration_ns < kSlackNs || MayBeMany(iteration)) // too short for samples
			return;
		Gather(&part);
		const uint64_t ns = part.Total(cause).all_ns();
		if (!ns)
			return;
		const Ran ran = RanIn(scene, iteration);
		std::string name = ran.command;
		if (name.empty() && ran.activity.starts_with("command/"))
			name = ran.activity.substr(ran.activity.find('/') + 1);
		else if (!ran.arguments.empty())
			name = "one " + name + " of " + ran.arguments +
			       (ran.sender.empty() ? "" : " from " + ran.sender);
		by_command[name] += ns;
	});
	const auto most =
	    std::ranges::max_element(by_command, {}, [](const auto &named) { return named.second; });
	return most == by_command.end() || static_cast<double>(most->second) <
					       kMain * static_cast<double>(scene.Total(cause).all_ns())
		   ? ""
		   : most->first;
}

} // namespace forktail::analysis
