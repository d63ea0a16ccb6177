# SPDX-License-Identifier: MIT
# The recorder that goes on for ever: its ring and the writer's next files alone, then whole, with real redis-servers.
forktail_test(ring unit SOURCES unit/loader/output/segments_test.cc unit/recording/next_file_test.cc
  LIBRARIES forktail_loader forktail_test_support)
forktail_test(record_keep system SOURCES system/record/keep_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
add_dependencies(test_record_keep forktail-record)
