// SPDX-License-Identifier: MIT
// See session.h.
#include "session.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unistd.h>

#include "recording/recording.h"

namespace forktail::lab
{
namespace
{

constexpr size_t kTailLines = 6;
constexpr int kGroupGoneMs = 5000;

void Listen(Child *child)
{
	for (const std::string &line : child->err.Read(child->ended)) {
		common::Remember(child, line);
		if (child->on_line)
			child->on_line(line);
	}
}

// What is left to do once a child has been reaped.
void Finish(const Session &session, Child *child)
{
	// A snapshot child takes a while to give its memory back, and until then it is not gone.
	for (int i = 0; i < kGroupGoneMs && kill(-child->pid, 0) == 0; i++)
		usleep(1000);
	Listen(child);
	Release(session.keeper, Leftover::kGroup, std::to_string(child->pid));
	common::CloseStreams(child);
}

std::vector<std::string> LastLines(const std::string &path)
{
	std::ifstream in(path);
	std::vector<std::string> lines;
	for (std::string line; std::getline(in, line);) {
		if (lines.size() == kTailLines)
			lines.erase(lines.begin());
		lines.push_back(line);
	}
	return lines;
}

} // namespace

bool OpenSession(Session *session, std::string *error)
{
	if (!StartKeeper(&session->keeper, error))
		return false;
	common::CatchStops();
	return true;
}

void EndChildren(Session *session)
{
	for (auto &child : session->children)
		if (!child->ended) {
			child->on_line = nullptr; // whoever listened may be gone
			kill(-child->pid, SIGKILL);
		}
	for (auto &child : session->children)
		if (!child->ended) {
			common::EndChild(child.get());
			Finish(*session, child.get());
		}
}

bool CloseSession(Session *session, std::string *error)
{
	EndChildren(session);
	return CloseKeeper(&session->keeper, error);
}

bool MakeTempDirectory(Session *session, std::string *path, std::string *error)
{
	const char *base = getenv("TMPDIR");
	std::string name = std::string(base && *base ? base : "/tmp") + "/forktail-lab.XXXXXX";
	if (name[0] != '/') {
		*error = "TMPDIR must be an absolute path, not " + name;
		return false;
	}
	if (!mkdtemp(name.data())) {
		*error = "cannot create a temporary directory " + name + ": " + strerror(errno);
		return false;
	}
	Keep(session->keeper, Leftover::kDirectory, name);
	*path = name;
	return true;
}

Child *Start(Session *session, const Command &command, std::string *error)
{
	common::Command in_group = command;
	in_group.group_ends = true;
	auto child = std::make_unique<Child>();
	if (!common::ForkChild(in_group, child.get(), error))
		return nullptr;
	Keep(session->keeper, Leftover::kGroup,
	     std::to_string(child->pid)); // the keeper also knows of what the program starts at once
	if (!common::AwaitProgram(child.get(), error)) {
		Finish(*session, child.get());
		return nullptr;
	}
	child->on_line = command.on_line;
	session->children.push_back(std::move(child));
	return session->children.back().get();
}

bool Step(Session *session, int ms, std::string *error, int fd)
{
	for (const auto &[name, chore] : session->chores)
		chore();
	std::vector<int> fds = {fd};
	for (auto &child : session->children)
		fds.insert(fds.end(), {child->err.fd, child->pidfd});
	// A signal that comes just before the wait is seen after it, so the wait must not be long.
	common::WaitForAny(fds, std::clamp(ms, 0, 100));
	bool good = true;
	for (auto &child : session->children) {
		if (child->ended)
			continue;
		Listen(child.get());
		if (!common::HasEnded(child.get()))
			continue;
		Finish(*session, child.get());
		// One's end may end the others: the first is the cause.
		if (child->needed && good) {
			*error = HowItEnded(*child);
			good = false;
		}
	}
	if (const int signal = StopSignal()) {
		*error = std::string("stopped by ") + strsignal(signal);
		good = false;
	}
	return good;
}

bool WaitForEnd(Session *session, Child *child, int signal, double seconds, std::string *error)
{
	child->needed = false;
	if (signal)
		common::SignalChild(child, signal);
	uint64_t limit_ns = ft_now_ns() + static_cast<uint64_t>(seconds * 1e9);
	while (!child->ended) {
		if (!Step(session, 100, error))
			return false;
		if (!child->ended && ft_now_ns() > limit_ns) {
			*error = child->command.name + " did not end within " +
				 std::to_string(static_cast<int>(seconds)) + " s";
			return false;
		}
	}
	return true;
}

std::string HowItEnded(const Child &child)
{
	return child.command.name + " " + common::HowItEnded(child) + LastWords(child);
}

std::string LastWords(const Child &child)
{
	std::vector<std::string> last = child.last;
	if (last.empty() && !child.command.output.empty())
		last = LastLines(child.command.output);
	std::string text = last.empty() ? "" : "; its last messages:";
	for (const std::string &line : last)
		text += "\n    " + line;
	return text;
}

bool Succeeded(const Child &child, std::string *error)
{
	if (common::EndedWell(child))
		return true;
	*error = HowItEnded(child);
	return false;
}

} // namespace forktail::lab
