# SPDX-License-Identifier: MIT
# What all programs are built with against errors in themselves: one of them is root on somebody's server, and all of
# them read what others wrote. A write beyond the end of an array on the stack ends the program instead of going on
# (stack protector, fortified functions of the C library), programs lie anywhere in memory (PIE), and what the dynamic
# linker fills in is read-only before main() (RELRO, bound at once). tests/checks/hardened.cmake looks at the result.
include(CheckPIESupported)
check_pie_supported()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_compile_options(-fstack-protector-strong -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-fcf-protection)
endif()
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
# It takes optimization, and AddressSanitizer looks at the same calls more closely.
if(NOT FORKTAIL_SANITIZE AND NOT FORKTAIL_FUZZ)
  add_compile_options($<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
endif()

# Without optimization: for what is long to compile and runs once.
function(forktail_unoptimized target)
  # Not "-U_FORTIFY_SOURCE": CMake leaves out an option that stands there already.
  target_compile_options(${target} PRIVATE -O0 "SHELL:-U _FORTIFY_SOURCE")
endfunction()
