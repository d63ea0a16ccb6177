# SPDX-License-Identifier: MIT
# Comparison of runs: its statistics, what it says, and the command on real runs.
forktail_test(compare unit SOURCES unit/compare/statistics_test.cc unit/compare/compare_test.cc unit/compare/bootstrap_test.cc
  LIBRARIES forktail_compare forktail_test_support)

# How honest it is: docs/diff.md holds what it prints.
add_executable(diff_honesty bench/diff_honesty.cc)
target_link_libraries(diff_honesty PRIVATE forktail_compare)

forktail_test(diff system SOURCES system/diff_test.cc LIBRARIES forktail_test_support TIMEOUT 120)
add_dependencies(test_diff forktail forktail-load forktail-record)
