# MLIR's Python bindings and the project's own extension, as the package tilewright.mlir.
#
# Upstream's mlir/python/CMakeLists.txt is read up to the end of its declarations; the targets after them assume a build
# inside LLVM's own tree. See fetch_mlir_sources.py for where the sources come from.

execute_process(
  COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/cmake/fetch_mlir_sources.py" "${LLVM_VERSION}"
  OUTPUT_VARIABLE source_root OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "The sources of MLIR's Python bindings are missing; the line above says why.")
endif()
file(REAL_PATH "${source_root}/mlir" MLIR_SOURCE_DIR)

set(MLIR_PYTHON_PACKAGE_PREFIX "tilewright.mlir")
set(MLIR_BINDINGS_PYTHON_NB_DOMAIN "tilewright")
set(MLIR_BINDINGS_PYTHON_INSTALL_PREFIX "tilewright/mlir")
set(MLIR_ENABLE_EXECUTION_ENGINE OFF)
set(MLIR_INCLUDE_TESTS OFF)
set(MLIR_PYTHON_STUBGEN_ENABLED OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)

file(READ "${MLIR_SOURCE_DIR}/python/CMakeLists.txt" text)
string(FIND "${text}" "# Common CAPI dependency DSO." end)
if(end EQUAL -1)
  message(FATAL_ERROR "${MLIR_SOURCE_DIR}/python/CMakeLists.txt is not the one of LLVM ${LLVM_VERSION}")
endif()
string(SUBSTRING "${text}" 0 ${end} text)
string(REGEX REPLACE "DEPENDS (acc_common_td|omp_common_td|LinalgOdsGen)" "" text "${text}")
string(REPLACE "LLVMSupport" "LLVM" text "${text}")
string(REPLACE "\${CMAKE_CURRENT_SOURCE_DIR}" "\${MLIR_SOURCE_DIR}/python" text "${text}")
list(GET MLIR_INCLUDE_DIRS 0 include_dir)
file(REAL_PATH "${include_dir}" include_dir)
file(RELATIVE_PATH include_dir "${MLIR_SOURCE_DIR}/python/mlir" "${include_dir}")
string(REPLACE "../../include/" "${include_dir}/" text "${text}")
file(WRITE "${PROJECT_BINARY_DIR}/mlir-python/declarations.cmake.new" "${text}")
file(COPY_FILE "${PROJECT_BINARY_DIR}/mlir-python/declarations.cmake.new"
     "${PROJECT_BINARY_DIR}/mlir-python/declarations.cmake" ONLY_IF_DIFFERENT)
include("${PROJECT_BINARY_DIR}/mlir-python/declarations.cmake")

# Only the dialects that the compiler or its users can meet: each costs build time and import time.
set(dialects "")
foreach(name affine arith bufferization builtin cf complex func gpu index linalg llvm math memref ml_program nvvm scf
             tensor ub vector)
  list(APPEND dialects MLIRPythonSources.Dialects.${name})
endforeach()
set_property(TARGET MLIRPythonSources.Dialects PROPERTY mlir_python_DEPENDS ${dialects})
get_property(sources TARGET MLIRPythonSources PROPERTY mlir_python_DEPENDS)
list(REMOVE_ITEM sources MLIRPythonSources.ExecutionEngine)
set_property(TARGET MLIRPythonSources PROPERTY mlir_python_DEPENDS ${sources})

# The project's own: Python files beside upstream's, generated op classes, and one extension module of
# lib/Bindings/*.cpp.
declare_mlir_python_sources(TilewrightPythonSources)
declare_mlir_python_sources(TilewrightPythonSources.Package
  ADD_TO_PARENT TilewrightPythonSources
  ROOT_DIR "${PROJECT_SOURCE_DIR}/lib/Bindings/package"
  SOURCES __init__.py _mlir_libs/_site_initialize_0.py views/__init__.py views/linalg.py views/nvvm.py)
declare_mlir_dialect_python_bindings(
  ADD_TO_PARENT TilewrightPythonSources
  ROOT_DIR "${PROJECT_SOURCE_DIR}/lib/Bindings/package"
  TD_FILE dialects/TileOps.td
  SOURCES dialects/tile.py
  DIALECT_NAME tile
  GEN_ENUM_BINDINGS)

