# Libraries and tools of the compiler, and the header that they have precompiled.

# EXCEPTIONS: its files may catch what another library throws.
function(shoal_add_library name)
  cmake_parse_arguments(arg "EXCEPTIONS" "" "" ${ARGN})
  add_mlir_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS} EXCLUDE_FROM_LIBMLIR DISABLE_INSTALL)
  target_link_libraries(${name} PUBLIC MLIR)
  if(arg_EXCEPTIONS)
    target_compile_options(${name} PRIVATE -fexceptions)
  else()
    shoal_precompile(${name})
  endif()
endfunction()

function(shoal_add_tool name)
  add_llvm_executable(${name} ${ARGN})
  llvm_update_compile_flags(${name})
  target_link_libraries(${name} PRIVATE MLIR LLVM)
endfunction()

# Reading MLIR's headers is most of a compilation. Clang keeps what it read of include/shoal/Support/Precompiled.h;
# one copy serves the libraries with equal options. Its path is given relative to the build folder, where
# Ninja compiles, and ccache takes the file beside it (.sum) for its contents: so a second checkout hits the same cache.
set(SHOAL_PRECOMPILED_HEADER ${PROJECT_SOURCE_DIR}/include/shoal/Support/Precompiled.h)
function(shoal_precompile name)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang OR NOT CMAKE_GENERATOR STREQUAL Ninja)
    return()
  endif()
  if(NOT TARGET shoal_precompiled)
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "")
    add_mlir_library(shoal_precompiled STATIC ${PROJECT_BINARY_DIR}/precompiled.cpp EXCLUDE_FROM_LIBMLIR DISABLE_INSTALL)
    target_precompile_headers(shoal_precompiled PRIVATE ${SHOAL_PRECOMPILED_HEADER})
    file(RELATIVE_PATH folder ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/shoal_precompiled.dir)
    set_property(GLOBAL PROPERTY SHOAL_PRECOMPILED ${folder}/cmake_pch.hxx.pch)
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${SHOAL_PRECOMPILED_HEADER})
    file(SHA256 ${SHOAL_PRECOMPILED_HEADER} hash)
    file(WRITE ${PROJECT_BINARY_DIR}/${folder}/cmake_pch.hxx.pch.sum
         "${hash} ${LLVM_PACKAGE_VERSION} ${CMAKE_CXX_COMPILER_VERSION}\n")
  endif()
  get_property(precompiled GLOBAL PROPERTY SHOAL_PRECOMPILED)
  # Ninja orders what a target generates before its users, but not its precompiled header.
  get_target_property(sources ${name} SOURCES)
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${PROJECT_BINARY_DIR}/${precompiled})
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-include-pch> $<$<COMPILE_LANGUAGE:CXX>:${precompiled}>)
endfunction()
