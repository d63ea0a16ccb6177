# SPDX-License-Identifier: MIT
# Comparison of runs: its statistics, what it says, and the command on real runs.
forktail_test(compare unit SOURCES unit/analysis/compare/statistics_test.cc unit/analysis/compare/compare_test.cc unit/analysis/compare/bootstrap_test.cc
  LIBRARIES forktail_analysis_compare forktail_test_support)

# How honest it is: docs/diff.md holds what it prints.
add_executable(diff_honesty ${CMAKE_SOURCE_DIR}/bench/diff_honesty.cc)
target_link_libraries(diff_honesty PRIVATE forktail_analysis_compare)

forktail_test(diff system SOURCES system/report/diff_test.cc LIBRARIES forktail_test_support TIMEOUT 120)
add_dependencies(test_diff forktail forktail-load forktail-record)
