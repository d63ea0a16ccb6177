# SPDX-License-Identifier: MIT
# The truth suite: real stalls, injected and scored (docs/truth.md). Its clock inside a server, and what makes one of a
# server's threads late, are libraries to preload.
foreach(library calls_clock thread_shim)
  add_library(truth_${library} MODULE truth/${library}.c)
  target_link_libraries(truth_${library} PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(truth_${library} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endforeach()
add_test(NAME system.truth_injectors COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/truth/injectors_test.py)
set_tests_properties(system.truth_injectors PROPERTIES LABELS system TIMEOUT 120 RUN_SERIAL ON
  ENVIRONMENT FORKTAIL_BIN_DIR=${CMAKE_BINARY_DIR}/bin)
# Its short form: each cause once. What a machine can't inject is listed as skipped, not passed.
add_test(NAME system.truth COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/truth/truth.py --short)
set_tests_properties(system.truth PROPERTIES LABELS system TIMEOUT 1800 RUN_SERIAL ON
  ENVIRONMENT FORKTAIL_BIN_DIR=${CMAKE_BINARY_DIR}/bin)
