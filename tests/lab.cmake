# SPDX-License-Identifier: MIT
# Tests of the lab. Its sessions need no root; its demo is the whole of forktail on a real server.
forktail_test(lab_machine unit SOURCES unit/lab_machine_test.cc LIBRARIES forktail_lab)
forktail_test(lab_session unit SOURCES unit/lab_session_test.cc LIBRARIES forktail_lab forktail_test_support)

add_library(forktail_lab_test_support STATIC system/lab_support.cc)
target_link_libraries(forktail_lab_test_support PUBLIC forktail_test_support)
forktail_test(lab_input system SOURCES system/lab_input_test.cc LIBRARIES forktail_lab_test_support)
forktail_test(lab_stop system SOURCES system/lab_stop_test.cc LIBRARIES forktail_lab_test_support TIMEOUT 300)
forktail_test(lab_demo system SOURCES system/lab_demo_test.cc
              LIBRARIES forktail_lab_test_support forktail_analysis TIMEOUT 200)
