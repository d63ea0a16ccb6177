# SPDX-License-Identifier: MIT
# Tests of how numbers and times are read, which every program does by the same functions.
forktail_test(units unit SOURCES unit/units/parse_test.cc LIBRARIES forktail_units)
