// SPDX-License-Identifier: MIT
// Rules as users write them, and one sentence for each invalid one.
#include "live/guard/config/rule.h"
#include "tests/support/catch.h"

using namespace forktail::analysis;
using namespace forktail::live::guard;
using namespace forktail::live::guard;

namespace
{

Rule parsed(const std::string &text)
{
	Rule rule;
	std::string error;
	INFO(text);
	const bool good = ParseRule(text, &rule, &error);
	INFO(error);
	REQUIRE(good);
	return rule;
}

std::string refused(const std::string &text)
{
	Rule rule;
	std::string error;
	INFO(text);
	REQUIRE_FALSE(ParseRule(text, &rule, &error));
	return error;
}

} // namespace

TEST_CASE("rules have a subject and a limit, and name their snapshot")
{
	const Rule turn = parsed("turn > 50ms");
	CHECK(turn.what == What::Iteration);
	CHECK(turn.limit_ns == 50'000'000);
	CHECK(turn.name == "turn");

	const Rule fork = parsed("stall(fork)>20ms");
	CHECK(fork.what == What::Stall);
	CHECK(fork.limit_ns == 20'000'000);
	CHECK(fork.causes.count() == 1);
	CHECK(fork.causes[Index(Cause::Fork)]);
	CHECK(fork.name == "stall-fork");
	CHECK(fork.text == "stall(fork) > 20ms");

	const Rule any = parsed(" stall > 0.1 s");
	CHECK(any.limit_ns == 100'000'000);
	CHECK(any.causes.count() == static_cast<size_t>(kStallCauses));

	const Rule rate = parsed("rate( page-in ) > 100/s");
	CHECK(rate.what == What::Rate);
	CHECK(rate.limit == 100);
	CHECK(rate.name == "rate-page-in");

	const Rule drops = parsed("drops > 0");
	CHECK(drops.what == What::Drops);
	CHECK(drops.limit == 0);
}

TEST_CASE("softirq means all of its vectors, softirq/net_rx one")
{
	const Rule all = parsed("stall(softirq) > 1ms"), one = parsed("stall(softirq/net_rx) > 1ms");
	CHECK(all.causes.count() > 5);
	CHECK(one.causes.count() == 1);
	CHECK(one.name == "stall-softirq-net_rx");
}

TEST_CASE("an invalid rule is refused in one sentence")
{
	CHECK(refused("") == "a rule is empty: write one such as \"turn > 50ms\"");
	CHECK(refused("turn") ==
	      "the rule \"turn\" is not understood: it is FIGURE > LIMIT, where a figure is turn, stall, "
	      "stall(CAUSE), rate(CAUSE) or drops");
	for (const char *text : {"turn < 5ms", "turn >= 5ms", "turn = 5ms"})
		CHECK(refused(text).find("it is FIGURE > LIMIT") != std::string::npos);
	CHECK(refused("p99 > 5ms") ==
	      "the rule \"p99 > 5ms\" is not understood: there is no figure \"p99\": it is "
	      "turn, stall, stall(CAUSE), rate(CAUSE) or drops");
	CHECK(refused("stall(frok) > 5ms") == "the rule \"stall(frok) > 5ms\" is not understood: there is no "
					      "stall \"frok\"; docs/reference/causes.md lists them");
	// These do not prevent the thread from working.
	CHECK(refused("stall(idle) > 5ms").find("there is no stall \"idle\"") != std::string::npos);
	CHECK(refused("stall() > 5ms").find("there is no stall \"\"") != std::string::npos);
	CHECK(refused("stall(fork > 5ms").find("a bracket is not closed") != std::string::npos);
	CHECK(refused("turn(fork) > 5ms").find("turn is of no cause") != std::string::npos);
	CHECK(refused("rate > 5/s").find("rate needs a cause") != std::string::npos);
	CHECK(refused("turn > 50").find("a limit of turn is a time such as 50ms, not \"50\"") !=
	      std::string::npos);
	CHECK(refused("turn > 0ms").find("is a time such as") != std::string::npos);
	CHECK(refused("turn > -5ms").find("is a time such as") != std::string::npos);
	CHECK(refused("rate(fork) > 100").find("is a rate such as 100/s, not \"100\"") != std::string::npos);
	CHECK(refused("drops > x").find("a limit of drops is a number such as 0, not \"x\"") !=
	      std::string::npos);
}
