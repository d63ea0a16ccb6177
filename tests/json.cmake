# SPDX-License-Identifier: MIT
# Tests of the JSON that the recorder and the load generator write.
forktail_test(json unit SOURCES unit/recording/json/json_block_test.cc LIBRARIES forktail_recording_json)
