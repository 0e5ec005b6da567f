# Chooses clang before project() looks for a compiler.
#
# MLIR names its traits by what the compiler prints for a local class (TypeID::get of a trait template): `Empty` with
# clang, a longer name with g++. Debian's libMLIR is built with clang; with g++ every trait query between it and us
# would be false.

# CXX in the environment counts only where it is a clang: pip sets it to the compiler that Python was built with.
if(NOT CMAKE_CXX_COMPILER AND NOT "$ENV{CXX}" MATCHES "clang")
  find_program(TILEWRIGHT_CLANGXX NAMES clang++-22 clang++ PATHS /usr/lib/llvm-22/bin)
  find_program(TILEWRIGHT_CLANG NAMES clang-22 clang PATHS /usr/lib/llvm-22/bin)
  if(NOT TILEWRIGHT_CLANGXX OR NOT TILEWRIGHT_CLANG)
    message(FATAL_ERROR " clang was not found: install it with: apt-get install clang-22 (or run tools/setup), "
      "or set CXX to a clang++")
  endif()
  if(DEFINED ENV{CXX})
    message(STATUS "CXX=$ENV{CXX} is not clang: compiling with ${TILEWRIGHT_CLANGXX}")
  endif()
  set(CMAKE_CXX_COMPILER "${TILEWRIGHT_CLANGXX}")
  set(CMAKE_C_COMPILER "${TILEWRIGHT_CLANG}")
endif()
