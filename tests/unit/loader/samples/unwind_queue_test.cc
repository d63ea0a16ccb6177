// SPDX-License-Identifier: MIT
// Samples and the helper process that resolves their symbols, without kernel samples. This process is the
// target.
#include "tests/support/catch.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <memory>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "loader/samples.h"
#include "loader/system.h"
#include "tests/support/process.h"

using namespace forktail::test;

namespace
{

struct Named {
	uint64_t t_ns;
	std::string frames, program;
	bool known;
};

uint64_t DeathsOf(const std::string &helper)
{
	uint64_t count = 0;
	for (size_t i = 0; const char *name = helper_deaths(i, &count); i++)
		if (name == helper)
			return count;
	return 0;
}

// The processes that a recorder starts; they end with the test.
struct Helpers {
	Helpers()
	{
		static const helper_setup *const kinds[] = {&files_helper, &unwind_helper};
		REQUIRE(helpers_begin(kinds, 2) == 0);
	}
	~Helpers() { helpers_end(); }
};

struct Unwinding {
	Helpers helpers;
	target_files *files = target_files_open();
	unwind_queue *u = unwind_queue_open(files);
	std::vector<Named> results;
	uint64_t asked = 0;

	Unwinding()
	{
		REQUIRE(u);
		unwind_queue_handle(
		    u,
		    [](void *context, const unwind_queue_result *r) {
			    static_cast<std::vector<Named> *>(context)->push_back(
				{r->record.t_ns, r->frames ? r->frames : "", r->program,
				 r->frames != nullptr});
		    },
		    &results);
	}
	~Unwinding()
	{
		unwind_queue_close(u);
		target_files_close(files);
	}
	void add(const void *address, pid_t pid = getpid(), pid_t parent = 0)
	{
		ft_cpu_sample record = {};
		record.t_ns = ++asked;
		ft_event_sample e = {};
		e.type = FT_EVENT_SAMPLE;
		e.tgid = static_cast<uint32_t>(pid);
		e.ip = reinterpret_cast<uint64_t>(address);
		unwind_queue_add(u, &record, &e, nullptr, parent);
	}
	// The first sample of a file costs a slow machine more than its budget.
	void refill_budget() const
	{
		for (int i = 0; i < 20; i++) {
			sleep_for(Seconds(0.05));
			tick();
		}
	}
	void tick() const
	{
		target_files_tick(files);
		unwind_queue_tick(u);
	}
	pid_t helper() const { return unwind_queue_so_far(u).helper; }
};

// A helper that has been taken over: it is stopped, and the test has its socket. It must have started
// (answered once): before that, another descriptor has this number.
struct TakenOver {
	pid_t pid;
	int requests;

