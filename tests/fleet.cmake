# SPDX-License-Identifier: MIT
# Data sets and what Spark makes of them (fleet/). Without build-spark/ (script/spark) or Java the test says so and is skipped.
set(fleet_python ${CMAKE_SOURCE_DIR}/build-spark/bin/python)
if(NOT EXISTS ${fleet_python})
  set(fleet_python /usr/bin/python3)
endif()
add_test(NAME system.fleet COMMAND ${fleet_python} ${CMAKE_SOURCE_DIR}/fleet/tests/test_fleet.py)
set_tests_properties(system.fleet PROPERTIES LABELS system TIMEOUT 300 RUN_SERIAL ON SKIP_RETURN_CODE 77
  ENVIRONMENT "FORKTAIL=${CMAKE_BINARY_DIR}/bin/forktail")
