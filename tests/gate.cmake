# SPDX-License-Identifier: MIT
# Tests of limits, of what is told of them in a pipeline, and of the pages' examples.
forktail_test(junit unit SOURCES unit/analysis/output/junit_test.cc LIBRARIES forktail_analysis forktail_test_support)
