// SPDX-License-Identifier: MIT
// See runner.h. One packet (MessagePack) per command, and one when it has ended.
#include "runner.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json/json_read.h"
#include "notify.h"

namespace forktail::live::guard
{
namespace
{

constexpr size_t kMostPacket = 64 << 10;
constexpr int kLookMs = 500; // at a program's time limit
constexpr int kNotStartedStatus = common::kNotStarted << 8;

bool Send(int fd, const common::Json &packet)
{
	const std::vector<uint8_t> bytes = common::Json::to_msgpack(packet); // paths need not be UTF-8
	return bytes.size() <= kMostPacket &&
	       send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

// Returns 1, 0 at the end, or -1: no packet is there.
int Receive(int fd, int flags, common::Json *packet)
{
	std::vector<uint8_t> bytes(kMostPacket);
	const ssize_t n = recv(fd, bytes.data(), bytes.size(), flags);
	if (n <= 0)
		return n == 0 || (errno != EAGAIN && errno != EINTR) ? 0 : -1;
	bytes.resize(static_cast<size_t>(n));
	*packet = common::Json::from_msgpack(bytes);
	return 1;
}

common::Json Packed(const common::Command &c)
{
	return {{"name", c.name},
		{"argv", c.argv},
		{"environment", c.environment},
		{"directory", c.directory},
		{"output", c.output},
		{"output_flags", c.output_flags},
		{"memory_bytes", c.memory_bytes},
		{"limit_ns", c.limit_ns},
		{"idle", c.idle},
		{"oom_victim", c.oom_victim}};
}

// It has its own session, so that its descendants end with it.
common::Command Unpacked(const common::Json &packet)
{
	common::Command c;
	c.out = c.err = STDERR_FILENO;
	c.group = common::Group::kSession;
	c.group_ends = true;
	packet.at("name").get_to(c.name);
	packet.at("argv").get_to(c.argv);
	packet.at("environment").get_to(c.environment);
	packet.at("directory").get_to(c.directory);
	packet.at("output").get_to(c.output);
	packet.at("output_flags").get_to(c.output_flags);
	packet.at("memory_bytes").get_to(c.memory_bytes);
	packet.at("limit_ns").get_to(c.limit_ns);
	packet.at("idle").get_to(c.idle);
	packet.at("oom_victim").get_to(c.oom_victim);
	return c;
}

[[noreturn]] void StartPrograms(int fd)
{
	common::Child program;
	common::Json packet;
	prctl(PR_SET_NAME, "forktail-run");
	prctl(PR_SET_PDEATHSIG, SIGKILL); // its program then ends, too
	// It ends with the guard, which may still need it after a signal to their group.
	for (const int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR1})
		signal(s, SIG_IGN);
	for (;;) {
		common::WaitForAny({fd, program.pidfd}, program.running() ? kLookMs : -1);
		const int got = Receive(fd, MSG_DONTWAIT, &packet);
		std::string error;
		if (got == 0)
			break;
		if (got > 0 && !common::ForkChild(Unpacked(packet), &program, &error)) {
			Say(Level::Error, error);
			Send(fd, {{"status", kNotStartedStatus}});
		}
		if (program.running() && common::HasEnded(&program))
			Send(fd, {{"status", program.status}, {"timed_out", program.timed_out}});
	}
	common::EndChild(&program);
	_exit(0);
}

} // namespace

Runner::~Runner()
{
	if (fd_ >= 0)
		close(fd_);
	if (pid_ > 0)
		waitpid(pid_, nullptr, 0);
}

bool Runner::Begin(std::string *error)
{
	int pair[2];
	const pid_t guard = getpid();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
		pid_ = fork();
		if (pid_ == 0) {
			close(pair[0]);
			if (getppid() != guard)
				_exit(0);
			StartPrograms(pair[1]);
		}
		fd_ = pair[0];
		close(pair[1]);
	}
	if (pid_ > 0)
		return true;
	*error = std::string("cannot start the process that starts programs: ") + strerror(errno);
	return false;
}

bool Runner::Start(const common::Command &command, std::string *error)
{
	program_ = {};
	program_.command = command;
	if (!gone_ && Send(fd_, Packed(command))) {
		running_ = true;
		return true;
	}
	*error = "cannot start " + command.name + ": " +
		 (gone_ ? std::string("the process that starts programs has ended") : strerror(errno));
	return false;
}

bool Runner::HasEnded()
{
	common::Json packet;
	const int got = gone_ ? 0 : Receive(fd_, MSG_DONTWAIT, &packet);
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
