# SPDX-License-Identifier: MIT
# Tests of the recording library, and of the harness that all system tests stand on.
forktail_test(recording unit
  SOURCES unit/recording/roundtrip_test.cc unit/recording/damage_test.cc unit/recording/survival_test.cc unit/recording/queue_test.cc
          unit/recording/requests_test.cc unit/recording/output_test.cc unit/recording/histogram_test.cc unit/recording/syscalls_test.cc
          unit/recording/follow_test.cc unit/recording/places_test.cc unit/recording/index_test.cc
  LIBRARIES forktail_recording forktail_test_support)
forktail_test(support system SOURCES system/support/harness_test.cc LIBRARIES forktail_test_support)

add_executable(bench_recording ${CMAKE_SOURCE_DIR}/bench/recording_bench.cc)
target_link_libraries(bench_recording PRIVATE forktail_recording)
