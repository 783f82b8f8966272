// Progress boards: the file is opened, every entry read and put into words. Ranks that share the file
// may have written anything, so what passes the check must be readable, in one line of text.
#include "Target.h"

#include "core/board.h"

#include <algorithm>

using namespace shoal;

namespace {

// Boards of more ranks are opened, but not read: the fuzzer should not wait for them.
constexpr uint32_t kMostRanks = 256;

// In a folder, for a board must be a regular file of this user alone and no link.
class BoardFile {
public:
  BoardFile(const uint8_t *data, size_t size) : path_(rt::sharedFolder() + "/shoal-fuzz-board-XXXXXX") {
    int fd = mkstemp(path_.data());
    fuzz::require(fd >= 0 && write(fd, data, size) == ssize_t(size), "no file for the board");
    close(fd);
  }
  ~BoardFile() { unlink(path_.c_str()); }
  const std::string &path() const { return path_; }

private:
  std::string path_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  BoardFile file(data, size);
  fuzz::expectOneLine([&] {
    rt::Board board = rt::Board::open(file.path(), 0);
    fuzz::require(board.ranks() > 0, "a board is of ranks");
    if (board.ranks() > kMostRanks)
      return;
    std::string text = rt::placesText(board, board.ranks());
    for (uint32_t rank = 0; rank < board.ranks(); ++rank)
      text += rt::whereText(board.read(rank));
    fuzz::require(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }),
                  "a board's text must be printable");
    board.claimReport(0);
    fuzz::require(board.isReported(), "a claim must be seen");
  });
  fuzz::expectOneLine([&] { rt::Board::open(file.path(), 3); });
  return 0;
}
