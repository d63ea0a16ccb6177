# SPDX-License-Identifier: MIT
# The recorder on another kernel than this machine's, in QEMU (docs/platforms.md): one kernel, the default way of
# attaching. Skipped where QEMU, cpio or Debian's packages can't be had; it says which.
add_test(NAME system.kernels COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/kernels/kernels.py --short)
set_tests_properties(system.kernels PROPERTIES LABELS system TIMEOUT 600 RUN_SERIAL ON SKIP_RETURN_CODE 3
  ENVIRONMENT FORKTAIL_BIN_DIR=${CMAKE_BINARY_DIR}/bin)
