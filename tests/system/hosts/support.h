// SPDX-License-Identifier: MIT
// Hosts for tests: network namespaces connected by a bridge, and mpirun's replacement for ssh. The
// constructor makes them. The destructor removes them and all processes in them.
#pragma once
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/json.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

namespace forktail::test
{

inline Result shell(const std::string &script, const ProcessOptions &options = {})
{
	return run({"sh", "-euc", script}, Seconds(90), options);
}

// "": this machine can have such hosts. Otherwise the reason why not.
inline std::string why_no_hosts()
{
	if (geteuid() != 0)
		return "needs root, for network namespaces";
	if (shell("command -v mpirun ip nsenter && test -x " + program("forktail-rank")).status != 0)
		return "needs mpirun, iproute2 and forktail-rank";
	return shell("ip netns add ft-try && ip netns del ft-try").status == 0
		   ? ""
		   : "needs network namespaces, which this machine does not allow";
}

struct Hosts {
	TempDir dir;
	std::vector<std::string> names;
	std::map<std::string, std::unique_ptr<Process>> servers;
	const std::string run_dir = dir.file("run"), plan = dir.file("plan.toml"),
			  scratch = dir.file("scratch");
	std::string path;      // PATH for forktail; "": the test's
	std::string in_memory; // the scratch directory, on another file system than the run
	std::unique_ptr<Process> forktail;

	explicit Hosts(const std::vector<std::string> &all) : names(all)
	{
		remove(); // left by a killed test
		std::filesystem::create_directory(scratch);
		std::string script =
		    "ip link add forktail0 type bridge; ip addr add 10.77.0.254/24 dev forktail0; "
		    "ip link set forktail0 up\n";
		for (size_t i = 0; i < names.size(); i++) {
			const std::string n = names[i], link = "ft" + std::to_string(i + 1);
			script += "ip netns add " + n + "; ip link add " + link +
				  " type veth peer name eth0 netns " + n + "; ip link set " + link +
				  " master forktail0 up; ip -n " + n + " addr add " + address(n) +
				  "/24 dev eth0; ip -n " + n + " link set eth0 up; ip -n " + n +
				  " link set lo up\n";
		}
		const Result made = shell(script);
		if (made.status != 0)
			throw std::runtime_error("no namespaces: " + made.err +
						 (made.timed_out ? "in time" : ""));
		write_file(dir.file("agent"),
			   "#!/bin/sh\nhost=$1\nshift\nexec nsenter --net=/run/netns/$host "
			   "unshare --uts sh -c \"hostname $host; $*\"\n");
		std::filesystem::permissions(dir.file("agent"), std::filesystem::perms::owner_all);
	}
	~Hosts()
	{
		if (forktail && forktail->running()) {
			forktail->signal(SIGTERM);
			forktail->wait(Seconds(30));
		}
		servers.clear();
		for (const std::string &name : names)
			for (pid_t pid : inside(name))
				kill(pid, SIGKILL);
		remove();
		if (!in_memory.empty())
			std::filesystem::remove_all(in_memory);
	}
	Hosts(const Hosts &) = delete;
	Hosts &operator=(const Hosts &) = delete;

