// SPDX-License-Identifier: MIT
// Rules as users write them, and one sentence for each invalid one.
#include "live/config.h"
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
	const Rule iteration = parsed("iteration > 50ms");
	CHECK(iteration.what == What::Iteration);
	CHECK(iteration.limit_ns == 50'000'000);
	CHECK(iteration.name == "iteration");
	CHECK(iteration.text == "iteration > 50ms");

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

TEST_CASE("turn is an alias of iteration: the rule has the new name")
{
	const Rule rule = parsed("turn>50 ms");
	CHECK(rule.what == What::Iteration);
	CHECK(rule.limit_ns == 50'000'000);
	CHECK(rule.name == "iteration");
	CHECK(rule.text == "iteration > 50ms");
}

TEST_CASE("softirq means all of its vectors, softirq/net_rx for one")
{
	const Rule all = parsed("stall(softirq) > 1ms"), one = parsed("stall(softirq/net_rx) > 1ms");
	CHECK(all.causes.count() > 5);
	CHECK(one.causes.count() == 1);
	CHECK(one.name == "stall-softirq-net_rx");
}

TEST_CASE("an invalid rule is refused in one sentence")
{
	CHECK(refused("") == "the rule is empty: write one such as \"iteration > 50ms\"");
	CHECK(refused("iteration") == "the rule \"iteration\" is invalid: write FIGURE > LIMIT, where FIGURE "
				      "is iteration, stall, stall(CAUSE), rate(CAUSE) or drops");
	for (const char *text : {"iteration < 5ms", "iteration >= 5ms", "turn = 5ms"})
		CHECK(refused(text).find("write FIGURE > LIMIT") != std::string::npos);
	CHECK(refused("p99 > 5ms") == "the rule \"p99 > 5ms\" is invalid: unknown figure \"p99\": use "
				      "iteration, stall, stall(CAUSE), rate(CAUSE) or drops");
	CHECK(refused("stall(frok) > 5ms") == "the rule \"stall(frok) > 5ms\" is invalid: unknown stall "
					      "\"frok\": docs/reference/causes.md lists all causes");
	// Not kept from its work by these.
	CHECK(refused("stall(idle) > 5ms").find("unknown stall \"idle\"") != std::string::npos);
	CHECK(refused("stall() > 5ms").find("unknown stall \"\"") != std::string::npos);
	CHECK(refused("stall(fork > 5ms").find("the closing bracket is missing") != std::string::npos);
	CHECK(refused("iteration(fork) > 5ms").find("iteration takes no cause") != std::string::npos);
	CHECK(refused("rate > 5/s").find("rate needs a cause") != std::string::npos);
	CHECK(refused("turn > 50").find("the limit of iteration must be a time such as 50ms, not \"50\"") !=
	      std::string::npos);
	CHECK(refused("iteration > 0ms").find("must be a time such as") != std::string::npos);
	CHECK(refused("iteration > -5ms").find("must be a time such as") != std::string::npos);
	CHECK(refused("rate(fork) > 100").find("must be a rate such as 100/s, not \"100\"") !=
	      std::string::npos);
	CHECK(refused("drops > x").find("the limit of drops must be a number such as 0, not \"x\"") !=
	      std::string::npos);
}
