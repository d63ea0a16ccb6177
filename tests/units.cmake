# SPDX-License-Identifier: MIT
# Tests of how numbers and times are read and text of others is shown, which every program does by the same functions.
forktail_test(units unit SOURCES unit/common/text/parse_test.cc unit/common/text/visible_test.cc LIBRARIES forktail_common_text)
