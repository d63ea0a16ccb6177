# SPDX-License-Identifier: MIT
# Tests of the lab. Its sessions need no root; its demo is the whole of forktail on a real server.
forktail_test(lab_machine unit SOURCES unit/lab_machine_test.cc LIBRARIES forktail_lab)
forktail_test(lab_session unit SOURCES unit/lab_session_test.cc LIBRARIES forktail_lab forktail_test_support)
