# SPDX-License-Identifier: MIT
# Installs the packages of a directory's lock file into a directory of the build:
#   cmake -DNPM=... -DFROM=tests/browser -DTO=DIR -P npm_packages.cmake
# A directory that has them already, from the same lock file, is left unchanged.
file(SHA256 ${FROM}/package-lock.json wanted)
set(stamp ${TO}/installed)
if(EXISTS ${stamp})
  file(READ ${stamp} have)
  if(have STREQUAL wanted)
    return()
  endif()
endif()
file(MAKE_DIRECTORY ${TO})
file(COPY ${FROM}/package.json ${FROM}/package-lock.json ${FROM}/.npmrc DESTINATION ${TO})
execute_process(COMMAND ${NPM} ci --ignore-scripts --prefer-offline --no-progress --loglevel=error
  WORKING_DIRECTORY ${TO} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "SKIPPED: npm cannot install the packages of ${FROM}/package-lock.json")
endif()
file(WRITE ${stamp} ${wanted})
