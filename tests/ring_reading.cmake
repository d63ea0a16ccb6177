# SPDX-License-Identifier: MIT
# Tests of rings as they are read, and of what is kept of them.
forktail_test(ring_reading unit SOURCES unit/analysis/source/ring_test.cc LIBRARIES forktail_analysis_source forktail_test_support)
forktail_test(keep unit SOURCES unit/live/snapshot/snapshot_test.cc LIBRARIES forktail_live_snapshot forktail_test_support)

# Recordings and explanations of versions before.
forktail_test(compat unit SOURCES compat/compat_test.cc LIBRARIES forktail_analysis forktail_test_support)
target_compile_definitions(test_compat PRIVATE FORKTAIL_COMPAT="${CMAKE_CURRENT_SOURCE_DIR}/compat")
forktail_test(snapshot system SOURCES system/live/snapshot_test.cc LIBRARIES forktail_analysis_source forktail_test_support)
add_dependencies(test_snapshot forktail forktail-record)
