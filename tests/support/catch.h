// SPDX-License-Identifier: MIT
// Catch2's header, whichever major version the system has: Debian 12 ships 2, newer systems 3.
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
