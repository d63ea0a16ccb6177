// SPDX-License-Identifier: MIT
// Converts [record] of the configuration to options of forktail-record, which does not read TOML.
#include "live/config.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "common/text.h"
#include "common/toml.h"

namespace forktail::live::guard
{

// Adds targets first, then options. *directory is the directory of the ring.
void ReadRecord(common::Table *table, std::vector<std::string> *words, std::string *directory);

namespace
{

using common::Table;

constexpr uint64_t kSecond = 1'000'000'000, kMillisecond = 1'000'000;
constexpr uint64_t kHour = 3600 * kSecond, kDay = 24 * kHour;
constexpr size_t kMostTriggers = 100;

// A trigger name is part of file names and comes from callers without privileges.
bool IsName(const std::string &name)
{
	return !name.empty() && name.size() <= 40 && isalnum(static_cast<unsigned char>(name[0])) &&
	       std::all_of(name.begin(), name.end(),
			   [](unsigned char c) { return isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

void ReadCommand(common::Table *table, Command *command)
{
	if (!table->Has("exec"))
		return;
	command->argv.clear();
	table->Words("exec", &command->argv);
	if (!command->argv.empty() && command->argv[0].compare(0, 1, "/") != 0)
		table->Refuse("`exec` must start with the absolute path of a program, because no shell is "
			      "used, not \"" +
				  command->argv[0] + "\"",
			      "exec");
}

void ReadTimes(common::Table *table, Trigger *trigger)
{
	table->TimeWithin("before", 0, kHour, &trigger->before_ns);
	table->TimeWithin("after", 0, kHour, &trigger->after_ns);
}

void ReadSnapshots(common::Table *table, Config *config, Trigger *common)
{
	SnapshotLimits *l = &config->limits;
	std::string full = "oldest-go";
	ReadTimes(table, common);
	ReadCommand(table, &common->command);
	table->TimeWithin("cooldown", 0, kDay, &l->cooldown_ns);
	table->Count("keep", 1, 10000, &l->count);
	table->Size("bytes", &l->bytes);
	table->Text("when-full", &full);
	if (full != "oldest-go" && full != "stop")
		table->Refuse("`when-full` must be \"oldest-go\" or \"stop\", not \"" + full + "\"",
			      "when-full");
	l->stop_when_full = full == "stop";
	table->Flag("explain", &l->explain);
	table->TimeWithin("explain-time", kSecond, kHour, &l->explain_ns);
	table->Size("explain-memory", &l->explain_bytes);
	table->TimeWithin("exec-time", 100 * kMillisecond, kHour, &l->command_ns);
}

void ReadTrigger(common::Table *table, const Trigger &common, Config *config)
{
	Trigger trigger = common;
	std::string rule, error;
	table->Text("on", &rule);
	if (table->Has("on") && !ParseRule(rule, &trigger.rule, &error))
		table->Refuse(error, "on");
	trigger.name = trigger.rule.name;
	table->Text("name", &trigger.name);
	table->Text("server", &trigger.server);
	ReadTimes(table, &trigger);
	ReadCommand(table, &trigger.command);
	if (!table->Has("on") && !table->Has("name"))
		table->Refuse("a [[trigger]] needs a rule (`on`) or a name for forktail trigger (`name`)");
	if (!IsName(trigger.name))
		table->Refuse("the `name` of a trigger consists of at most 40 letters, digits, '-', '_' and "
			      "'.', not \"" +
				  trigger.name + "\"",
			      "name");
	if (FindTrigger(config->triggers, trigger.name))
		table->Refuse("two triggers have the name \"" + trigger.name + "\": change one `name`");
	if (config->triggers.size() == kMostTriggers)
		table->Refuse("more than " + std::to_string(kMostTriggers) + " triggers are configured");
	config->triggers.push_back(trigger);
}

void ReadMetrics(common::Table *table, Config *config)
{
	table->Text("listen", &config->metrics);
	table->Text("textfile", &config->metrics_textfile);
}

void ReadControl(common::Table *table, Config *config)
{
	table->Text("socket", &config->control);
	if (table->Has("socket") && config->control.compare(0, 1, "/") != 0)
		table->Refuse("`socket` must be an absolute path, not \"" + config->control + "\"", "socket");
}

} // namespace

Trigger PlainTrigger(const Rule &rule)
{
	Trigger trigger;
	trigger.rule = rule;
	trigger.name = rule.name;
	trigger.before_ns = kBeforeNs;
	trigger.after_ns = kAfterNs;
	return trigger;
}

const Trigger *FindTrigger(const std::vector<Trigger> &triggers, const std::string &name)
{
	const auto t =
	    std::find_if(triggers.begin(), triggers.end(), [&](const Trigger &x) { return x.name == name; });
	return t == triggers.end() ? nullptr : &*t;
}

bool ParseConfig(const std::string &text, const std::string &path, Config *config, std::string *error)
{
	*config = {};
	return common::ReadTables(
	    text, path, "the configuration",
	    [&](common::Table *table) {
		    Trigger common = PlainTrigger({});
		    table->Inner("record",
				 [&](Table *t) { ReadRecord(t, &config->record, &config->directory); });
		    table->Inner("metrics", [&](Table *t) { ReadMetrics(t, config); });
		    table->Inner("control", [&](Table *t) { ReadControl(t, config); });
		    table->Inner("snapshots", [&](Table *t) { ReadSnapshots(t, config, &common); });
		    table->Each("trigger", "a [[trigger]]",
				[&](Table *t) { ReadTrigger(t, common, config); });
		    table->End();
	    },
	    error);
}

bool ReadConfig(const std::string &path, Config *config, std::string *error)
{
	std::ifstream file(path);
	std::ostringstream text;
	if (file && file.peek() != std::ifstream::traits_type::eof()) // of an empty file, << would fail
		text << file.rdbuf();
	if (!file || !text) {
		*error = "cannot read " + path + ": " + strerror(errno);
		return false;
	}
	return ParseConfig(text.str(), path, config, error);
}

// Checks everything that does not depend on the host, for --check. The recorder checks that targets exist.

namespace
{

using common::Table;

constexpr const char *kTargets[] = {"name", "port", "unix", "pid", "container", "cgroup", "unit"};

void AddTargets(common::Table *table, std::vector<std::string> *words)
{
	for (const char *key : kTargets) {
		std::vector<std::string> values;
		table->Words(key, &values);
		for (const std::string &value : values) {
			uint64_t port = 0;
			if (value.empty())
				table->Refuse("`" + std::string(key) + "` is empty", key);
			if (std::string(key) == "port" && !parse_count(value.c_str(), 1, 65535, &port))
				table->Refuse(
				    "`port` must be a number from 1 to 65535, not \"" + value + "\"", key);
			words->push_back("--" + std::string(key));
			words->push_back(value);
		}
	}
}

// Adds --no-KEY if the flag is false.
void AddNo(common::Table *table, const char *key, std::vector<std::string> *words)
{
	bool wanted = true;
	table->Flag(key, &wanted);
	if (!wanted)
		words->push_back("--no-" + std::string(key));
}

void AddKeep(common::Table *table, std::vector<std::string> *words)
{
	std::string keep = "10m,1GB";
	ring_limits limits;
	table->Text("keep", &keep);
	if (!ring_limits_parse(keep.c_str(), &limits))
		table->Refuse("`keep` must be " RING_LIMITS_WANTED ", not \"" + keep + "\"", "keep");
	words->insert(words->end(), {"--keep", keep});
}

void AddExact(common::Table *table, std::vector<std::string> *words)
{
	std::vector<std::string> way;
	table->Words("exact", &way);
	if (way.empty())
		return;
	if (way.size() > 1 || (way[0] != "fentry" && way[0] != "tracepoints"))
		table->Refuse("`exact` must be \"fentry\" or \"tracepoints\"", "exact");
	words->push_back("--exact=" + way[0]);
}

void AddRequests(common::Table *table, std::vector<std::string> *words)
{
	std::string sample;
	uint32_t one_in;
	table->Text("requests", &sample);
	if (!sample.empty() && !parse_sample(sample.c_str(), &one_in))
		table->Refuse("`requests` must be " SAMPLE_WANTED ", not \"" + sample + "\"", "requests");
	if (!sample.empty())
		words->push_back("--requests=" + sample);
	bool hash_clients = false;
	table->Flag("hash-clients", &hash_clients);
	if (hash_clients && sample.empty())
		table->Refuse("`hash-clients` needs `requests`", "hash-clients");
	if (hash_clients)
		words->push_back("--hash-clients");
	uint64_t keys = 0;
	bool hash_keys = false;
	table->Count("keys", 1, KEY_BYTES_MOST, &keys);
	table->Flag("hash-keys", &hash_keys);
	if (keys && sample.empty())
		table->Refuse("`keys` needs `requests`", "keys");
	if (keys)
		words->insert(words->end(), {"--keys", std::to_string(keys)});
	if (hash_keys && !keys)
		table->Refuse("`hash-keys` needs `keys`", "hash-keys");
	if (hash_keys)
		words->push_back("--hash-keys");
}

} // namespace

void ReadRecord(common::Table *table, std::vector<std::string> *words, std::string *directory)
{
	AddTargets(table, words);
	table->Text("directory", directory);
	if (table->Has("directory") && (directory->empty() || (*directory)[0] != '/'))
		table->Refuse("`directory` must be an absolute path, not \"" + *directory + "\"",
			      "directory");
	if (table->Has("directory"))
		words->insert(words->end(), {"-o", *directory});
	if (table->Has("keep") || table->Has("directory"))
		AddKeep(table, words);
	for (const char *key : {"user", "min-span"})
		if (table->Has(key)) {
			std::string value;
			table->Text(key, &value);
			words->insert(words->end(), {"--" + std::string(key), value});
		}
	bool light = false;
	table->Flag("light", &light);
	if (light)
		words->push_back("--light");
	AddExact(table, words);
	AddRequests(table, words);
	if (light && table->Has("exact"))
		table->Refuse("`light` and `exact` are mutually exclusive", "exact");
	for (const char *key : {"samples", "client"})
		AddNo(table, key, words);
	bool softirqs = true;
	table->Flag("softirqs", &softirqs);
	if (!softirqs)
		words->push_back("--softirqs=none");
}

// An error names the first mistake and the accepted values.

namespace
{

constexpr char kFigures[] = "iteration, stall, stall(CAUSE), rate(CAUSE) or drops";

std::string WithoutSpaces(const std::string &text)
{
	std::string out;
	for (const char c : text)
		if (!isspace(static_cast<unsigned char>(c)))
			out += c;
	return out;
}

// "softirq" means all of its vectors, "softirq/net_rx" one of them.
bool FindCauses(const std::string &name, std::bitset<analysis::kTimelineCauses> *causes)
{
	for (int i = 0; i < analysis::kTimelineCauses; i++) {
		const std::string one = analysis::kCauseTable[i].name;
		if (analysis::kCauseTable[i].kind == analysis::Kind::Stall &&
		    (one == name || one.compare(0, name.size() + 1, name + "/") == 0))
			causes->set(i);
	}
	return causes->any();
}

bool ReadFigure(const std::string &figure, Rule *rule, std::string *error)
{
	const size_t open = figure.find('(');
	const std::string typed = figure.substr(0, open);
	const std::string word = typed == "turn" ? "iteration" : typed; // an alias for older configurations
	static const struct {
		const char *word;
		What what;
		bool may_have, must_have;
	} words[] = {{"iteration", What::Iteration, false, false},
		     {"stall", What::Stall, true, false},
		     {"rate", What::Rate, true, true},
		     {"drops", What::Drops, false, false}};
	const auto w =
	    std::find_if(std::begin(words), std::end(words), [&](const auto &x) { return word == x.word; });
	if (w == std::end(words)) {
		*error = "unknown figure \"" + figure + "\": use " + kFigures;
		return false;
	}
	rule->what = w->what;
	rule->name = word;
	rule->text = word;
	if (open == std::string::npos) {
		for (int i = 0; w->may_have && i < analysis::kStallCauses; i++)
			rule->causes.set(i);
		if (w->must_have)
			*error = word + " needs a cause: " + word + "(page-in)";
		return !w->must_have;
	}
	if (!w->may_have || figure.back() != ')') {
		*error = w->may_have ? "the closing bracket is missing: write " + word + "(CAUSE)"
				     : word + " takes no cause: write " + word + " without brackets";
		return false;
	}
	const std::string cause = figure.substr(open + 1, figure.size() - open - 2);
	if (!FindCauses(cause, &rule->causes)) {
		*error = "unknown stall \"" + cause + "\": docs/reference/causes.md lists all causes";
		return false;
	}
	rule->name += "-" + cause;
	rule->text = word + "(" + cause + ")";
	return true;
}

bool ReadLimit(const std::string &value, Rule *rule, std::string *error)
{
	const char *rest = value.c_str();
	switch (rule->what) {
	case What::Iteration:
	case What::Stall:
		if (parse_duration(value.c_str(), TIME_ANY, 0, &rule->limit_ns) && rule->limit_ns)
			return true;
		*error = "the limit of " + rule->text + " must be a time such as 50ms, not \"" + value + "\"";
		return false;
	case What::Rate:
		if (parse_number(&rest, &rule->limit) && strcmp(rest, "/s") == 0)
			return true;
		*error =
		    "the limit of " + rule->text + " must be a rate such as 100/s, not \"" + value + "\"";
		return false;
	case What::Drops:
	case What::Named:
		break;
	}
	if (parse_number(&rest, &rule->limit) && !*rest)
		return true;
	*error = "the limit of drops must be a number such as 0, not \"" + value + "\"";
	return false;
}

} // namespace

bool ParseRule(const std::string &text, Rule *rule, std::string *error)
{
	const std::string words = WithoutSpaces(text);
	const size_t sign = words.find_first_of("<>=");
	std::string why;
	*rule = {};
	if (words.empty()) {
		*error = "the rule is empty: write one such as \"iteration > 50ms\"";
		return false;
	}
	if (sign == std::string::npos || words[sign] != '>' || words.compare(sign, 2, ">=") == 0) {
		*error =
		    "the rule \"" + text + "\" is invalid: write FIGURE > LIMIT, where FIGURE is " + kFigures;
		return false;
	}
	const std::string figure = words.substr(0, sign), value = words.substr(sign + 1);
	if (!ReadFigure(figure, rule, &why) || !ReadLimit(value, rule, &why)) {
		*error = "the rule \"" + text + "\" is invalid: " + why;
		return false;
	}
	rule->text += " > " + value;
	std::replace(rule->name.begin(), rule->name.end(), '/', '-');
	return true;
}

namespace
{

constexpr time_t kPatienceS = 5;
constexpr size_t kMostAnswer = 1000;

// 0 or an errno.
int Talk(int fd, const std::string &path, const std::string &line, std::string *answer)
{
	struct sockaddr_un to = {};
	const struct timeval patience = {kPatienceS, 0};
	char part[256];
	if (path.size() >= sizeof(to.sun_path))
		return ENAMETOOLONG;
	to.sun_family = AF_UNIX;
	memcpy(to.sun_path, path.c_str(), path.size());
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, reinterpret_cast<struct sockaddr *>(&to), sizeof(to)) ||
	    send(fd, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
		return errno;
	while (answer->size() < kMostAnswer && answer->find('\n') == std::string::npos) {
		const ssize_t n = recv(fd, part, sizeof(part), 0);
		if (n <= 0)
			return n ? errno : ECONNRESET;
		answer->append(part, static_cast<size_t>(n));
	}
	return 0;
}

} // namespace

TriggerAnswer AskForTrigger(const std::string &path, const std::string &name, std::string *answer)
{
	struct stat there = {};
	std::string control = path, reply;
	if (stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode))
		control += std::string("/") + kControlName;
	if (name.empty() || name.size() > kMostAsked || name.find('\n') != std::string::npos) {
		*answer = "the name is not valid for a trigger";
		return TriggerAnswer::No;
	}
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int err = fd < 0 ? errno : Talk(fd, control, name + "\n", &reply);
	if (fd >= 0)
		close(fd);
	const bool yes = reply.compare(0, 4, "yes ") == 0, no = reply.compare(0, 3, "no ") == 0;
	if (err || (!yes && !no)) {
		*answer = "no guard answers at " + control + ": " +
			  (err == EAGAIN ? "timeout" : strerror(err ? err : EPROTO));
		return TriggerAnswer::Cant;
	}
	*answer = reply.substr(yes ? 4 : 3, reply.find('\n') - (yes ? 4 : 3));
	return yes ? TriggerAnswer::Yes : TriggerAnswer::No;
}

} // namespace forktail::live::guard
