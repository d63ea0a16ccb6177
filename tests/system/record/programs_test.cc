// SPDX-License-Identifier: MIT
// The kernel programs loaded as on older or limited hosts, although this host has the features: thread states
// in a hash by thread id (before task storage), preemption that cannot be disabled (before 6.10), no perf
// events, and page faults without a reason (arm64 before 6.4). The recorder has no options for that, so this
// test is linked with its parts. test_programs.py has what the recorder itself shows.
#include <atomic>
#include <bpf/bpf.h>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/servers/server.h"

#include "loader/attach.h"

using namespace forktail::test;

namespace
{

struct Seen {
	struct Account {
		uint64_t begin_ns = 0, end_ns = 0, accounted_ns = 0, faults = 0;
	};
	std::map<std::pair<uint32_t, uint64_t>, Account> accounts; // by tid and begin
	std::map<uint32_t, uint64_t> open;			   // tid: begin of its account
	std::map<uint32_t, Account> sums;			   // of the open one
	size_t begun = 0, ended = 0;
	std::map<uint32_t, uint64_t> counts; // of spans and tallied ends, by owner
	std::vector<std::string> skipped;
};

bool is_fault(uint32_t owner)
{
	return (owner >= FT_COW_COPY && owner <= FT_PAGE_IN) || owner == FT_FAULT_OTHER;
}

void on_event(void *context, const void *event, size_t)
{
	Seen &seen = *static_cast<Seen *>(context);
	const auto *span = static_cast<const ft_event_span *>(event);
	const auto *tally = static_cast<const ft_event_tally *>(event);
	const auto *thread = static_cast<const ft_event_thread *>(event);
	switch (span->type) {
	case FT_EVENT_SPAN:
	case FT_EVENT_SPAN_DETAIL:
		seen.sums[span->tid].accounted_ns += span->on_cpu_ns + span->runnable_ns + span->blocked_ns;
		seen.sums[span->tid].faults += is_fault(span->owner) && !span->off_cpu;
		seen.counts[span->owner]++;
		break;
	case FT_EVENT_TALLY:
		for (uint32_t i = 0; i < FT_OWNER_LIMIT; i++) {
			seen.sums[tally->tid].accounted_ns += tally->entry[i].total_ns;
			seen.counts[i] += tally->entry[i].count;
			if (is_fault(i))
				seen.sums[tally->tid].faults += tally->entry[i].count;
		}
		break;
	case FT_EVENT_THREAD_BEGIN:
		seen.begun++;
		break;
	case FT_EVENT_THREAD_END: {
		seen.ended++;
		Seen::Account a = seen.sums[thread->tid];
		seen.sums.erase(thread->tid);
		a.begin_ns = thread->begin_ns;
		a.end_ns = thread->t_ns;
		seen.accounts[{thread->tid, thread->begin_ns}] = a;
		break;
	}
	}
}

void on_skip(void *context, const char *program, int)
{
	static_cast<Seen *>(context)->skipped.push_back(program);
}

// Records `pid` while `meanwhile` runs, on a host changed by `change`.
std::unique_ptr<Seen> record(pid_t pid, const std::function<void(support &)> &change,
			     const std::function<void()> &meanwhile, uint64_t drops[FT_DROP_SLOTS],
			     std::set<std::string> *loaded)
{
	auto seen = std::make_unique<Seen>();
	support host;
	support_probe(&host);
	REQUIRE(support_blocker(&host) == nullptr);
	change(host);
	programs_wanted wanted = {};
	wanted.min_span_ns = 1000; // nearly every interrupt is a span
	wanted.interrupts = true;
	wanted.softirqs = SOFTIRQS_EXACT;
	programs *p = nullptr;
	const int err = programs_load(&p, &host, &wanted, on_event, seen.get());
	INFO(programs_log());
	REQUIRE(err == 0);
	REQUIRE(programs_attach(p, on_skip, seen.get()) == 0);
	REQUIRE(programs_trace(p, &pid, 1, FT_TRACED_TARGET) == 0);
	REQUIRE(programs_open_accounts(p) == 0);
	program_cost costs[PROGRAMS_MAX];
	const size_t count = programs_costs(p, costs, PROGRAMS_MAX);
	for (size_t i = 0; i < count; i++)
		loaded->insert(costs[i].name);
	std::thread busy(meanwhile);
	std::atomic<bool> done = false;
	std::thread waiter([&] {
		busy.join();
		done = true;
	});
	while (!done) {
		programs_drain(p);
		sleep_for(Seconds(0.002));
	}
	waiter.join();
	programs_stop(p);
	programs_drops(p, drops);
	programs_free(p);
	return seen;
}

// The programs, tracing a process.
struct Loaded {
	programs *p = nullptr;

