# SPDX-License-Identifier: MIT
# Hardening of all programs: one of them runs as root on servers, and all of them read untrusted data. A write beyond the
# end of an array on the stack ends the program (stack protector, fortified functions of the C library), programs are
# loaded at random addresses (PIE), and the data of the dynamic linker is read-only before main() (RELRO, bound at
# once). tests/checks/hardened.cmake checks the result.
include(CheckPIESupported)
check_pie_supported()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_compile_options(-fstack-protector-strong -fstack-clash-protection)
if(FORKTAIL_MACHINE STREQUAL x86)
  add_compile_options(-fcf-protection)
endif()
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
# It requires optimization, and AddressSanitizer checks the same calls more closely.
if(NOT FORKTAIL_SANITIZE AND NOT FORKTAIL_FUZZ)
  add_compile_options($<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>)
endif()

# Without optimization: for code that is slow to compile and runs once.
function(forktail_unoptimized target)
  # Not "-U_FORTIFY_SOURCE": CMake omits an option that is already present.
  target_compile_options(${target} PRIVATE -O0 "SHELL:-U _FORTIFY_SOURCE")
endfunction()
