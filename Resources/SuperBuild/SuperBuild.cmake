# SPDX-License-Identifier: Apache-2.0
# The extension with what it stands on, as Slicer's extensions do it: first the dependencies, then this project again with
# RaterConsensus_SUPERBUILD=OFF, in inner-build/. Included by the top CMakeLists.txt after Slicer's own file.
set(ep_common_c_flags "${CMAKE_C_FLAGS_INIT} ${ADDITIONAL_C_FLAGS}")
set(ep_common_cxx_flags "${CMAKE_CXX_FLAGS_INIT} ${ADDITIONAL_CXX_FLAGS}")
set(EXTERNAL_PROJECT_DIR ${CMAKE_CURRENT_LIST_DIR})

set(proj ${SUPERBUILD_TOPLEVEL_PROJECT})
set(${proj}_DEPENDS jansson)
ExternalProject_Include_Dependencies(${proj} PROJECT_VAR proj SUPERBUILD_VAR ${EXTENSION_NAME}_SUPERBUILD)

ExternalProject_Add(${proj}
  ${${proj}_EP_ARGS}
  DOWNLOAD_COMMAND ""
  INSTALL_COMMAND ""
  SOURCE_DIR ${CMAKE_CURRENT_SOURCE_DIR}
  BINARY_DIR ${EXTENSION_BUILD_SUBDIRECTORY}
  CMAKE_CACHE_ARGS
    -DCMAKE_BUILD_TYPE:STRING=${CMAKE_BUILD_TYPE}
    -DCMAKE_C_COMPILER:FILEPATH=${CMAKE_C_COMPILER}
    -DCMAKE_C_FLAGS:STRING=${ep_common_c_flags}
    -DCMAKE_CXX_COMPILER:FILEPATH=${CMAKE_CXX_COMPILER}
    -DCMAKE_CXX_FLAGS:STRING=${ep_common_cxx_flags}
    -DRCN_HOMEPAGE:STRING=${RCN_HOMEPAGE}
    -DRCN_OPENMP:BOOL=${RCN_OPENMP}
    -DRCN_TESTING:BOOL=${RCN_TESTING}
    -D${EXTENSION_NAME}_SUPERBUILD:BOOL=OFF
    -DEXTENSION_SUPERBUILD_BINARY_DIR:PATH=${${EXTENSION_NAME}_BINARY_DIR}
  DEPENDS ${${proj}_DEPENDS}
)
ExternalProject_AlwaysConfigure(${proj})
