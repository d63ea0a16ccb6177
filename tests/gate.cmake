# SPDX-License-Identifier: MIT
# Tests of limits, of what is told of them in a pipeline, and of the pages' examples.
forktail_test(junit unit SOURCES unit/analysis/output/junit_test.cc LIBRARIES forktail_analysis forktail_test_support)
forktail_test(limits unit SOURCES unit/limits/limits_test.cc LIBRARIES forktail_limits)
forktail_test(gate unit SOURCES unit/gate/gate_test.cc LIBRARIES forktail_gate forktail_sample forktail_test_support)