declare_mlir_dialect_python_bindings(
  ADD_TO_PARENT TilewrightPythonSources
  ROOT_DIR "${PROJECT_SOURCE_DIR}/lib/Bindings/package"
  TD_FILE dialects/SparseTileOps.td
  SOURCES dialects/sparse_tile.py
  DIALECT_NAME sparse_tile)

declare_mlir_dialect_python_bindings(
  ADD_TO_PARENT TilewrightPythonSources
  ROOT_DIR "${PROJECT_SOURCE_DIR}/lib/Bindings/package"
  TD_FILE dialects/FractalOps.td
  SOURCES dialects/fractal.py
  DIALECT_NAME fractal)

declare_mlir_dialect_python_bindings(
  ADD_TO_PARENT TilewrightPythonSources
  ROOT_DIR "${PROJECT_SOURCE_DIR}/lib/Bindings/package"
  TD_FILE dialects/CoreMeshOps.td
  SOURCES dialects/coremesh.py
  DIALECT_NAME coremesh
  GEN_ENUM_BINDINGS)

# Files with an own NB_MODULE(NAME, ...) become the extension NAME; all others belong to _tilewright.
file(GLOB extension_sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/lib/Bindings"
     "${PROJECT_SOURCE_DIR}/lib/Bindings/*.cpp")
set(main_sources "")
foreach(source IN LISTS extension_sources)
  file(STRINGS "${PROJECT_SOURCE_DIR}/lib/Bindings/${source}" module REGEX "^NB_MODULE\\(")
  string(REGEX REPLACE "^NB_MODULE\\(([A-Za-z_]+).*" "\\1" module "${module}")
  if(module STREQUAL "" OR module STREQUAL "_tilewright")
    list(APPEND main_sources ${source})
  else()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/lib/Bindings/${source}")
    declare_mlir_python_extension(TilewrightPythonSources.${module}
      MODULE_NAME ${module}
      ADD_TO_PARENT TilewrightPythonSources
      ROOT_DIR "${PROJECT_SOURCE_DIR}/lib/Bindings"
      SOURCES ${source}
      PRIVATE_LINK_LIBS MLIR LLVM)
  endif()
endforeach()
declare_mlir_python_extension(TilewrightPythonSources.Extension
  MODULE_NAME _tilewright
  ADD_TO_PARENT TilewrightPythonSources
  ROOT_DIR "${PROJECT_SOURCE_DIR}/lib/Bindings"
  SOURCES ${main_sources}
  PRIVATE_LINK_LIBS MLIR LLVM)

add_mlir_python_modules(TilewrightPythonModules
  ROOT_PREFIX "${TILEWRIGHT_PACKAGE_DIR}/mlir"
  INSTALL_PREFIX tilewright/mlir
  DECLARED_SOURCES MLIRPythonSources TilewrightPythonSources
  COMMON_CAPI_LINK_LIBS TilewrightCAPI)

# nanobind's own files are made to be compiled as one.
if(TARGET nanobind-tilewright)
  set_target_properties(nanobind-tilewright PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
endif()

# What every extension reads, parsed once. Glue code is compiled for size, as nanobind has it by default; all extensions
# need the same options for that.
tilewright_precompile(TilewrightBindingsHeaders "${PROJECT_SOURCE_DIR}/lib/Bindings/Precompiled.h"
  LIKE TilewrightPythonModules.extension._tilewright.dso)

# Debian's LLVM libraries stand outside the dynamic linker's path.
get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
foreach(target IN LISTS targets)
  get_target_property(type ${target} TYPE)
  if(type MATCHES "^(SHARED|MODULE)_LIBRARY$")
    # A changed library is loaded anew anyway: no need to link every extension again.
    set_property(TARGET ${target} PROPERTY LINK_DEPENDS_NO_SHARED ON)
    set_property(TARGET ${target} APPEND PROPERTY BUILD_RPATH "${LLVM_LIBRARY_DIR}")
    set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH "${LLVM_LIBRARY_DIR}")
  endif()
  if(target MATCHES "^TilewrightPythonModules.extension")
    target_precompile_headers(${target} REUSE_FROM TilewrightBindingsHeaders)
    target_compile_options(${target} PRIVATE -Os -fno-stack-protector "SHELL:-Xclang -fno-pch-timestamp")
  endif()
  if(target MATCHES "_tilewright" AND TARGET tilewright-generated)
    add_dependencies(${target} tilewright-generated)
  endif()
endforeach()
