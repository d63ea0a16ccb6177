# SPDX-License-Identifier: MIT
# Tests of limits, of what is told of them in a pipeline, and of the pages' examples.
forktail_test(junit unit SOURCES unit/analysis/text/junit_test.cc LIBRARIES forktail_analysis forktail_test_support)
forktail_test(limits unit SOURCES unit/common/limits/limits_test.cc LIBRARIES forktail_common_limits)
forktail_test(gate unit SOURCES unit/analysis/gate/gate_test.cc LIBRARIES forktail_analysis_gate forktail_sample forktail_test_support)
forktail_test(gate_run system SOURCES system/explain/gate_test.cc LIBRARIES forktail_test_support)
target_compile_definitions(test_gate_run PRIVATE FORKTAIL_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
add_dependencies(test_gate_run forktail forktail-load forktail-record)
