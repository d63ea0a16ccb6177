# SPDX-License-Identifier: MIT
# Tests of exports: each format is read by a reader that isn't ours, and says what explain says.
forktail_test(export_same system SOURCES system/report/export_same_test.cc LIBRARIES forktail_test_support TIMEOUT 200)
target_compile_definitions(test_export_same PRIVATE FORKTAIL_SOURCE="${CMAKE_SOURCE_DIR}" FORKTAIL_NODE="${NODE_PROGRAM}")
if(TARGET forktail-parquet)
  add_dependencies(test_export_same forktail-parquet)
endif()
add_dependencies(test_export_same forktail forktail-load forktail-record bench_explain_run)
