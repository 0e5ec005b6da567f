# How this project's C++ is put together: every folder makes object libraries, all of them end in one shared library.

# A compiler spends its time in LLVM, not here: -O1 builds twice as fast. No time stamp, so that ccache knows a header
# again.
set(TILEWRIGHT_COMPILE_OPTIONS -O1 "SHELL:-Xclang -fno-pch-timestamp")

# tilewright_precompile(NAME HEADER [ON base] [LIKE target] [DEPENDS target...])
#
# HEADER and all it includes, parsed once. ON: on top of this other precompiled header, which is not read again (three
# quarters of a second instead of half a minute). LIKE: compiled as this target is, not as a library of ours. DEPENDS:
# targets to be built first (generated headers).
function(tilewright_precompile name header)
  cmake_parse_arguments(ARG "" "ON;LIKE" "DEPENDS" ${ARGN})
  set(empty "${PROJECT_BINARY_DIR}/precompiled/${name}.cpp")
  if(NOT EXISTS "${empty}")
    file(WRITE "${empty}" "")
  endif()
  add_library(${name} OBJECT "${empty}")
  target_precompile_headers(${name} PRIVATE "${header}")
  if(ARG_LIKE)
    foreach(property COMPILE_DEFINITIONS COMPILE_OPTIONS INCLUDE_DIRECTORIES SYSTEM_INCLUDE_DIRECTORIES)
      set_property(TARGET ${name} PROPERTY ${property} "$<TARGET_PROPERTY:${ARG_LIKE},${property}>")
    endforeach()
  else()
    target_compile_options(${name} PRIVATE ${TILEWRIGHT_COMPILE_OPTIONS})
  endif()
  if(ARG_ON)
    get_target_property(folder ${ARG_ON} BINARY_DIR)
    set(base "${folder}/CMakeFiles/${ARG_ON}.dir/cmake_pch.hxx.pch")
    target_compile_options(${name} PRIVATE "SHELL:-Xclang -include-pch -Xclang ${base}")
    set_property(SOURCE "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.cxx"
      APPEND PROPERTY OBJECT_DEPENDS "${base}")
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

tilewright_precompile(TilewrightUpstreamHeaders "${PROJECT_SOURCE_DIR}/lib/Precompiled.h")

# tilewright_add_library(NAME file... [DEPENDS target...] [LINK_LIBS library...])
#
# Object library NAME. DEPENDS: targets to be built first (generated headers). LINK_LIBS: libraries of this project
# whose generated headers it includes, or outside libraries that it needs. A dialect's library (one with precompiled
# headers of its own, NAMEHeaders) and all that link it read the dialect's headers precompiled, all others upstream's
# only.
function(tilewright_add_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${name} OBJECT ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${TILEWRIGHT_COMPILE_OPTIONS})
  set(headers TilewrightUpstreamHeaders)
  foreach(library IN LISTS name ARG_LINK_LIBS)
    if(TARGET ${library}Headers)
      set(headers ${library}Headers)
    endif()
  endforeach()
  target_precompile_headers(${name} REUSE_FROM ${headers})
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
