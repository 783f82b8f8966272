# -DSHOAL_SANITIZE=ON builds our own code with the address and undefined-behaviour sanitizers; an error
# ends the process.
option(SHOAL_SANITIZE "Build with the address and undefined-behaviour sanitizers" OFF)
if(SHOAL_SANITIZE)
  # Assertions stand, of LLVM's headers too; -O1 is what the budget of CI allows.
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize=vptr
                      -fno-sanitize-recover=all -O1 -gline-tables-only -UNDEBUG)
  add_link_options(-fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # What libFuzzer steers by, see fuzz/.
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
endif()
