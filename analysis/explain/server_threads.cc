// SPDX-License-Identifier: MIT
// Threads are numbered: the server has as many as it reports, one after the other.
#include "server_threads.h"

#include <algorithm>
#include <initializer_list>

#include "info_series.h"

namespace forktail::analysis
{

namespace
{

constexpr int kMostThreads = 256; // more than any server allows

std::optional<uint64_t> Most(const Run &run, const std::string &name)
{
	const Series *s = InfoSeries(run, name);
	if (!s)
		return {};
	return WholeInfo(std::ranges::max(s->samples, {}, &Sample::value).value);
}

// The longest-lived thread of the process with this name; "": its main thread.
int ThreadNamed(const Run &run, uint32_t process, const std::string &comm)
{
	int found = -1;
	for (size_t i = 0; process && i < run.threads.size(); i++) {
		const Thread &t = run.threads[i];
		auto length = [](const Thread &of) { return of.end_ns - of.start_ns; };
		if (t.tgid == process && (comm.empty() ? t.tid == process : t.comm == comm) &&
		    (found < 0 || length(t) > length(run.threads[static_cast<size_t>(found)])))
			found = static_cast<int>(i);
	}
	return found;
}

// From the first to the last answer to INFO while the main thread was recorded (-1: at any time). The main
// thread's CPU time changes with every answer, because it answers.
TimeSpan PeriodOf(const Run &run, int main_thread)
{
	TimeSpan period = {UINT64_MAX, 0};
	const Thread *t = main_thread < 0 ? nullptr : &run.threads[static_cast<size_t>(main_thread)];
	for (const char *name : {"used_cpu_sys_main_thread", "used_cpu_user_main_thread"})
		if (const Series *s = InfoSeries(run, name))
			for (const Sample &sample : s->samples) {
				if (t && (sample.t_ns < t->start_ns || sample.t_ns > t->end_ns))
					continue;
				period.since_ns = std::min(period.since_ns, sample.t_ns);
				period.until_ns = std::max(period.until_ns, sample.t_ns);
			}
	return period;
}

void AddConnections(const Run &run, int number, const TimeSpan &period, ServerThread *to)
{
	const std::string prefix = "io_thread_" + std::to_string(number) + ".";
	to->connections = Most(run, prefix + "clients");
	to->reads = InfoGrowth(run, prefix + "reads", period);
	to->writes = InfoGrowth(run, prefix + "writes", period);
}

} // namespace

ServerThreads ServerThreadsOf(const Run &run, uint32_t process)
{
	constexpr double second = 1e9;
	ServerThread main = {"main", {}, {}, {}, {}, {}, ThreadNamed(run, process, ""), 0};
	ServerThreads all = {PeriodOf(run, main.thread), {}};
	const TimeSpan &period = all.period;
	if (period.since_ns >= period.until_ns)
		return all;
	const auto sys = InfoGrowth(run, "used_cpu_sys_main_thread", period, second),
		   user = InfoGrowth(run, "used_cpu_user_main_thread", period, second);
	if (!sys || !user)
		return all;
	main.cpu_ns = *sys + *user;
	main.active_ns = InfoGrowth(run, "used_active_time_main_thread", period, second);
	AddConnections(run, 0, period, &main);
	all.threads.push_back(std::move(main));
	for (int n = 1; n < kMostThreads; n++) {
		const std::string name = "io_thd_" + std::to_string(n);
		ServerThread one = {name, {}, {}, {}, {}, {}, ThreadNamed(run, process, name), 0};
		one.active_ns =
		    InfoGrowth(run, "used_active_time_io_thread_" + std::to_string(n), period, second);
		AddConnections(run, n, period, &one);
		if (!one.active_ns && !one.connections)
			break;
		all.threads.push_back(std::move(one));
	}
	return all;
}

void AddCpuTimes(const CpuTimes &cpu, ServerThreads *all)
{
	for (ServerThread &t : all->threads)
		if (t.thread >= 0)
			t.kernel_cpu_ns = cpu.Of(static_cast<size_t>(t.thread));
}

} // namespace forktail::analysis
