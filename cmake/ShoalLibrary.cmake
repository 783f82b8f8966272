# A library of the compiler. It links the shared libMLIR only: mixing in a static
# MLIR library would link silently and break type ids.
function(shoal_add_library name)
  add_mlir_library(${name} STATIC ${ARGN} EXCLUDE_FROM_LIBMLIR DISABLE_INSTALL)
  target_link_libraries(${name} PUBLIC MLIR)
endfunction()

function(shoal_add_tool name)
  add_llvm_executable(${name} ${ARGN})
  llvm_update_compile_flags(${name})
  target_link_libraries(${name} PRIVATE MLIR LLVM)
endfunction()
