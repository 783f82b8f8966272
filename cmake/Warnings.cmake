# libstdc++ calls what it deprecates itself: without this, each std::ranges::stable_sort is a page of warnings about its
# headers. Deprecated functions of LLVM and of ours still warn.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-U__DEPRECATED>)
