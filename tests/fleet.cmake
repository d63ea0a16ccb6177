# SPDX-License-Identifier: MIT
# Data sets and what Spark makes of them (analysis/fleet/). Without build-spark/ (script/spark) or Java the test says so and is skipped.
set(fleet_python ${CMAKE_SOURCE_DIR}/build-spark/bin/python)
if(NOT EXISTS ${fleet_python})
  set(fleet_python /usr/bin/python3)
endif()
add_test(NAME system.fleet COMMAND ${fleet_python} ${CMAKE_SOURCE_DIR}/analysis/fleet/tests/test_fleet.py)
set_tests_properties(system.fleet PROPERTIES LABELS system TIMEOUT 600 SKIP_RETURN_CODE 77
  ENVIRONMENT "FORKTAIL=${CMAKE_BINARY_DIR}/bin/forktail")
# Without Spark there is a sentence; this one needs neither.
add_test(NAME system.fleet_missing COMMAND /usr/bin/python3 ${CMAKE_SOURCE_DIR}/analysis/fleet/tests/test_missing.py)
set_tests_properties(system.fleet_missing PROPERTIES LABELS system TIMEOUT 60
  ENVIRONMENT "FORKTAIL=${CMAKE_BINARY_DIR}/bin/forktail")
