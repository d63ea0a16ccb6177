# SPDX-License-Identifier: MIT
# Tests of what people read: `forktail explain` on a terminal, and links in the documents.
forktail_test(terminal unit SOURCES unit/analysis/text/terminal_test.cc support/sample_explanation.cc
  LIBRARIES forktail_analysis forktail_test_support)
add_dependencies(test_terminal forktail bench_explain_run)
add_test(NAME unit.links COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/checks/links.py ${CMAKE_SOURCE_DIR})
add_test(NAME unit.links_refused COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/checks/links.py
         ${CMAKE_CURRENT_SOURCE_DIR}/checks/dead_links)
set_tests_properties(unit.links_refused PROPERTIES PASS_REGULAR_EXPRESSION
  "page.md: nowhere.md is not there.*page.md: #nothing is no heading")
set_tests_properties(unit.links unit.links_refused PROPERTIES LABELS unit TIMEOUT 60)
