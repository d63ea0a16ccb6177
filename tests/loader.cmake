# SPDX-License-Identifier: MIT
# Tests of the recorder: real redis-servers, real BPF programs, as root.
forktail_test(record system SOURCES system/record_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
forktail_test(record_causes system SOURCES system/record_causes_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
forktail_test(record_input system SOURCES system/record_input_test.cc LIBRARIES forktail_test_support TIMEOUT 300)

# The truth suite's clock inside a server (tests/truth/calls_clock.c).
add_library(truth_calls_clock MODULE truth/calls_clock.c)
target_link_libraries(truth_calls_clock PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(truth_calls_clock PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
