// SPDX-License-Identifier: MIT
// Reads /proc, as described in proc(5), and the servers' own counters. Rates are computed here, where both
// times are known, because tables cannot divide by time.
#include "counters.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include "lab/scenario/formula.h"
#include "lab/servers/kinds.h"
#include "recording/recording.h"

namespace forktail::lab
{
namespace
{

double Ticks(uint64_t ticks)
{
	static const double per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
	return static_cast<double>(ticks) / per_second;
}

// "name: value" lines of a file of /proc.
std::map<std::string, uint64_t> ReadFields(const std::string &path)
{
	std::map<std::string, uint64_t> fields;
	std::ifstream in(path);
	for (std::string line; std::getline(in, line);) {
		size_t colon = line.find_first_of(": \t");
		if (colon != std::string::npos)
			fields[line.substr(0, colon)] =
			    strtoull(line.c_str() + line.find_first_not_of(": \t", colon), nullptr, 10);
	}
	return fields;
}

// CPU time of all running threads; 0 if the kernel does not count it.
double ReadCpuTime(const std::string &directory)
{
	double ns = 0;
	std::error_code ec;
	for (const auto &thread : std::filesystem::directory_iterator(directory + "/task", ec)) {
		std::ifstream in(thread.path() / "schedstat");
		double on_cpu_ns = 0;
		in >> on_cpu_ns;
		ns += on_cpu_ns;
	}
	return ns / 1e9;
}

bool ReadProcess(pid_t pid, ProcessCounters *counters)
{
	std::string directory = "/proc/" + std::to_string(pid);
	std::ifstream in(directory + "/stat");
	std::string stat((std::istreambuf_iterator<char>(in)), {});
	size_t after = stat.rfind(')'); // the name before it may contain any character
	if (after == std::string::npos)
		return false;
	std::istringstream rest(stat.substr(after + 1));
	std::string state;
	rest >> state;
	// proc(5): fields 4 to 15; 10 is minflt, 12 majflt, 14 utime, 15 stime.
	uint64_t field[16] = {};
	for (int i = 4; i <= 15; i++)
		rest >> field[i];
	counters->minor_faults = field[10];
	counters->major_faults = field[12];
	counters->user_s = Ticks(field[14]);
	counters->system_s = Ticks(field[15]);
	counters->cpu_s = ReadCpuTime(directory);
	auto io = ReadFields(directory + "/io");
	counters->read_bytes = io["read_bytes"];
	counters->write_bytes = io["write_bytes"];
	auto status = ReadFields(directory + "/status");
	counters->rss_bytes = status["VmRSS"] * 1024;
	counters->swap_bytes = status["VmSwap"] * 1024;
	counters->voluntary_switches = status["voluntary_ctxt_switches"];
	counters->involuntary_switches = status["nonvoluntary_ctxt_switches"];
	return true;
}

void ReadCpus(HostCounters *host)
{
	std::ifstream stat("/proc/stat");
	for (std::string line; std::getline(stat, line);) {
		if (line.rfind("cpu", 0) != 0 || !isdigit(static_cast<unsigned char>(line[3])))
			continue;
		std::istringstream in(line);
		std::string name;
		// proc(5): user nice system idle iowait irq softirq steal.
		uint64_t t[8] = {};
		in >> name;
		for (uint64_t &ticks : t)
			in >> ticks;
		CpuCounters cpu;
		cpu.busy_s = Ticks(t[0] + t[1] + t[2] + t[5] + t[6]);
		cpu.softirq_s = Ticks(t[6]);
		cpu.steal_s = Ticks(t[7]);
		cpu.idle_s = Ticks(t[3] + t[4]);
		host->cpus.push_back(cpu);
	}
	std::ifstream softirqs("/proc/softirqs");
	for (std::string line; std::getline(softirqs, line);) {
		std::istringstream in(line);
		std::string name;
		in >> name;
		if (name != "NET_RX:" && name != "NET_TX:")
			continue;
		for (CpuCounters &cpu : host->cpus) {
			uint64_t count = 0;
			in >> count;
			cpu.network_softirqs += count;
		}
	}
}

void ReadHost(HostCounters *host)
{
	host->t_ns = ft_now_ns();
	ReadCpus(host);
	auto vm = ReadFields("/proc/vmstat");
	uint64_t page_kb = static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
	host->read_kb = vm["pgpgin"];
	host->written_kb = vm["pgpgout"];
	host->swapped_in_kb = vm["pswpin"] * page_kb;
	host->swapped_out_kb = vm["pswpout"] * page_kb;
	auto memory = ReadFields("/proc/meminfo");
	host->memory_bytes = memory["MemTotal"] * 1024;
	host->available_bytes = memory["MemAvailable"] * 1024;
}

bool IsNumber(const std::string &text, double *number)
{
	char *end = nullptr;
	*number = strtod(text.c_str(), &end);
	return end != text.c_str() && *end == 0;
}

// Sets a figure of an instance and adds it to the figure of its group.
void Set(Point *point, const std::string &step, const Instance &instance, const std::string &figure,
	 double value)
{
	point->numbers[step + "." + instance.name + "." + figure] = value;
	if (instance.server != instance.name)
		point->numbers[step + "." + instance.server + "." + figure] += value;
}

void AddProcess(const std::string &step, const Instance &instance, const ProcessCounters &p, Point *point)
{
	Set(point, step, instance, "rss", static_cast<double>(p.rss_bytes));
	Set(point, step, instance, "swap", static_cast<double>(p.swap_bytes));
}

void AddInfo(const std::string &step, const Instance &instance, const RedisInfo &info, Point *point)
{
	double number = 0;
	for (const auto &[name, text] : info)
		if (IsNumber(text, &number))
			Set(point, step, instance, FigureName(name), number);
}

void AddHost(const std::string &step, const HostCounters &a, const HostCounters &b, double seconds,
	     Point *point)
{
	std::string host = step + ".host.";
	auto per_s = [&](const char *figure, uint64_t before, uint64_t after) {
		point->numbers[host + figure] = static_cast<double>(after - before) / seconds;
	};
	per_s("read_kb_s", a.read_kb, b.read_kb);
	per_s("write_kb_s", a.written_kb, b.written_kb);
	per_s("swap_in_kb_s", a.swapped_in_kb, b.swapped_in_kb);
	per_s("swap_out_kb_s", a.swapped_out_kb, b.swapped_out_kb);
	point->numbers[host + "memory_percent"] =
	    100 - 100 * static_cast<double>(b.available_bytes) / static_cast<double>(b.memory_bytes);
	double softirq_s = 0, busy_s = 0, all_s = 0;
	for (size_t i = 0; i < std::min(a.cpus.size(), b.cpus.size()); i++) {
		const CpuCounters &from = a.cpus[i], &to = b.cpus[i];
		double busy = to.busy_s - from.busy_s, softirq = to.softirq_s - from.softirq_s;
		double all = busy + to.steal_s - from.steal_s + to.idle_s - from.idle_s;
		std::string cpu = std::to_string(i);
		if (all > 0) {
			point->numbers[host + "cpu" + cpu + "_percent"] = 100 * busy / all;
			point->numbers[host + "softirq" + cpu + "_percent"] = 100 * softirq / all;
			point->numbers[host + "steal" + cpu + "_percent"] =
			    100 * (to.steal_s - from.steal_s) / all;
		}
		per_s(("net_softirqs" + cpu + "_s").c_str(), from.network_softirqs, to.network_softirqs);
		softirq_s += softirq;
		busy_s += busy;
		all_s += all;
	}
	if (all_s > 0) {
		point->numbers[host + "cpu_percent"] = 100 * busy_s / all_s;
		point->numbers[host + "softirq_percent"] = 100 * softirq_s / all_s;
	}
}

// The memory limit of an instance, else the host's memory.
double MemoryOf(const Topology &topology, const Instance &instance, const HostCounters &host)
{
	for (const ServerPlan &plan : topology.plans)
		if (plan.memory_bytes && instance.server == plan.name)
			return static_cast<double>(plan.memory_bytes);
	return static_cast<double>(host.memory_bytes);
}

} // namespace

bool ReadCounters(Session *session, const Topology &topology, Counters *counters, std::string *error)
{
	*counters = {};
	for (const auto &instance : topology.instances) {
		if (!instance->child || instance->child->ended)
			continue;
		if (instance->redis &&
		    !ReadInfo(session, instance->redis.get(), &counters->info[instance->name], error))
			return false;
		if (auto read = instance->kind->counters)
			counters->info[instance->name] = read(*instance);
		ProcessCounters process;
		if (ReadProcess(instance->child->pid, &process))
			counters->processes[instance->name] = process;
	}
	ReadHost(&counters->host);
	return true;
}

void AddMoment(const std::string &name, const Topology &topology, const Counters &now, Point *point)
{
	for (const auto &instance : topology.instances) {
		auto process = now.processes.find(instance->name);
		if (process != now.processes.end())
			AddProcess(name, *instance, process->second, point);
		auto info = now.info.find(instance->name);
		if (info != now.info.end())
			AddInfo(name, *instance, info->second, point);
	}
}

void AddDifference(const std::string &name, const Topology &topology, const Counters &before,
		   const Counters &after, double requests, Point *point)
{
	double seconds = static_cast<double>(after.host.t_ns - before.host.t_ns) / 1e9;
	AddHost(name, before.host, after.host, seconds, point);
	for (const auto &instance : topology.instances) {
		auto from = before.processes.find(instance->name), to = after.processes.find(instance->name);
		if (from == before.processes.end() || to == after.processes.end())
			continue;
		const ProcessCounters &a = from->second, &b = to->second;
		auto set = [&](const char *figure, double value) {
			Set(point, name, *instance, figure, value);
		};
		double user = b.user_s - a.user_s, system = b.system_s - a.system_s;
		double cpu = b.cpu_s - a.cpu_s > 0 ? b.cpu_s - a.cpu_s : user + system;
		// Clock ticks only give the ratio of user and system time.
		double share = user + system > 0 ? system / (user + system) : 0;
		set("cpu_s", cpu);
		set("cpu_percent", 100 * cpu / seconds);
		if (requests > 0) {
			set("cpu_us_per_request", cpu * 1e6 / requests);
			set("user_us_per_request", cpu * (1 - share) * 1e6 / requests);
			set("system_us_per_request", cpu * share * 1e6 / requests);
			set("switches_per_request",
			    static_cast<double>(b.voluntary_switches + b.involuntary_switches -
						a.voluntary_switches - a.involuntary_switches) /
				requests);
		}
		set("minor_faults_s", static_cast<double>(b.minor_faults - a.minor_faults) / seconds);
		set("major_faults_s", static_cast<double>(b.major_faults - a.major_faults) / seconds);
		set("faults_s",
		    static_cast<double>(b.minor_faults + b.major_faults - a.minor_faults - a.major_faults) /
			seconds);
		set("read_kb_s", static_cast<double>(b.read_bytes - a.read_bytes) / 1024 / seconds);
		set("write_kb_s", static_cast<double>(b.write_bytes - a.write_bytes) / 1024 / seconds);
		set("memory_percent",
		    100 * static_cast<double>(b.rss_bytes) / MemoryOf(topology, *instance, after.host));
		AddProcess(name, *instance, b, point);
		auto info = after.info.find(instance->name), earlier = before.info.find(instance->name);
		if (info == after.info.end() || earlier == before.info.end())
			continue;
		AddInfo(name, *instance, info->second, point);
		double now = 0, then = 0;
		for (const auto &[field, text] : info->second) {
			auto old = earlier->second.find(field);
			if (old != earlier->second.end() && IsNumber(text, &now) &&
			    IsNumber(old->second, &then))
				set(("d_" + FigureName(field)).c_str(), now - then);
		}
	}
}

} // namespace forktail::lab
