# How this project's C++ is put together: every folder makes object libraries, all of them end in one shared library.

# tilewright_add_library(NAME file... [DEPENDS target...] [LINK_LIBS library...])
#
# Object library NAME. DEPENDS: targets to be built first (generated headers). LINK_LIBS: libraries of this project whose
# generated headers it includes, or outside libraries that it needs.
function(tilewright_add_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  foreach(library IN LISTS ARG_LINK_LIBS)
    if(library MATCHES "^Tilewright" AND NOT TARGET ${library})
      message(WARNING "${name} is left out: it needs ${library}, which is not there")
      return()
    endif()
  endforeach()
  add_library(${name} OBJECT ${ARG_UNPARSED_ARGUMENTS})
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