	explicit TakenOver(pid_t helper) : pid(helper)
	{
		kill(pid, SIGSTOP);
		const auto pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
		requests = static_cast<int>(syscall(SYS_pidfd_getfd, pidfd, HELPER_SOCKET, 0));
		close(pidfd);
		REQUIRE(requests >= 0);
	}
	~TakenOver() { close(requests); }
	void answer(uint64_t serial) const
	{
		unwind_answer a = {};
		a.serial = serial;
		strcpy(a.text, "f\tlib.so\n");
		const size_t bytes = offsetof(unwind_answer, text) + strlen(a.text);
		REQUIRE(send(requests, &a, bytes, MSG_DONTWAIT) == static_cast<ssize_t>(bytes));
	}
};

// A stack in a C library function that sanitizers do not replace.
const void *address_of(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

} // namespace

TEST_CASE("the helper names a process' function from the files that it was given")
{
	Unwinding w;
	unwind_queue_prepare(w.u, getpid());
	w.add(address_of("l64a"));
	w.add(reinterpret_cast<const void *>(16));
	unwind_queue_settle(w.u);
	REQUIRE(w.results.size() == 2);
	CHECK(w.results[0].frames == "l64a\tlibc.so.6\n");
	CHECK(w.results[0].program == "test_loader");
	CHECK(w.results[1].frames == "\t\n");
	CHECK(unwind_queue_so_far(w.u).not_unwound == 0);
	CHECK(unwind_queue_so_far(w.u).helper_cpu_ns > 0);
}

TEST_CASE("a stripped library's functions are named from its debug file, found by build id")
{
	if (geteuid() != 0)
		return;
	const std::string id = FORKTAIL_STRIPPED_BUILD_ID;
	const std::filesystem::path dir = "/usr/lib/debug/.build-id/" + id.substr(0, 2);
	const std::filesystem::path file = dir / (id.substr(2) + ".debug");
	void *library = dlopen(FORKTAIL_STRIPPED, RTLD_NOW);
	REQUIRE(library);
	const auto function = reinterpret_cast<const void *(*)()>(dlsym(library, "stripped_function"))();
	const auto named = [&] {
		Unwinding w;
		w.add(function);
		unwind_queue_settle(w.u);
		REQUIRE(w.results.size() == 1);
		return w.results[0].frames;
	};
	CHECK(named() == "\tlibstripped.so\n");
	std::filesystem::create_directories(dir);
	std::filesystem::copy_file(std::string(FORKTAIL_STRIPPED) + ".debug", file,
				   std::filesystem::copy_options::overwrite_existing);
	const std::string with_debug_file = named();
	std::filesystem::remove(file);
	std::error_code not_empty;
	std::filesystem::remove(dir, not_empty);
	std::filesystem::remove(dir.parent_path(), not_empty);
	CHECK(with_debug_file == "known_by_its_debug_file\tlibstripped.so\n");
	dlclose(library);
}

TEST_CASE("results arrive in the order of the samples, each once")
{
	Unwinding w;
	for (int i = 0; i < 300; i++)
		w.add(address_of(i % 2 ? "l64a" : "lsearch"));
	unwind_queue_settle(w.u);
	REQUIRE(w.results.size() == 300);
	size_t wrong = 0;
	for (size_t i = 0; i < 300; i++)
		wrong += w.results[i].t_ns != i + 1 ||
			 (w.results[i].known && w.results[i].frames.find(i % 2 ? "l64a" : "lsearch") != 0);
	CHECK(wrong == 0);
}

TEST_CASE("a dead helper loses only its waiting samples, and another one continues, however often")
{
	Unwinding w;
	for (int deaths = 0; deaths < 3; deaths++) {
		w.results.clear();
		REQUIRE(eventually([&] {
			w.tick();
			return w.helper() != 0;
		}));
		w.add(address_of("l64a"));
		unwind_queue_settle(w.u);
		REQUIRE(w.results.size() == 1);
		CHECK(w.results[0].frames == "l64a\tlibc.so.6\n");
		kill(w.helper(), SIGKILL);
		w.add(address_of("l64a"));
		REQUIRE(eventually([&] {
			w.tick();
			return w.results.size() == 2;
		}));
		CHECK_FALSE(w.results[1].known);
		CHECK(unwind_queue_so_far(w.u).not_unwound == static_cast<uint64_t>(deaths + 1));
		CHECK(DeathsOf("unwind") == static_cast<uint64_t>(deaths + 1));
	}
}

TEST_CASE(
    "while the process that opens files hangs, samples wait; then its process is left alone for a while")
{
	Unwinding w;
	const pid_t first = target_files_so_far(w.files).pid;
	kill(first, SIGSTOP);
	w.add(address_of("l64a"));
	CHECK(w.results.empty());
	REQUIRE(eventually(
	    [&] {
		    w.tick();
		    return w.results.size() == 1;
	    },
	    Seconds(10)));
	CHECK_FALSE(w.results[0].known);
	CHECK(DeathsOf("files") == 1);
	REQUIRE(eventually([&] {
		w.tick();
		const pid_t now = target_files_so_far(w.files).pid;
		return now && now != first;
	}));
	char title[64];
	target_files_title_now(w.files, getpid(), title, sizeof title);
	CHECK(std::string(title).empty()); // left alone
	target_files_title_now(w.files, getppid(), title, sizeof title);
	CHECK_FALSE(std::string(title).empty()); // others are not
}

TEST_CASE("a hung helper delays nothing, not even when it is stopped with a full queue")
{
	Unwinding w;
	kill(w.helper(), SIGSTOP);
	for (int i = 0; i < 6000; i++) {
		w.add(address_of("l64a"));
		if (i % 100 == 0)
			w.tick(); // allows more time
	}
	CHECK(w.results.size() >= 6000 - 4096); // the queue's limit
	REQUIRE(eventually([&] {
		w.tick();
		return w.results.size() == 6000;
	}));
	for (const Named &n : w.results)
		CHECK_FALSE(n.known);
	// When it continues, it answers abandoned samples. Those answers belong to no later sample.
	kill(w.helper(), SIGCONT);
	REQUIRE(eventually([&] {
		const size_t before = w.results.size();
		w.add(address_of("lsearch"));
		unwind_queue_settle(w.u);
		return w.results.size() == before + 1 && w.results.back().known;
	}));
	CHECK(w.results.back().frames == "lsearch\tlibc.so.6\n");
}

TEST_CASE("a helper that is silent for ten seconds is ended, and the next one continues")
{
	Unwinding w;
	const pid_t first = w.helper();
	kill(first, SIGSTOP);
	w.add(address_of("l64a"));
	REQUIRE(eventually(
	    [&] {
		    w.tick();
		    return w.helper() && w.helper() != first;
	    },
	    Seconds(30)));
	CHECK(w.results.size() == 1);
	w.add(address_of("l64a"));
	unwind_queue_settle(w.u);
	REQUIRE(w.results.size() == 2);
	CHECK(w.results[1].known);
	CHECK(DeathsOf("unwind") == 1);
}

TEST_CASE("a helper that sends without end holds nothing up")
{
	if (geteuid() != 0)
		return;
	Unwinding w;
	w.add(address_of("l64a"));
	unwind_queue_settle(w.u);
	REQUIRE(w.results.size() == 1); // it has started
	w.results.clear();
	const TakenOver helper(w.helper());
	w.refill_budget();
	w.add(address_of("l64a"));
	for (int i = 0; i < 3; i++)
		helper.answer(2);
	w.tick();
	REQUIRE(w.results.size() == 1);
	CHECK(w.results[0].frames == "f\tlib.so\n");
	CHECK(w.helper() == helper.pid); // what it sends beyond the answer is not read
	w.add(address_of("l64a"));
	w.tick();
	CHECK(w.helper() != helper.pid); // it answers a sample twice
	CHECK(w.results.size() == 2);
}

TEST_CASE("an ended child is named from its parent's files")
{
	Unwinding w;
	w.add(address_of("l64a"), 4194304, getpid());
	w.add(address_of("l64a"), 4194303, 0);
	unwind_queue_settle(w.u);
	REQUIRE(w.results.size() == 2);
	CHECK(w.results[1].t_ns + w.results[0].t_ns == 3);
	for (const Named &n : w.results)
		CHECK(n.known == (n.t_ns == 1));
}
