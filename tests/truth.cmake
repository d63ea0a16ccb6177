# SPDX-License-Identifier: MIT
# The truth suite: real stalls, injected and scored (docs/truth.md). Its clock inside a server is a library to preload.
add_library(truth_calls_clock MODULE truth/calls_clock.c)
target_link_libraries(truth_calls_clock PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(truth_calls_clock PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
