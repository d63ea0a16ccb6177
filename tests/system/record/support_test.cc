// SPDX-License-Identifier: MIT
// Questions to the kernel's type information that have no other way out of the loader. test_support.py tests
// what doctor and the recorder make of the answers.
#include <memory>
#include <string>

#include "tests/support/catch.h"

#include "loader/attach.h"
#include "loader/system.h"

TEST_CASE("an unknown kernel feature is reported as missing")
{
	const auto s = std::make_unique<support>();
	support_probe(s.get());
	bool has_btf = false;
	for (size_t i = 0; i < s->count; i++)
		has_btf |= s->features[i].available && s->features[i].name == std::string("kernel BTF");
	CHECK(support_has_tracepoint("sched_switch") == has_btf);
	CHECK_FALSE(support_has_tracepoint("sched_twitch"));
	CHECK_FALSE(support_has_event("syscalls/sys_enter_nothing"));
	CHECK(support_has_event("syscalls/sys_enter_epoll_pwait") == s->has_call_events);
	CHECK(support_has_function((std::string(machine.call_prefix) + "epoll_pwait").c_str()) == has_btf);
	CHECK_FALSE(support_has_function("no_such_function"));
	CHECK(support_function_arguments("no_such_function") == -1);
	CHECK((support_function_arguments("tcp_sendmsg") == 3) == has_btf);
}
