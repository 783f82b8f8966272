// Reading models and replacing files.
#include "shoal/Support/Files.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

namespace fs = llvm::sys::fs;

namespace shoal {

std::unique_ptr<llvm::MemoryBuffer> openInput(llvm::StringRef path, uint64_t mostBytes, std::string &error) {
  auto refuse = [&](const llvm::Twine &reason) {
    error = ("cannot open input file '" + path + "': " + reason).str();
    return nullptr;
  };
  fs::file_status status;
  if (path != "-" && !fs::status(path, status) &&
      (fs::is_directory(status) || fs::is_other(status)) &&
      status.type() != fs::file_type::fifo_file)
    return refuse(fs::is_directory(status) ? "must be a file or a pipe, got: a directory"
                                           : "must be a file or a pipe, got: a device");
  if (fs::is_regular_file(status) && status.getSize() >= mostBytes)
    return refuse("must have less than " + llvm::Twine(mostBytes) +
                  " bytes, got: " + llvm::Twine(status.getSize()));
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer)
    return refuse(buffer.getError().message());
  return std::move(*buffer);
}

std::unique_ptr<llvm::MemoryBuffer> openModel(llvm::StringRef path, ModelTextProblem &problem) {
  // MLIR's source locations are 32 bits wide.
  static constexpr uint64_t kMostBytes = uint64_t(1) << 31;
  problem = {0, 0, ""};
  auto buffer = openInput(path, kMostBytes, problem.message);
  if (!buffer)
    return nullptr;
  if (auto found = checkModelText(buffer->getBuffer())) {
    problem = *found;
    return nullptr;
  }
  return buffer;
}

std::error_code writeOutput(llvm::StringRef path, llvm::StringRef contents) {
  if (path != "-")
    return replaceFile(path, contents);
  llvm::outs() << contents;
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  llvm::outs().clear_error();
  return error;
}

std::error_code checkWritable(llvm::StringRef path) {
  fs::file_status status;
  bool exists = !fs::status(path, status) && fs::exists(status);
  if (exists && fs::is_directory(status))
    return std::make_error_code(std::errc::is_a_directory);
  if (exists && !fs::is_regular_file(status))
    return fs::access(path, fs::AccessMode::Write);
  llvm::SmallString<128> target(path), real;
  if (exists && !fs::real_path(path, real))
    target = real;
  llvm::StringRef folder = llvm::sys::path::parent_path(target);
  if (folder.empty())
    folder = ".";
  if (std::error_code error = fs::status(folder, status))
    return error;
  if (!fs::is_directory(status))
    return std::make_error_code(std::errc::not_a_directory);
  return fs::access(folder, fs::AccessMode::Write);
}

std::error_code replaceFile(llvm::StringRef path, llvm::ArrayRef<llvm::StringRef> parts,
                            fs::perms permissions) {
  auto write = [&](llvm::raw_fd_ostream &out) {
    for (llvm::StringRef part : parts)
      out << part;
    out.close();
    std::error_code error = out.error();
    out.clear_error();
    return error;
  };
  fs::file_status status;
  bool exists = !fs::status(path, status) && fs::exists(status);
  if (exists && fs::is_directory(status))
    return std::make_error_code(std::errc::is_a_directory);
  if (exists && !fs::is_regular_file(status)) {
    std::error_code error;
    llvm::raw_fd_ostream out(path, error);
    return error ? error : write(out);
  }
  // A link stays a link: what it points to is replaced.
  llvm::SmallString<128> target(path), real;
  if (exists && !fs::real_path(path, real))
    target = real;
  int descriptor;
  llvm::SmallString<128> temporary;
  if (std::error_code error = fs::createUniqueFile(target + ".%%%%%%.tmp", descriptor, temporary,
                                                   fs::OF_None, permissions))
    return error;
  llvm::sys::RemoveFileOnSignal(temporary);
  auto cleanup = llvm::make_scope_exit([&] {
    fs::remove(temporary);
    llvm::sys::DontRemoveFileOnSignal(temporary);
  });
  llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/true);
  if (std::error_code error = write(out))
    return error;
  return fs::rename(temporary, target);
}

bool isSameFile(llvm::StringRef a, llvm::StringRef b) {
  if (a == b || fs::equivalent(a, b))
    return true;
  // Of a file to come the folder is there, and links lead to it.
  llvm::SmallString<128> places[2];
  for (auto [path, place] : {std::pair(a, &places[0]), std::pair(b, &places[1])}) {
    llvm::StringRef folder = llvm::sys::path::parent_path(path);
    if (fs::real_path(folder.empty() ? "." : folder, *place))
      return false;
    llvm::sys::path::append(*place, llvm::sys::path::filename(path));
  }
  return places[0] == places[1];
}

} // namespace shoal
