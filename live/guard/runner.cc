// SPDX-License-Identifier: MIT
// See runner.h. One packet (MessagePack) per program, and one when it has ended.
#include "runner.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json/json_read.h"
#include "memory_limit.h"
#include "notify.h"

namespace forktail::live::guard
{
namespace
{

constexpr size_t kMostPacket = 4096;
constexpr int kLookMs = 500; // at a program's time limit
constexpr int kNotStartedStatus = common::kNotStarted << 8;
constexpr uint64_t kLeastMemory = 64 << 20;

bool Send(int fd, const common::Json &packet)
{
	const std::vector<uint8_t> bytes = common::Json::to_msgpack(packet);
	return bytes.size() <= kMostPacket &&
	       send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

// Returns 1, 0 at the end, or -1: no packet is there. A packet that is none becomes an empty object.
int Receive(int fd, common::Json *packet)
{
	std::vector<uint8_t> bytes(kMostPacket);
	const ssize_t n = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
	if (n <= 0)
		return n == 0 || (errno != EAGAIN && errno != EINTR) ? 0 : -1;
	bytes.resize(static_cast<size_t>(n));
	*packet = common::Json::from_msgpack(bytes, true, false);
	if (!packet->is_object())
		*packet = common::Json::object();
	return 1;
}

// ---- the process ----

struct Starting {
	const GuardOptions &options;
	Config config;
	const std::string &snapshots;
};

// Each program has its own session, so that its descendants end with it.
common::Command InSession(const std::string &name, uint64_t limit_ns)
{
	return {.name = name,
		.directory = "/",
		.out = STDERR_FILENO,
		.err = STDERR_FILENO,
		.group = common::Group::kSession,
		.group_ends = true,
		.limit_ns = limit_ns,
		.oom_victim = true};
}

common::Command Explanation(const Starting &s, const std::string &snapshot)
{
	// The recorder is in the same cgroup. It must never be the recorder that exceeds the limit.
	const uint64_t most = std::min(s.config.limits.explain_bytes, MemoryLimit() / 2);
	common::Command c = InSession("the explanation", s.config.limits.explain_ns);
	c.argv = {s.options.forktail,
		  "explain",
		  snapshot,
		  "--ascii",
		  "--confined",
		  "--json-to",
		  snapshot + "/." + kExplanations[1],
		  "--memory",
		  std::to_string(std::max(most / 4, kLeastMemory))};
	c.environment = {{"COLUMNS", "100"}, {"NO_COLOR", "1"}};
	c.output = snapshot + "/." + kExplanations[0];
	c.output_flags = O_TRUNC | O_NOFOLLOW;
	c.idle = true;
	c.memory_bytes = most;
	return c;
}

// Without words: the trigger has no command, or root owns the ring.
common::Command TriggersCommand(const Starting &s, const std::string &snapshot, const std::string &name)
{
	const Trigger *trigger = FindTrigger(s.config.triggers, name);
	if (!trigger || trigger->command.argv.empty() || geteuid() == 0)
		return {};
	common::Command c = InSession(trigger->command.argv[0], s.config.limits.command_ns);
	c.argv = trigger->command.argv;
	c.argv.push_back(snapshot);
	c.environment = {{"FORKTAIL_SNAPSHOT", snapshot}, {"FORKTAIL_TRIGGER", name}};
	return c;
}

bool StartFor(Starting *s, const common::Json &packet, common::Child *program)
{
	const std::string name = common::Text(packet, "snapshot"), trigger = common::Text(packet, "trigger");
	Config config;
	std::string error;
	if (ReadOptions(s->options, &config, &error))
		s->config = config;
	if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos)
		return false;
	const std::string snapshot = s->snapshots + "/" + name;
	const common::Command c =
	    trigger.empty() ? Explanation(*s, snapshot) : TriggersCommand(*s, snapshot, trigger);
	if (c.argv.empty() || c.argv[0].empty())
		return false;
	if (common::ForkChild(c, program, &error))
		return true;
	Say(Level::Error, error);
	return false;
}

[[noreturn]] void StartPrograms(int fd, Starting s)
{
	common::Child program;
	common::Json packet;
	prctl(PR_SET_NAME, "forktail-run");
	prctl(PR_SET_PDEATHSIG, SIGKILL); // its program then ends, too
	// It ends with the guard, which may still need it after a signal to their group.
	for (const int signal_number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1})
		signal(signal_number, SIG_IGN);
	for (;;) {
		common::WaitForAny({fd, program.pidfd}, program.running() ? kLookMs : -1);
		const int got = Receive(fd, &packet);
		if (got == 0)
			break;
		if (got > 0 && (program.running() || !StartFor(&s, packet, &program)))
			Send(fd, {{"status", kNotStartedStatus}});
		if (program.running() && common::HasEnded(&program))
			Send(fd, {{"status", program.status}, {"timed_out", program.timed_out}});
	}
	common::EndChild(&program);
	_exit(0);
}

} // namespace

// ---- the guard ----

Runner::~Runner()
{
	if (fd_ >= 0)
		close(fd_);
	if (pid_ > 0)
		waitpid(pid_, nullptr, 0);
}

bool Runner::Begin(const GuardOptions &options, const Config &config, const std::string &snapshots,
		   std::string *error)
{
	int pair[2];
	const pid_t guard = getpid();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
		pid_ = fork();
		if (pid_ == 0) {
			close(pair[0]);
			if (getppid() != guard)
				_exit(0);
			StartPrograms(pair[1], {options, config, snapshots});
		}
		fd_ = pair[0];
		close(pair[1]);
	}
	if (pid_ > 0)
		return true;
	*error = std::string("cannot start the process that starts programs: ") + strerror(errno);
	return false;
}

bool Runner::Start(const std::string &snapshot, const std::string &trigger, const common::Command &about,
		   std::string *error)
{
	program_ = {};
	program_.command = about;
	running_ = !gone_ && Send(fd_, {{"snapshot", snapshot}, {"trigger", trigger}});
	if (!running_)
		*error = "cannot start " + about.name + ": the process that starts programs has ended";
	return running_;
}

bool Runner::Explain(const std::string &snapshot, uint64_t limit_ns, std::string *error)
{
	return Start(snapshot, "", {.name = "the explanation", .limit_ns = limit_ns}, error);
}

bool Runner::RunCommand(const std::string &snapshot, const std::string &trigger, const std::string &name,
			uint64_t limit_ns, std::string *error)
{
	return Start(snapshot, trigger, {.name = name, .limit_ns = limit_ns}, error);
}

bool Runner::HasEnded()
{
	common::Json packet = common::Json::object();
	const int got = gone_ ? 0 : Receive(fd_, &packet);
	if (got < 0)
		return false;
	gone_ = got == 0;
	if (!running_)
		return false;
	running_ = false;
	program_.ended = true;
	program_.timed_out = packet.value("timed_out", false);
	program_.status = packet.value("status", kNotStartedStatus);
	return true;
}

} // namespace forktail::live::guard
