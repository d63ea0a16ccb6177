# SPDX-License-Identifier: MIT
# Tests of clocks of several hosts: what is made of round trips, and the program that makes them, on runs of two
# clocks.
forktail_test(host_clocks unit SOURCES unit/analysis/run/host_clocks_test.cc
  LIBRARIES forktail_analysis forktail_test_support)
