# SPDX-License-Identifier: MIT
# Tests of the analysis: runs built by hand, recordings written for the purpose, and the command itself.
forktail_test(analysis unit
  SOURCES unit/analysis_timeline_test.cc unit/analysis_blame_test.cc unit/analysis_property_test.cc
  LIBRARIES forktail_analysis forktail_test_support)
