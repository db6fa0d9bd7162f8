# SPDX-License-Identifier: Apache-2.0
# jansson reads and writes JSON. It is small: linked statically, so that the package has nothing to carry. Its names stay
# hidden in our libraries: json-c, which other libraries bring into Slicer's process, has functions of the same names, and
# whichever is loaded first would be called for both.
#
#   -DRaterConsensus_USE_SYSTEM_jansson=ON         the system's (pkg-config)
#   -DRaterConsensus_jansson_SOURCE_DIR=/a/folder  sources that are there already; nothing is downloaded
set(proj jansson)
set(${proj}_DEPENDS "")
ExternalProject_Include_Dependencies(${proj} PROJECT_VAR proj)

option(RaterConsensus_USE_SYSTEM_jansson "Take the system's jansson" OFF)
set(RaterConsensus_jansson_SOURCE_DIR "" CACHE PATH "Sources of jansson; empty: they are downloaded")
if(NOT DEFINED jansson_DIR AND NOT RaterConsensus_USE_SYSTEM_jansson)
  if(RaterConsensus_jansson_SOURCE_DIR)
    set(${proj}_FROM SOURCE_DIR ${RaterConsensus_jansson_SOURCE_DIR} DOWNLOAD_COMMAND "")
  else()
    set(${proj}_FROM SOURCE_DIR ${CMAKE_BINARY_DIR}/${proj}
      GIT_REPOSITORY "https://github.com/akheron/jansson.git" GIT_TAG v2.14.1)
  endif()
  set(EP_INSTALL_DIR ${CMAKE_BINARY_DIR}/${proj}-install)
  ExternalProject_Add(${proj}
    ${${proj}_EP_ARGS}
    ${${proj}_FROM}
    BINARY_DIR ${CMAKE_BINARY_DIR}/${proj}-build
    INSTALL_DIR ${EP_INSTALL_DIR}
    CMAKE_CACHE_ARGS
      -DCMAKE_BUILD_TYPE:STRING=${CMAKE_BUILD_TYPE}
      -DCMAKE_C_COMPILER:FILEPATH=${CMAKE_C_COMPILER}
      -DCMAKE_C_FLAGS:STRING=${ep_common_c_flags}
      -DCMAKE_INSTALL_PREFIX:PATH=${EP_INSTALL_DIR}
      -DCMAKE_INSTALL_LIBDIR:STRING=lib
      -DCMAKE_POSITION_INDEPENDENT_CODE:BOOL=ON
      -DCMAKE_C_VISIBILITY_PRESET:STRING=hidden
      -DCMAKE_POLICY_VERSION_MINIMUM:STRING=3.5
      -DJANSSON_BUILD_SHARED_LIBS:BOOL=OFF
      -DJANSSON_BUILD_DOCS:BOOL=OFF
      -DJANSSON_EXAMPLES:BOOL=OFF
      -DJANSSON_WITHOUT_TESTS:BOOL=ON
    DEPENDS ${${proj}_DEPENDS}
  )
  set(jansson_DIR ${EP_INSTALL_DIR}/lib/cmake/jansson)
else()
  ExternalProject_Add_Empty(${proj} DEPENDS ${${proj}_DEPENDS})
endif()
if(DEFINED jansson_DIR)
  mark_as_superbuild(jansson_DIR:PATH)
endif()
