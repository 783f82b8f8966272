// Reads the file of --schedule-file; see ScheduleFile.h.
#include "ScheduleFile.h"

#include "shoal/Schedule/Text.h"
#include "shoal/Support/Files.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace shoal::pipe {

Location getScheduleFileLoc(MLIRContext *context, StringRef path, int64_t line) {
  return FileLineColLoc::get(context, path, unsigned(line), 0);
}

FailureOr<Schedule> readScheduleFile(MLIRContext *context, StringRef path, StringRef text, const Shape &said,
                                     std::vector<int64_t> *lines) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> opened = text.empty() ? openInput(path, kMostScheduleBytes, error) : nullptr;
  std::optional<Schedule> read = error.empty() ? readSchedule(opened ? opened->getBuffer() : text, path, error, lines)
                                               : std::nullopt;
  if (!read)
    return emitError(UnknownLoc::get(context)) << error; // which names the file
  const Shape &shape = read->shape;
  for (auto [name, wanted, value] : {std::tuple("ranks", said.ranks, shape.ranks),
                                     {"microbatches", said.microbatches, shape.microbatches},
                                     {"chunks", said.chunks, shape.chunks}})
    if (wanted != 0 && wanted != value)
      return emitError(getScheduleFileLoc(context, path))
             << name << " must be that of the file (" << value << "), got: " << wanted;
  return *read;
}

} // namespace shoal::pipe
