# SPDX-License-Identifier: MIT
# Tests of clocks of several hosts: what is made of round trips, and the program that makes them, on runs of two
# clocks.
forktail_test(host_clocks unit SOURCES unit/analysis/source/host_clocks_test.cc unit/analysis/source/clocks_read_test.cc
  LIBRARIES forktail_analysis forktail_test_support)
forktail_test(clocks_run system SOURCES system/hosts/clocks_run_test.cc LIBRARIES forktail_test_support TIMEOUT 120)
add_dependencies(test_clocks_run forktail forktail-clock forktail-load forktail-record)
forktail_test(clock_packets system SOURCES system/hosts/clock_packets_test.cc LIBRARIES forktail_recording forktail_test_support TIMEOUT 60)
add_dependencies(test_clock_packets forktail forktail-clock)
