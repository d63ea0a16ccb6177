// SPDX-License-Identifier: MIT
// Catch2's main. A test that finds the machine unable to do what it needs says SKIPPED and why, and never
// passes by staying silent.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
int main(int argc, char **argv)
{
	return Catch::Session().run(argc, argv);
}
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
