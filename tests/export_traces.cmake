# SPDX-License-Identifier: MIT
# Tests of exports: each format is read by a reader that isn't ours.
forktail_test(export_traces system SOURCES system/export_traces_test.cc LIBRARIES forktail_test_support TIMEOUT 120)
target_compile_definitions(test_export_traces PRIVATE FORKTAIL_TESTS="${CMAKE_CURRENT_SOURCE_DIR}/system"
                           FORKTAIL_PYTHON="${CMAKE_SOURCE_DIR}/build-python" FORKTAIL_NODE="${NODE_PROGRAM}")
add_dependencies(test_export_traces forktail forktail-load forktail-record)