	Loaded(const programs_wanted &wanted, event_handler handler, void *context, pid_t pid)
	{
		Seen skips;
		support host;
		support_probe(&host);
		REQUIRE(support_blocker(&host) == nullptr);
		REQUIRE(programs_load(&p, &host, &wanted, handler, context) == 0);
		REQUIRE(programs_attach(p, on_skip, &skips) == 0);
		REQUIRE(programs_trace(p, &pid, 1, FT_TRACED_TARGET) == 0);
		REQUIRE(programs_open_accounts(p) == 0);
	}
	~Loaded()
	{
		programs_stop(p);
		programs_free(p);
	}
};

void check_accounts(const Seen &seen)
{
	for (const auto &[key, a] : seen.accounts) {
		INFO("thread " << key.first << " from " << a.begin_ns << " to " << a.end_ns);
		const double wall = static_cast<double>(a.end_ns - a.begin_ns);
		CHECK(static_cast<double>(a.accounted_ns) == Approx(wall).epsilon(0.001));
	}
}

// Threads that start and end, a few at a time.
pid_t start_of_threads(int from_parent)
{
	const pid_t pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	char c;
	if (read(from_parent, &c, 1) == 1) {
		for (int i = 0; i < 500; i++) {
			std::vector<std::thread> some;
			for (int k = 0; k < 10; k++)
				some.emplace_back([] {
					volatile uint64_t n = 0;
					for (int j = 0; j < 10000; j++)
						n = n + 1;
				});
			for (std::thread &t : some)
				t.join();
		}
	}
	_exit(0);
}

// A traced process that waits for a byte, answers it and waits again. Each wait is an event.
struct Echo {
	int to[2], from[2];
	pid_t pid;
	size_t read_bytes = 0;
	static constexpr size_t most_bytes = 40 << 20; // more than the ring holds

	Echo()
	{
		REQUIRE(pipe(to) == 0);
		REQUIRE(pipe(from) == 0);
		pid = fork();
		if (pid)
			return;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (char c; read(to[0], &c, 1) == 1 && write(from[1], &c, 1) == 1;) {
		}
		_exit(0);
	}
	~Echo()
	{
		kill(pid, SIGKILL);
		waitpid(pid, nullptr, 0);
		for (const int fd : {to[0], to[1], from[0], from[1]})
			close(fd);
	}
	void make_event() const
	{
		char c = 'x';
		REQUIRE((write(to[1], &c, 1) == 1 && read(from[0], &c, 1) == 1));
	}
	static void on_event(void *context, const void *, size_t bytes)
	{
		Echo &echo = *static_cast<Echo *>(context);
		echo.read_bytes += bytes;
		if (echo.read_bytes < most_bytes)
			echo.make_event();
	}
};

uint32_t newest_program()
{
	uint32_t id = 0;
	while (bpf_prog_get_next_id(id, &id) == 0) {
	}
	return id;
}

// Names, at most 15 characters, of programs that call functions of the kernel. In this object only
// bpf_preempt_disable and -enable are.
std::set<std::string> disabling_preemption(uint32_t loaded_after)
{
	std::set<std::string> all;
	for (uint32_t id = loaded_after; bpf_prog_get_next_id(id, &id) == 0;) {
		const int fd = bpf_prog_get_fd_by_id(id);
		std::vector<bpf_insn> code(100000);
		bpf_prog_info info = {};
		info.xlated_prog_insns = reinterpret_cast<uint64_t>(code.data());
		info.xlated_prog_len = static_cast<uint32_t>(code.size() * sizeof code[0]);
		uint32_t size = sizeof info;
		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0)
			for (size_t i = 0; i < info.xlated_prog_len / sizeof code[0]; i++)
				if (code[i].code == (BPF_JMP | BPF_CALL) &&
				    code[i].src_reg == BPF_PSEUDO_KFUNC_CALL)
					all.insert(info.name);
		close(fd);
	}
	return all;
}

} // namespace

TEST_CASE("a drain ends although each event that it reads leads to another one")
{
	REQUIRE(geteuid() == 0);
	Echo echo;
	Loaded loaded({}, Echo::on_event, &echo, echo.pid); // each wait is an event, however short
	echo.make_event();
	CHECK(programs_drain_piece(loaded.p) == 0);
	CHECK(echo.read_bytes >= (256 << 10));
	CHECK(echo.read_bytes < (257 << 10));
	echo.read_bytes = 0;
	CHECK(programs_drain(loaded.p) == 0);
	CHECK(echo.read_bytes > (15 << 20));
	CHECK(echo.read_bytes < (17 << 20)); // the ring has 16 MB
	echo.read_bytes = Echo::most_bytes;
}

TEST_CASE("programs of accounts disable preemption where the kernel can do that, and no others")
{
	REQUIRE(geteuid() == 0);
	support host;
	support_probe(&host);
	for (const bool can : {host.disables_preemption, false}) {
		host.disables_preemption = can;
		programs *p = nullptr;
		Seen seen;
		const programs_wanted wanted = {};
		const uint32_t before = newest_program();
		REQUIRE(programs_load(&p, &host, &wanted, on_event, &seen) == 0);
		const std::set<std::string> found = disabling_preemption(before);
		programs_free(p);
		for (const char *name : {"sched_process_f", "mm_page_alloc", "page_fault_user"}) {
			INFO(name);
			CHECK(found.count(name) == can);
		}
		CHECK(found.count("sched_switch") == 0);
		CHECK(found.count("block_rq_issue") == 0);
	}
}

