// SPDX-License-Identifier: MIT
// All values of an answer to INFO are of one instant. Only changed ones are written: a value holds until the
// next one.
#include "server_threads.h"

#include <algorithm>
#include <initializer_list>

namespace forktail::analysis
{

namespace
{

constexpr int kMostThreads = 256; // more than any server allows

const Series *InfoSeries(const Run &run, const std::string &name)
{
	const auto found =
	    std::ranges::find_if(run.series, [&](const Series &s) { return s.name == "redis." + name; });
	return found == run.series.end() || found->samples.empty() ? nullptr : &*found;
}

// The value at an instant; before the first one that.
double ValueAt(const Series &s, uint64_t t_ns)
{
	const auto after =
	    std::ranges::upper_bound(s.samples, t_ns, {}, [](const Sample &sample) { return sample.t_ns; });
	return after == s.samples.begin() ? after->value : std::prev(after)->value;
}

// A series may have any numbers.
uint64_t Whole(double value)
{
	constexpr double most = 1e18;
	return value > 0 ? static_cast<uint64_t>(std::min(value, most) + 0.5) : 0;
}

// By how much it grew in the period, times `unit`. Nothing if it is not reported or was set back.
std::optional<uint64_t> GrowthIn(const Run &run, const std::string &name, const TimeSpan &period,
				 double unit = 1)
{
	const Series *s = InfoSeries(run, name);
	if (!s || !std::ranges::is_sorted(s->samples, {}, &Sample::value))
		return {};
	return Whole((ValueAt(*s, period.until_ns) - ValueAt(*s, period.since_ns)) * unit);
}

std::optional<uint64_t> Most(const Run &run, const std::string &name)
{
	const Series *s = InfoSeries(run, name);
	if (!s)
		return {};
	return Whole(std::ranges::max(s->samples, {}, &Sample::value).value);
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
	to->reads = GrowthIn(run, prefix + "reads", period);
	to->writes = GrowthIn(run, prefix + "writes", period);
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
	const auto sys = GrowthIn(run, "used_cpu_sys_main_thread", period, second),
		   user = GrowthIn(run, "used_cpu_user_main_thread", period, second);
	if (!sys || !user)
		return all;
	main.cpu_ns = *sys + *user;
	main.active_ns = GrowthIn(run, "used_active_time_main_thread", period, second);
	AddConnections(run, 0, period, &main);
	all.threads.push_back(std::move(main));
	for (int n = 1; n < kMostThreads; n++) {
		const std::string name = "io_thd_" + std::to_string(n);
		ServerThread one = {name, {}, {}, {}, {}, {}, ThreadNamed(run, process, name), 0};
		one.active_ns =
		    GrowthIn(run, "used_active_time_io_thread_" + std::to_string(n), period, second);
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
