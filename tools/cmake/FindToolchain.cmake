# Finds LLVM/MLIR 22, Python and nanobind; sets up the compile flags MLIR asks for.
# Messages start with a space so that CMake prints them as one line.

if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR " ${CMAKE_CXX_COMPILER} is not clang, which libMLIR is built with (ChooseCompiler.cmake says why "
    "it matters): install clang-22 and set CXX=clang++-22")
endif()

set(TILEWRIGHT_LLVM_MAJOR 22)
set(install_hint "install it with: apt-get install libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools libzstd-dev \
zlib1g-dev (or run tools/setup), or point MLIR_DIR at another LLVM ${TILEWRIGHT_LLVM_MAJOR}'s lib/cmake/mlir")

find_package(MLIR CONFIG QUIET
  HINTS "/usr/lib/llvm-${TILEWRIGHT_LLVM_MAJOR}/lib/cmake/mlir" "/usr/local/lib/cmake/mlir")
if(NOT MLIR_FOUND)
  message(FATAL_ERROR " LLVM/MLIR ${TILEWRIGHT_LLVM_MAJOR} was not found, or not whole: ${install_hint}")
endif()
if(NOT LLVM_VERSION_MAJOR EQUAL TILEWRIGHT_LLVM_MAJOR)
  message(FATAL_ERROR " LLVM/MLIR ${LLVM_VERSION} in ${MLIR_DIR} is of the wrong version, "
    "${TILEWRIGHT_LLVM_MAJOR} is needed: ${install_hint}")
endif()
foreach(library MLIR LLVM)
  if(NOT TARGET ${library})
    message(FATAL_ERROR " LLVM/MLIR in ${MLIR_DIR} was built without the shared library ${library}: ${install_hint}")
  endif()
endforeach()
message(STATUS "LLVM/MLIR ${LLVM_VERSION} in ${LLVM_INSTALL_PREFIX}")

# Sources of upstream's declared Python groups are for embedders; a wheel does not carry them.
set(LLVM_INSTALL_TOOLCHAIN_ONLY ON)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include(HandleLLVMOptions)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
add_definitions(${definitions})
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-unused-parameter>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)

# g++ knows -fuse-ld=lld and looks for `ld.lld`, which Debian keeps in LLVM's own folder.
if(EXISTS "${LLVM_TOOLS_BINARY_DIR}/ld.lld")
  add_link_options(-fuse-ld=lld "-B${LLVM_TOOLS_BINARY_DIR}")
endif()

include(MLIRDetectPythonEnv)
mlir_configure_python_dev_packages()
