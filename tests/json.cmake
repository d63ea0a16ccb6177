# SPDX-License-Identifier: MIT
# Tests of the JSON that the recorder and the load generator write.
forktail_test(json unit SOURCES unit/json/json_block_test.cc LIBRARIES forktail_json)
