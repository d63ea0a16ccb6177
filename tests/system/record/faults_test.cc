// SPDX-License-Identifier: MIT
// Page faults distinguished by the kernel's action, on a process that touches memory on request. Also faults
// that never end: of profilers that follow invalid frame pointers, of signals, of many threads.
#include <atomic>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/support/catch.h"
#include "tests/support/servers/server.h"
#include "tests/system/record/recorder.h"

using namespace forktail::test;

namespace
{

constexpr size_t kPage = 4096, kPages = 2000;
constexpr uint64_t ms = 1'000'000;
// Pages of a program's own (stack, heap, the C library's data) that it touches in addition.
constexpr uint64_t kOwn = 60;

// A forked process that performs one action after the other, each on request.
class Obedient
{
public:
	explicit Obedient(std::vector<std::function<void()>> things) : count_(things.size())
	{
		int to[2], from[2];
		REQUIRE((pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0));
		pid_ = fork();
		REQUIRE(pid_ >= 0);
		if (pid_ == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			char c;
			for (auto &thing : things) {
				if (read(to[0], &c, 1) != 1)
					break;
				thing();
				if (write(from[1], &c, 1) != 1)
					break;
			}
			pause();
			_exit(0);
		}
		close(to[0]);
		close(from[1]);
		tell_ = to[1];
		hear_ = from[0];
	}
	~Obedient()
	{
		kill(pid_, SIGKILL);
		waitpid(pid_, nullptr, 0);
		close(tell_);
		close(hear_);
	}
	Obedient(const Obedient &) = delete;
	Obedient &operator=(const Obedient &) = delete;

	pid_t pid() const { return pid_; }
	uint32_t tid() const { return static_cast<uint32_t>(pid_); }
	void begin_next() { REQUIRE((done_++ < count_ && write(tell_, "x", 1) == 1)); }
	void ended()
	{
		char c;
		REQUIRE(read(hear_, &c, 1) == 1);
	}
	void next()
	{
		begin_next();
		ended();
	}

private:
	size_t count_, done_ = 0;
	pid_t pid_ = -1;
	int tell_ = -1, hear_ = -1;
};

void check_account(const Recorded &r, uint32_t tid)
{
	for (const auto &[key, t] : r.threads) {
		if (t.tid != tid)
			continue;
		const double wall = static_cast<double>(t.end_ns - t.start_ns);
		CHECK(static_cast<double>(r.accounted_ns(tid)) == Approx(wall).epsilon(0.0001));
	}
}

volatile char *anonymous()
{
	void *at = mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(at, kPages * kPage, MADV_NOHUGEPAGE);
	return static_cast<volatile char *>(at);
}

void read_all(volatile char *at)
{
	for (size_t i = 0; i < kPages; i++)
		(void)at[i * kPage];
}

void write_all(volatile char *at)
{
	for (size_t i = 0; i < kPages; i++)
		at[i * kPage] = 1;
}

pid_t fork_holder()
{
	const pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	return pid;
}

// What was recorded of the next action.
Recorded recorded(Obedient &p)
{
	Recorder recorder(p.pid());
	p.next();
	return recorder.stop();
}

// Checks that a thread had this many faults of a kind. If not, prints what it had: a page that was swapped
// out, a skipped program and a lost event each leave a different trace. After a switch that the kernel did
// not report (docs/how-it-works/attribution.md), a thread's faults are not seen until its next switch.
void check_near(const Recorded &r, uint32_t tid, ft_owner owner, uint64_t wanted)
{
	const uint64_t count = r.count(tid, owner);
	INFO(count << " of " << wanted << "; new " << r.count(tid, FT_PAGE_ZERO) << ", copied "
		   << r.count(tid, FT_COW_COPY) << ", not copied " << r.count(tid, FT_COW_REUSE) << ", read "
		   << r.count(tid, FT_PAGE_IN) << ", of files " << r.count(tid, FT_PAGE_FILE) << ", other "
		   << r.count(tid, FT_FAULT_OTHER) << ", off the CPU " << r.owned_ns(tid, FT_RUN_QUEUE)
		   << " ns; missed " << r.missed() << ", dropped " << r.dropped());
	CHECK(count <= wanted + kOwn);
	// The kernel counts those for which it skipped the program.
	if (const uint64_t unseen = r.unseen_switches())
		WARN(unseen << " switches were not reported: whether faults are missing is not checked");
	else
		CHECK(count + r.missed() >= wanted);
}

} // namespace

TEST_CASE("memory read before it is written to is new memory twice, and nothing is copied")
{
	REQUIRE(root());
	volatile char *at = anonymous();
	Obedient p({[=] { read_all(at); }, [=] { write_all(at); }});
	Recorded r = recorded(p);
	check_near(r, p.tid(), FT_PAGE_ZERO, kPages);
	r = recorded(p);
	check_near(r, p.tid(), FT_PAGE_ZERO, kPages);
	CHECK(r.count(p.tid(), FT_COW_COPY) <= kOwn); // shared with the test
	check_account(r, p.tid());
}

