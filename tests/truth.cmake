# SPDX-License-Identifier: MIT
# The truth suite: real stalls, injected and scored (docs/truth.md). Its clock inside a server is a library to preload.
add_library(truth_calls_clock MODULE truth/calls_clock.c)
target_link_libraries(truth_calls_clock PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(truth_calls_clock PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
# Its short form: each cause once. What a machine can't inject is listed as skipped, not passed.
add_test(NAME system.truth COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/truth/truth.py --short)
set_tests_properties(system.truth PROPERTIES LABELS system TIMEOUT 900 RUN_SERIAL ON
  ENVIRONMENT FORKTAIL_BIN_DIR=${CMAKE_BINARY_DIR}/bin)
