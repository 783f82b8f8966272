// Files of the compiler's tools: models that are safe to parse, and outputs that appear under their
// name only when they are complete.
#ifndef SHOAL_SUPPORT_FILES_H
#define SHOAL_SUPPORT_FILES_H

#include "shoal/Support/ModelText.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>
#include <system_error>

namespace shoal {

/// Reads a file or pipe ("-": stdin) of less than `mostBytes`. Null with one line in `error` that names it.
std::unique_ptr<llvm::MemoryBuffer> openInput(llvm::StringRef path, uint64_t mostBytes, std::string &error);

/// Reads a model ("-": stdin) from a file or pipe and holds it against `checkModelText`. Null with what
/// is wrong in `problem`; line 0 is about the file as a whole, which the message then names.
std::unique_ptr<llvm::MemoryBuffer> openModel(llvm::StringRef path, ModelTextProblem &problem);

/// Whether `replaceFile` can start to write `path`, as far as that is known before: it is no
/// directory, and lies in one that may be written to.
std::error_code checkWritable(llvm::StringRef path);

/// Whether two paths lead to one file, which need not be there yet.
bool isSameFile(llvm::StringRef a, llvm::StringRef b);

/// Writes `parts`, one after the other, to a new file and gives it the name `path`: when that fails,
/// an older file of this name stays and nothing is left behind. A device or pipe is written to.
std::error_code replaceFile(llvm::StringRef path, llvm::ArrayRef<llvm::StringRef> parts,
                            llvm::sys::fs::perms permissions = llvm::sys::fs::all_read |
                                                               llvm::sys::fs::all_write);

/// Writes text or bytes to a file, by `replaceFile`, or to stdout for "-".
std::error_code writeOutput(llvm::StringRef path, llvm::StringRef contents);

} // namespace shoal

#endif // SHOAL_SUPPORT_FILES_H
