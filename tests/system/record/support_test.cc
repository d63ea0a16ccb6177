// SPDX-License-Identifier: MIT
// The list of a host's features: doctor prints the same list that the recorder uses.
#include "tests/support/catch.h"
#include "tests/support/process.h"

#include <fstream>
#include <memory>
#include <set>
#include <sys/utsname.h>
#include <unistd.h>

#include "loader/attach.h"
#include "loader/system.h"

using namespace forktail::test;

namespace
{

std::unique_ptr<support> probed()
{
	auto s = std::make_unique<support>();
	support_probe(s.get());
	return s;
}

const feature *find(const support &s, const std::string &name)
{
	for (size_t i = 0; i < s.count; i++)
		if (name == s.features[i].name)
			return &s.features[i];
	return nullptr;
}

} // namespace

TEST_CASE("every feature is listed once, with its effect when missing, and why it is missing")
{
	const auto s = probed();
	utsname u = {};
	uname(&u);
	CHECK(s->kernel == std::string(u.release));
	CHECK(s->cpus >= sysconf(_SC_NPROCESSORS_ONLN));
	CHECK(s->count < SUPPORT_FEATURES); // none was omitted for lack of room
	std::set<std::string> names;
	for (size_t i = 0; i < s->count; i++) {
		const feature &f = s->features[i];
		INFO(f.name);
		CHECK(names.insert(f.name).second);
		CHECK(f.without[0]);
		CHECK((f.why[0] == 0) == f.available);
	}
	REQUIRE(find(*s, "root"));
	CHECK(find(*s, "root")->available == (geteuid() == 0));
	CHECK(find(*s, "root")->need == NEED_REQUIRED);
	for (const char *name : {"sched_switch", "sched_wakeup", "softirq_entry", "block_rq_issue"}) {
		INFO(name);
		REQUIRE(find(*s, name));
		CHECK(find(*s, name)->available == support_has_tracepoint(name));
	}
}

TEST_CASE("an unknown kernel feature is reported as missing")
{
	const auto s = probed();
	CHECK(support_has_tracepoint("sched_switch") == find(*s, "kernel BTF")->available);
	CHECK_FALSE(support_has_tracepoint("sched_twitch"));
	CHECK_FALSE(support_has_event("syscalls/sys_enter_nothing"));
	CHECK(support_has_event("syscalls/sys_enter_epoll_pwait") == s->has_call_events);
	CHECK(support_has_function((std::string(machine.call_prefix) + "epoll_pwait").c_str()) ==
	      find(*s, "kernel BTF")->available);
	CHECK_FALSE(support_has_function("no_such_function"));
	CHECK(support_function_arguments("no_such_function") == -1);
	CHECK((support_function_arguments("tcp_sendmsg") == 3) == find(*s, "kernel BTF")->available);
}

TEST_CASE("requests are seen at functions only if their tracepoints are missing")
{
	const auto s = probed();
	char why[200] = "";
	const bool tracepoints =
	    support_has_tracepoint("sk_data_ready") && support_has_tracepoint("sock_recv_length");
	const bool can = support_requests_error(why, sizeof why) == 0;
	INFO(why);
	CHECK(support_requests_by_functions() == !tracepoints);
	CHECK((can || !tracepoints));
	CHECK(can == (why[0] == 0));
}

TEST_CASE("system calls are traced by functions if possible, else by tracepoints, else not")
{
	auto s = probed();
	char why[160] = "";
	s->has_call_events = true;
	CHECK(support_choose_exact(s.get(), EXACT_NOT, why, sizeof why) == 0);
	CHECK(s->exact == EXACT_NOT);
	CHECK(support_choose_exact(s.get(), EXACT_BY_TRACEPOINTS, why, sizeof why) == 0);
	CHECK(s->exact == EXACT_BY_TRACEPOINTS);
	const bool functions = support_choose_exact(s.get(), EXACT_BY_FUNCTIONS, why, sizeof why) == 0;
	INFO(why);
	CHECK(functions == (why[0] == 0));
	CHECK(support_choose_exact(s.get(), EXACT_EITHER, why, sizeof why) == 0);
	CHECK(s->exact == (functions ? EXACT_BY_FUNCTIONS : EXACT_BY_TRACEPOINTS));

	s->has_call_events = false;
	CHECK(support_choose_exact(s.get(), EXACT_NOT, why, sizeof why) == 0);
	CHECK((support_choose_exact(s.get(), EXACT_EITHER, why, sizeof why) == 0) == functions);
	REQUIRE(support_choose_exact(s.get(), EXACT_BY_TRACEPOINTS, why, sizeof why) == -ENOENT);
	CHECK(std::string(why).find("Mount tracefs") != std::string::npos);
}

TEST_CASE("Hyper-V's timer cannot be traced, whatever tracepoints exist")
{
	CHECK(support_sees_timer("lapic"));
	CHECK(support_sees_timer("lapic-deadline"));
	CHECK(support_sees_timer("hpet"));
	CHECK_FALSE(support_sees_timer("Hyper-V clockevent"));
	const auto s = probed();
	REQUIRE(find(*s, "timer interrupts"));
	CHECK(find(*s, "timer interrupts")->available ==
	      (run({"grep", "-q", "Hyper-V", "/sys/devices/system/clockevents/clockevent0/current_device"})
		   .status != 0));
}

TEST_CASE("the first missing required feature blocks a recording")
{
	auto s = std::make_unique<support>();
	auto add = [&](const char *name, need how, bool available) {
		s->features[s->count++] = {name, "something", how, available, ""};
	};
	CHECK(support_blocker(s.get()) == nullptr);
	add("a", NEED_REQUIRED, true);
	add("b", NEED_PART, false);
	CHECK(support_blocker(s.get()) == nullptr);
	add("c", NEED_REQUIRED, false);
	add("d", NEED_REQUIRED, false);
	REQUIRE(support_blocker(s.get()));
	CHECK(support_blocker(s.get())->name == std::string("c"));
}

TEST_CASE("doctor prints the recorder's list, and its exit status summarizes it")
{
	const auto s = probed();
	const Result doctor = run({program("forktail-record"), "--doctor"});
	size_t missing = 0;
	std::string list;
	for (size_t i = 0; i < s->count; i++) {
		const feature &f = s->features[i];
		list += f.available ? std::string("  yes  ") + f.name + "\n"
				    : std::string(f.need == NEED_EXTRA ? "  no   " : "  NO   ") + f.name +
					  ": " + f.why + "\n       " +
					  (f.need == NEED_REQUIRED ? "without it nothing can be recorded: "
								   : "without it: ") +
					  f.without + "\n";
		missing += !f.available && f.need != NEED_EXTRA;
	}
	INFO(doctor.out << "should hold\n" << list);
	CHECK(doctor.out.find("\n\n" + list + "\n") != std::string::npos);
	CHECK(doctor.status == (support_blocker(s.get()) ? 3 : missing ? 1 : 0));
}