TEST_CASE("pages shared with a child are copied one by one, other pages are not")
{
	REQUIRE(root());
	volatile char *at = anonymous();
	pid_t child = -1;
	Obedient p({[=] { write_all(at); },
		    [&, at] {
			    child = fork_holder();
			    write_all(at);
		    },
		    [&, at] {
			    kill(child, SIGKILL);
			    waitpid(child, nullptr, 0);
			    write_all(at);
		    }});
	Recorded r = recorded(p);
	check_near(r, p.tid(), FT_PAGE_ZERO, kPages);
	CHECK(r.count(p.tid(), FT_COW_COPY) <= kOwn);
	r = recorded(p);
	check_near(r, p.tid(), FT_COW_COPY, kPages);
	check_account(r, p.tid());
	r = recorded(p);
	CHECK(r.count(p.tid(), FT_COW_COPY) <= kOwn);
}

TEST_CASE("a private file's page is the file's until it is copied, and ordinary memory after that")
{
	REQUIRE(root());
	TempDir dir;
	const int fd = open(dir.file("data").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	REQUIRE((fd >= 0 && ftruncate(fd, kPages * kPage) == 0));
	void *mapped = mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	volatile char *at = static_cast<volatile char *>(mapped);
	Obedient p({[=] { read_all(at); }, [=] { write_all(at); },
		    [=] {
			    fork_holder();
			    write_all(at);
		    }});
	// It shares everything with the test, which has not written to it, so these are the file's pages.
	p.next();
	Recorded r = recorded(p);
	check_near(r, p.tid(), FT_PAGE_FILE, kPages);
	CHECK(r.count(p.tid(), FT_COW_COPY) <= kOwn);
	r = recorded(p);
	check_near(r, p.tid(), FT_COW_COPY, kPages);
	close(fd);
}

TEST_CASE("a server that never forked copies nothing, however many requests it serves")
{
	REQUIRE(root());
	Redis redis;
	Recorder recorder(redis.pid());
	REQUIRE(run({"redis-benchmark", "-s", redis.socket(), "-n", "300000", "-r", "300000", "-d", "64",
		     "-P", "16", "-t", "set,get", "-q"})
		    .status == 0);
	const Recorded r = recorder.stop();
	const uint32_t main = static_cast<uint32_t>(redis.pid());
	CHECK(r.count(main, FT_PAGE_ZERO) > 1000);
	CHECK(r.count(main, FT_COW_COPY) == 0);
	CHECK(r.count(main, FT_COW_REUSE) == 0);
}

namespace
{

// Runs with a frame pointer to untouched memory: following it causes a fault and returns nothing.
__attribute__((noinline)) void run_with_garbage(uint64_t for_ns, char *garbage)
{
	for (const uint64_t end = ft_now_ns() + for_ns; ft_now_ns() < end; garbage += 64 * kPage) {
		uint64_t turns = 200'000;
		asm volatile("push %%rbp\n\t"
			     "mov %1, %%rbp\n"
			     "1:\tdec %0\n\t"
			     "jnz 1b\n\t"
			     "pop %%rbp"
			     : "+r"(turns)
			     : "r"(garbage)
			     : "memory", "cc");
	}
}

// Samples a thread and the stack from its frame pointers, as `perf record -g` does. Returns the event.
int profile(pid_t pid)
{
	perf_event_attr attr = {};
	attr.type = PERF_TYPE_SOFTWARE;
	attr.size = sizeof attr;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN;
	attr.sample_period = 500'000; // ns
	return static_cast<int>(syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

} // namespace

TEST_CASE("a profiler that follows invalid frame pointers does not change the account")
{
	REQUIRE(root());
	constexpr uint64_t kRun = 400 * ms;
	char *garbage = static_cast<char *>(
	    mmap(nullptr, 1ull << 36, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	REQUIRE(garbage != MAP_FAILED);
	Obedient p({[=] { run_with_garbage(kRun, garbage); }});
	const int event = profile(p.pid());
	REQUIRE(event >= 0);
	void *ring = mmap(nullptr, 65 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
	REQUIRE(ring != MAP_FAILED);
	const Recorded r = recorded(p);
	const uint64_t sampled = static_cast<perf_event_mmap_page *>(ring)->data_head;
	munmap(ring, 65 * kPage);
	close(event);
	REQUIRE(sampled > 1000); // bytes: it did profile
	check_account(r, p.tid());
	CHECK(json_number(r.cost, "faults_abandoned") == 0);
	CHECK((json_number(r.cost, "fault_begins") == json_number(r.cost, "fault_ends") || r.missed()));
	// It ran for that long, except for CPU time of others: that is its own code, and interrupts end.
	uint64_t away_ns = r.owned_ns(p.tid(), FT_RUN_QUEUE), interrupts_ns = r.owned_ns(p.tid(), FT_HARDIRQ);
	for (const ft_span &s : r.spans)
		if (s.tid == p.tid() && s.off_cpu)
			away_ns += s.runnable_ns;
	INFO("own code " << r.owned_ns(p.tid(), FT_OWN_CODE) << " ns, interrupts " << interrupts_ns
			 << ", away " << away_ns);
	CHECK(r.owned_ns(p.tid(), FT_OWN_CODE) + away_ns > kRun * 8 / 10);
	CHECK(interrupts_ns < kRun / 10);
	CHECK(r.longest([&](const ft_span &s) {
		return s.tid == p.tid() && s.owner == FT_HARDIRQ && s.duration_ns > 20 * ms;
	}) == nullptr);
}

namespace
{

char *forbidden;

// Gives the stack its own pages, so that a signal's frame takes no fault.
void touch_stack()
{
	volatile char at[16 * kPage];
	for (size_t i = 0; i < sizeof at; i += kPage)
		at[i] = 1;
}

// Turns a fault into one that a handler needs 60 ms for.
void on_fault(int)
{
	for (const uint64_t end = ft_now_ns() + 60 * ms; ft_now_ns() < end;)
		;
	mprotect(forbidden, kPage, PROT_READ | PROT_WRITE);
}

} // namespace

TEST_CASE("a fault that became a signal keeps its time where it was, as own code")
{
	REQUIRE(root());
	void *page = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	forbidden = static_cast<char *>(page);
	Obedient p({[] {
		signal(SIGSEGV, on_fault);
		touch_stack();
		on_fault(0); // nothing in it is new to the process
		mprotect(forbidden, kPage, PROT_NONE);
		*static_cast<volatile char *>(forbidden) = 1;
	}});
	Recorder recorder(p.pid());
	const uint64_t from_ns = ft_now_ns();
	p.next();
	const uint64_t until_ns = ft_now_ns();
	sleep_for(Seconds(0.3)); // the last window is not its window
	const std::string path = recorder.path();
	const Recorded r = recorder.stop();
	check_account(r, p.tid());
	const ft_span *s =
	    r.longest([&](const ft_span &x) { return x.tid == p.tid() && (x.flags & FT_SPAN_ABANDONED); });
	REQUIRE(s);
	CHECK(s->owner == FT_OWN_CODE);
	CHECK(s->arg[0] == reinterpret_cast<uint64_t>(forbidden));
	CHECK(s->duration_ns >= 60 * ms);
	CHECK((s->start_ns >= from_ns && s->start_ns + s->duration_ns <= until_ns));
	CHECK(json_number(r.cost, "faults_abandoned") == 1);
	CHECK((json_number(r.cost, "fault_begins") == json_number(r.cost, "fault_ends") + 1 || r.missed()));
}

namespace
{

constexpr size_t kThreads = 100;
std::atomic<int> turn;

void *touch_on_request(void *)
{
	while (!turn.load())
		usleep(1000);
	write_all(anonymous());
	turn++;
	pause();
	return nullptr;
}

// Threads that all touch memory.
Obedient crowd()
{
	return Obedient({[] {
				 for (size_t i = 1; i < kThreads; i++) {
					 pthread_t thread;
					 pthread_create(&thread, nullptr, touch_on_request, nullptr);
				 }
			 },
			 [] {
				 turn = 1;
				 while (turn.load() < static_cast<int>(kThreads))
					 usleep(1000);
			 }});
}

// A recorder that may open `soft` files, or up to `hard` after raising the limit.
Recorded recorded_within(unsigned soft, unsigned hard, Obedient &p, std::string *said)
{
	TempDir dir;
	const std::string path = dir.file("server.forktail");
	std::vector<std::string> argv = {
	    "prlimit",	     "--nofile=" + std::to_string(soft) + ":" + std::to_string(hard),
	    "setpriv",	     "--bounding-set",
	    "-sys_resource", "--"};
	for (const std::string &word : {program("forktail-record"), std::string("--pid"),
					std::to_string(p.pid()), std::string("-o"), path})
		argv.push_back(word);
	Process recorder(argv);
	REQUIRE(
	    eventually([&] { return recorder.err().find("recording ") != std::string::npos; }, Seconds(30)));
	p.next();
	recorder.signal(SIGINT);
	CHECK(recorder.wait(Seconds(60)) == 0);
	*said = recorder.err();
	return read_recording(path);
}

// The number of watched threads. It does not check that all of their faults were recorded: with a hundred
// threads on two busy CPUs a context switch may be missed, which loses a thread's faults until the next
// switch.
size_t with_faults(const Recorded &r)
{
	size_t n = 0;
	for (const auto &[key, t] : r.threads) {
		n += r.count(t.tid, FT_PAGE_ZERO) > kOwn;
		check_account(r, t.tid);
	}
	return n;
}

} // namespace

TEST_CASE("the faults of a hundred threads are watched within few open files")
{
	REQUIRE(root());
	Obedient p = crowd();
	p.next();
	std::string said;
	const Recorded r = recorded_within(128, 300, p, &said);
	INFO(said);
	CHECK(said.find("cannot attach") == std::string::npos);
	CHECK(r.threads.size() == kThreads);
	CHECK(with_faults(r) >= kThreads - 3);
	CHECK(json_number(r.cost, "fault_ends") + json_number(r.cost, "faults_abandoned") >=
	      json_number(r.cost, "fault_begins"));
}
