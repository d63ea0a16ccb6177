# SPDX-License-Identifier: MIT
# Tests of how numbers and times are read and text of others is shown, which every program does by the same functions.
forktail_test(units unit SOURCES unit/units/parse_test.cc unit/units/visible_test.cc LIBRARIES forktail_units)
