# SPDX-License-Identifier: MIT
# Tests of what is installed: pages and completions have every option of every command (and a check that sees one
# missing), packages that script/package has built, and the list of what is in static programs.
if(TARGET forktail_manual)
  set(check /usr/bin/python3 ${CMAKE_SOURCE_DIR}/cli/manual/check ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  add_test(NAME unit.manual COMMAND ${check} ${CMAKE_BINARY_DIR}/manual)
  add_test(NAME unit.manual_refused
    COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/checks/manual_refused ${CMAKE_BINARY_DIR}/cli/manual ${check})
  set_tests_properties(unit.manual_refused PROPERTIES PASS_REGULAR_EXPRESSION
    "explain: bash does not complete --slow.*explain: zsh does not complete --slow.*explain: fish does not complete --slow.*explain: its page lacks --slow")
  set_tests_properties(unit.manual unit.manual_refused PROPERTIES LABELS unit TIMEOUT 120)
endif()
add_test(NAME unit.packages COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/checks/packages ${CMAKE_SOURCE_DIR}/build-packages)
set_tests_properties(unit.packages PROPERTIES LABELS unit TIMEOUT 120 SKIP_RETURN_CODE 77)
set(spdx_python ${CMAKE_SOURCE_DIR}/build-python/bin/python)
if(NOT EXISTS ${spdx_python})
  set(spdx_python /usr/bin/python3)
endif()
add_test(NAME unit.spdx COMMAND ${spdx_python} ${CMAKE_CURRENT_SOURCE_DIR}/checks/spdx_check.py ${CMAKE_SOURCE_DIR} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_tests_properties(unit.spdx PROPERTIES LABELS unit TIMEOUT 120 SKIP_RETURN_CODE 77)