	void remove() const
	{
		// A process in a namespace keeps it, and with it its port of the bridge.
		for (const std::string &name : names)
			shell("kill -9 $(ip netns pids " + name + ") 2>/dev/null || true; ip netns del " +
			      name + " 2>/dev/null || true");
		for (size_t i = 1; i <= 9; i++)
			shell("ip link del ft" + std::to_string(i) + " 2>/dev/null || true");
		shell("ip link del forktail0 2>/dev/null || true");
	}
	// /dev/shm and the test's directory are different file systems, so that files go through MPI.
	void put_scratch_in_memory()
	{
		in_memory = "/dev/shm/forktail-hosts-test-" + std::to_string(getpid());
		std::filesystem::remove(scratch);
		std::filesystem::create_directory(in_memory);
		std::filesystem::create_directory_symlink(in_memory, scratch);
	}
	std::string address(const std::string &name) const
	{
		const auto at = std::find(names.begin(), names.end(), name) - names.begin();
		return "10.77.0." + std::to_string(at + 1);
	}
	std::vector<std::string> on(const std::string &name, std::vector<std::string> argv) const
	{
		argv.insert(argv.begin(), {"nsenter", "--net=/run/netns/" + name});
		return argv;
	}
	// Starts a server there, with a new directory.
	Process &serve(const std::string &name, const std::vector<std::string> &argv)
	{
		ProcessOptions options;
		options.directory = dir.file("data-" + name);
		std::filesystem::create_directory(options.directory);
		servers[name] = std::make_unique<Process>(on(name, argv), options);
		return *servers[name];
	}
	void serve_redis(const std::string &name)
	{
		serve(name, {"redis-server", "--bind", address(name), "--protected-mode", "no", "--save", "",
			     "--enable-debug-command", "yes"});
		if (!eventually([&] { return redis(name, {"PING"}).find("PONG") == 0; }))
			throw std::runtime_error("no redis on " + name);
	}
	std::string redis(const std::string &name, std::vector<std::string> words) const
	{
		words.insert(words.begin(), {"redis-cli", "-h", address(name)});
		return run(on(name, words)).out;
	}
	// Its processes except the servers.
	std::vector<pid_t> inside(const std::string &name) const
	{
		std::vector<pid_t> pids;
		std::stringstream in(run({"ip", "netns", "pids", name}).out);
		for (pid_t pid; in >> pid;)
			if (std::none_of(servers.begin(), servers.end(),
					 [&](const auto &s) { return s.second->pid() == pid; }))
				pids.push_back(pid);
		return pids;
	}
	// Command lines of the run's remaining processes on all hosts, and files in the scratch directory.
	std::vector<std::string> left() const
	{
		std::vector<std::string> all;
		for (const std::string &name : names)
			for (pid_t pid : inside(name)) {
				std::string line = read_file("/proc/" + std::to_string(pid) + "/cmdline");
				std::replace(line.begin(), line.end(), '\0', ' ');
				if (!line.empty()) // otherwise it ended just now
					all.push_back(line);
			}
		for (const auto &file : std::filesystem::directory_iterator(scratch))
			all.push_back(file.path());
		return all;
	}
	bool nothing_left() const
	{
		return eventually([&] { return left().empty(); }, Seconds(15));
	}
	// The beginning of a plan: all hosts, and Open MPI's options here.
	std::string plan_begin(const std::string &duration) const
	{
		std::string text = "duration = \"" + duration + "\"\nsettle = \"1s\"\nscratch = \"" +
				   scratch + "\"\nmpirun = [\"--mca\", \"plm_rsh_agent\", \"" +
				   dir.file("agent") +
				   "\", \"--mca\", \"btl\", \"tcp,self\", \"--mca\", \"btl_tcp_if_include\", "
				   "\"10.77.0.0/24\", \"--mca\", \"oob_tcp_if_include\", \"10.77.0.0/24\"]\n";
		return text;
	}
	std::string plan_hosts() const
	{
		std::string text;
		for (const std::string &name : names)
			text += "[[hosts]]\nname = \"" + name + "\"\nnetwork = \"" + address(name) + "\"\n";
		return text;
	}
	static std::string record(const std::string &host, const std::string &port)
	{
		return "[[record]]\nhost = \"" + host + "\"\nport = " + port + "\n";
	}
	static std::string load(const std::string &host, const std::string &to, const std::string &more = "",
				int rate = 500)
	{
		return "[[load]]\nhost = \"" + host + "\"\nto = \"" + to + "\"\noptions = [" + more +
		       "\"--rate\", \"" + std::to_string(rate) +
		       "\", \"-c\", \"5\", \"-r\", \"10000\", \"-d\", "
		       "\"100\"]\n";
	}
	void begin(const std::string &text)
	{
		write_file(plan, text);
		std::filesystem::remove_all(run_dir);
		ProcessOptions options;
		if (!path.empty())
			options.environment = {{"PATH", path}};
		forktail = std::make_unique<Process>(
		    std::vector<std::string>{program("forktail"), "hosts", "run", plan, "-o", run_dir},
		    options);
	}
	// Waits until it prints this.
	bool says(const std::string &what)
	{
		return eventually(
			   [&] {
				   return forktail->err().find(what) != std::string::npos ||
					  !forktail->running();
			   },
			   Seconds(40)) &&
		       forktail->err().find(what) != std::string::npos;
	}
	int finish()
	{
		const int status = forktail->wait(Seconds(80)).value_or(-1);
		INFO(forktail->err());
		CHECK(status >= 0);
		return status;
	}
	// forktail's process on that host whose command line contains these words. 0: none.
	pid_t find(const std::string &host, const std::string &begins, const std::string &words = "") const
	{
		for (pid_t pid : inside(host)) {
			std::string line = read_file("/proc/" + std::to_string(pid) + "/cmdline");
			std::replace(line.begin(), line.end(), '\0', ' ');
			const std::string first = line.substr(0, line.find(' '));
			if (first.size() >= begins.size() &&
			    first.compare(first.size() - begins.size(), begins.size(), begins) == 0 &&
			    line.find(words) != std::string::npos)
				return pid;
		}
		return 0;
	}
	// The rank that runs here and not on a host. 0: none.
	pid_t leader() const
	{
		for (const auto &entry : std::filesystem::directory_iterator("/proc")) {
			std::string line = read_file(entry.path().string() + "/cmdline");
			std::replace(line.begin(), line.end(), '\0', ' ');
			if (line.find("forktail-rank run ") != std::string::npos &&
			    line.find("mpirun") == std::string::npos &&
			    line.find(" --plan " + run_dir) != std::string::npos)
				return atoi(entry.path().filename().c_str());
		}
		return 0;
	}
	nlohmann::json run_json() const { return parse_json(read_file(run_dir + "/run.json")); }
	// explain's report on one file of the run. Null without one.
	nlohmann::json explain(const std::string &file) const
	{
		const Result r = run({program("forktail"), "explain", run_dir + "/hosts/" + file, "--json"});
		return r.status == 0 ? parse_json(r.out) : nlohmann::json();
	}
};

} // namespace forktail::test
