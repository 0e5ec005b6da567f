# How this project's C++ is put together: every folder makes object libraries, all of them end in one shared library.

# Upstream's headers, compiled once. The time stamp is left out so that ccache knows the file again.
file(WRITE "${PROJECT_BINARY_DIR}/precompiled.cpp.new" "")
file(COPY_FILE "${PROJECT_BINARY_DIR}/precompiled.cpp.new" "${PROJECT_BINARY_DIR}/precompiled.cpp" ONLY_IF_DIFFERENT)
add_library(TilewrightPrecompiled OBJECT "${PROJECT_BINARY_DIR}/precompiled.cpp")
target_precompile_headers(TilewrightPrecompiled PRIVATE "${PROJECT_SOURCE_DIR}/lib/Precompiled.h")

# A compiler spends its time in LLVM, not here: -O1 builds twice as fast.
set(TILEWRIGHT_COMPILE_OPTIONS -O1 "SHELL:-Xclang -fno-pch-timestamp")
target_compile_options(TilewrightPrecompiled PRIVATE ${TILEWRIGHT_COMPILE_OPTIONS})

# tilewright_add_library(NAME file... [DEPENDS target...] [LINK_LIBS library...])
#
# Object library NAME. DEPENDS: targets to be built first (generated headers). LINK_LIBS: libraries of this project whose
# generated headers it includes, or outside libraries that it needs.
function(tilewright_add_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${name} OBJECT ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${TILEWRIGHT_COMPILE_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM TilewrightPrecompiled)
  # Instances of upstream's templates that libMLIR has too, type ids among them, stay one and the same.
  target_compile_options(${name} PRIVATE -fno-visibility-inlines-hidden)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
    set_property(GLOBAL APPEND PROPERTY TILEWRIGHT_GENERATED ${ARG_DEPENDS})
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS})
  set_property(GLOBAL APPEND PROPERTY TILEWRIGHT_LIBS ${name})
endfunction()

# tilewright_add_subdirectories(): every direct subfolder with a CMakeLists.txt, in alphabetical order.
macro(tilewright_add_subdirectories)
  file(GLOB subfolders CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" "*/CMakeLists.txt")
  foreach(subfolder IN LISTS subfolders)
    get_filename_component(subfolder "${subfolder}" DIRECTORY)
    add_subdirectory(${subfolder})
  endforeach()
endmacro()
