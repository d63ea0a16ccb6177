# SPDX-License-Identifier: MIT
# Tests of the recorder: real redis-servers, real BPF programs, as root.
forktail_test(record system SOURCES system/record_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
forktail_test(record_causes system SOURCES system/record_causes_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
forktail_test(record_input system SOURCES system/record_input_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
forktail_test(record_quota system SOURCES system/record_quota_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
