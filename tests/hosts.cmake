# SPDX-License-Identifier: MIT
# Runs on several hosts: plans, and namespaces as hosts.
forktail_test(hosts_plan unit SOURCES unit/hosts/plan_test.cc LIBRARIES forktail_hosts)
if(TARGET forktail-rank)
  forktail_test(hosts system SOURCES system/hosts/hosts_test.cc LIBRARIES forktail_test_support TIMEOUT 200)
  forktail_test(hosts_deaths system SOURCES system/hosts/deaths_test.cc LIBRARIES forktail_test_support TIMEOUT 300)
  forktail_test(hosts_legs system SOURCES system/hosts/legs_test.cc LIBRARIES forktail_test_support TIMEOUT 120)
  foreach(test hosts hosts_deaths hosts_legs)
    target_compile_definitions(test_${test} PRIVATE FORKTAIL_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    add_dependencies(test_${test} forktail forktail-clock forktail-load forktail-rank forktail-record)
  endforeach()
endif()