TEST_CASE("the longest interval of a window does not become short where its number ends")
{
	REQUIRE(geteuid() == 0);
	const pid_t sleeper = fork();
	if (!sleeper) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sleep_for(Seconds(6));
		_exit(0);
	}
	uint32_t longest_ns = 0;
	programs_wanted wanted = {};
	wanted.min_span_ns = 60'000'000'000; // no interval is a span
	Loaded loaded(
	    wanted,
	    [](void *context, const void *event, size_t) {
		    const auto *tally = static_cast<const ft_event_tally *>(event);
		    auto *longest = static_cast<uint32_t *>(context);
		    if (tally->type == FT_EVENT_TALLY)
			    *longest = std::max(*longest, tally->entry[FT_SLEEP].max_ns);
	    },
	    &longest_ns, sleeper);
	waitpid(sleeper, nullptr, 0);
	CHECK(programs_drain(loaded.p) == 0);
	CHECK(longest_ns == UINT32_MAX); // 4.3 s
}

TEST_CASE("states in a hash: 5,000 threads start and end with a table of 4,096, and nothing is lost")
{
	REQUIRE(geteuid() == 0);
	int go[2];
	REQUIRE(pipe(go) == 0);
	const pid_t pid = start_of_threads(go[0]);
	REQUIRE(pid > 0);
	uint64_t drops[FT_DROP_SLOTS] = {};
	std::set<std::string> loaded;
	const auto seen = record(
	    pid,
	    [](support &s) {
		    s.has_task_storage = s.has_task_pt_regs = s.disables_preemption = false;
	    }, // as on 5.10
	    [&] {
		    if (write(go[1], "x", 1) == 1)
			    waitpid(pid, nullptr, 0);
	    },
	    drops, &loaded);
	close(go[0]);
	close(go[1]);
	CHECK(seen->begun == 5001);
	CHECK(seen->ended == 5001);
	CHECK(drops[FT_DROP_SLOT_THREAD_STATE] == 0);
	for (size_t i = 0; i < FT_DROP_SLOTS; i++) {
		INFO("slot " << i);
		CHECK(drops[i] == 0);
	}
	check_accounts(*seen);
}

TEST_CASE("without perf events no fault begins, and its time is the server's own")
{
	REQUIRE(geteuid() == 0);
	Redis redis({.tcp = false, .config = {"--enable-debug-command", "yes"}});
	uint64_t drops[FT_DROP_SLOTS] = {};
	std::set<std::string> loaded;
	const auto seen = record(
	    redis.pid(), [](support &s) { s.has_fault_events = false; },
	    [&] {
		    redis.command({"DEBUG", "POPULATE", "100000", "key", "300"});
	    },
	    drops, &loaded);
	CHECK(loaded.count("sched_switch") == 1);
	for (const char *name :
	     {"page_fault_user", "page_fault_kernel", "mm_page_alloc", "fault_end_minor",
	      "fault_end_minor_old", "fault_end_major", "fault_begin", "fault_begin_event"}) {
		INFO(name);
		CHECK(loaded.count(name) == 0);
	}
	for (const auto &[key, a] : seen->accounts)
		CHECK(a.faults == 0);
	check_accounts(*seen);
}

TEST_CASE("the kind of a fault without a reason follows from what it did")
{
	REQUIRE(geteuid() == 0);
	constexpr uint64_t kPages = 2000;
	Redis redis(
	    {.tcp = false, .config = {"--rdb-key-save-delay", "1000000", "--enable-debug-command", "yes"}});
	redis.command({"SETRANGE", "big", std::to_string(64 << 20), "x"});
	uint64_t drops[FT_DROP_SLOTS] = {};
	std::set<std::string> loaded;
	const auto write_pages = [&] {
		redis.command(
		    {"EVAL",
		     "for i = 0, tonumber(ARGV[1]) - 1 do redis.call('SETRANGE', KEYS[1], i * 4096, 'y') end",
		     "1", "big", std::to_string(kPages)});
	};
	const auto seen = record(
	    redis.pid(), [](support &s) { s.fault_begin = FAULT_BEGIN_EVENT; },
	    [&] {
		    write_pages(); // no child: nothing is copied
		    redis.command({"BGSAVE"});
		    write_pages();
		    redis.command({"SETRANGE", "fresh", std::to_string(8 << 20), "x"});
	    },
	    drops, &loaded);
	CHECK(loaded.count("page_fault_user") == 0);
	CHECK(loaded.count("fault_begin_event") == 1);
	CHECK(seen->counts[FT_COW_COPY] >= kPages);
	CHECK(seen->counts[FT_COW_COPY] < kPages + kPages / 2);
	CHECK(seen->counts[FT_PAGE_ZERO] > 0);
	CHECK(seen->counts[FT_FAULT_OTHER] == 0);
	check_accounts(*seen);
}
