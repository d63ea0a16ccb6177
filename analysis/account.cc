// SPDX-License-Identifier: MIT
// A thread's account, and which thread serves a server's connections.
#include <algorithm>

#include "analysis/timeline.h"

namespace forktail
{

namespace
{

// True if `text` holds `word` with no digit or letter right after it: "*:6379" but not "*:63790".
bool HoldsWord(const std::string &text, const std::string &word)
{
	for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
		size_t end = at + word.size();
		if (end == text.size() || !isalnum(static_cast<unsigned char>(text[end])))
			return true;
	}
	return false;
}

// Does a command line say that its process serves `server` ("unix:/path" or "host:port")?
bool Serves(const std::string &cmdline, const std::string &server)
{
	if (server.rfind("unix:", 0) == 0)
		return HoldsWord(cmdline, server.substr(5));
	size_t colon = server.rfind(':');
	if (colon == std::string::npos)
		return HoldsWord(cmdline, server);
	std::string port = server.substr(colon + 1);
	for (const char *before : {":", "--port ", "--port=", "-p ", "-p"})
		if (HoldsWord(cmdline, before + port))
			return true;
	return false;
}

} // namespace

Account AccountOf(const Run &run, uint32_t thread_index)
{
	const Thread &thread = run.threads[thread_index];
	Account account;
	account.thread = thread_index;
	account.wall_ns = thread.end_ns - thread.start_ns;
	for (size_t i = 0; i < thread.span_count; i++) {
		const ft_span &s = run.spans[thread.first_span + i];
		int cause = Index(CauseOfOwner(s.owner));
		if (s.off_cpu) {
			account.by_cause[cause] += s.blocked_ns;
			account.by_cause[Index(Cause::RunQueue)] += s.runnable_ns;
		} else {
			account.by_cause[cause] += s.on_cpu_ns + s.runnable_ns + s.blocked_ns;
		}
	}
	for (size_t i = 0; i < thread.tally_count; i++) {
		const ft_tally &t = run.tallies[thread.first_tally + i];
		account.by_cause[Index(CauseOfOwner(t.owner))] += t.total_ns;
	}
	for (uint64_t ns : account.by_cause)
		account.accounted_ns += ns;
	return account;
}

int ServingThread(const Run &run, int server, std::string *why)
{
	// One candidate per process: its main thread, the account that lasts longest.
	std::vector<int> candidates;
	for (size_t i = 0; i < run.threads.size(); i++) {
		const Thread &t = run.threads[i];
		if (!(t.flags & FT_THREAD_MAIN) || (t.flags & FT_THREAD_CHILD))
			continue;
		auto same = std::find_if(candidates.begin(), candidates.end(), [&](int c) {
			return run.threads[static_cast<size_t>(c)].tid == t.tid;
		});
		if (same == candidates.end()) {
			candidates.push_back(static_cast<int>(i));
		} else {
			const Thread &known = run.threads[static_cast<size_t>(*same)];
			if (t.end_ns - t.start_ns > known.end_ns - known.start_ns)
				*same = static_cast<int>(i);
		}
	}
	if (candidates.empty()) {
		*why = "no recording of a server's threads";
		return -1;
	}
	if (candidates.size() == 1)
		return candidates[0];
	if (server < 0 || static_cast<size_t>(server) >= run.servers.size()) {
		*why = std::to_string(candidates.size()) +
		       " processes were recorded and the request log does not name the one it talked to";
		return -1;
	}
	// The server's own word for its process id settles it, where it was asked.
	uint32_t pid = static_cast<size_t>(server) < run.server_pids.size()
			   ? run.server_pids[static_cast<size_t>(server)]
			   : 0;
	for (int c : candidates)
		if (pid && run.threads[static_cast<size_t>(c)].tgid == pid)
			return c;
	const std::string &name = run.servers[static_cast<size_t>(server)];
	std::vector<int> matches;
	for (int c : candidates)
		for (const Target &target : run.targets)
			if (target.pid == run.threads[static_cast<size_t>(c)].tgid &&
			    Serves(target.cmdline, name)) {
				matches.push_back(c);
				break;
			}
	if (matches.size() == 1)
		return matches[0];
	*why = std::to_string(candidates.size()) + " processes were recorded and " +
	       (matches.empty() ? "none says on its command line that it serves "
				: "more than one says on its command line that it serves ") +
	       name;
	return -1;
}

} // namespace forktail
