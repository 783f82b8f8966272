// The progress board: one shared file per node with one entry per rank that says where the rank
// is. Each rank writes its own entry at every row; watchdogs of other ranks and shoal-run read
// them all, also those of ranks that are stopped or dead. Fixed sizes, plain stores: a row
// costs a few nanoseconds. shoal-run makes the file and names it in the environment; without
// it the first rank of each node does.
#ifndef SHOAL_RT_CORE_BOARD_H
#define SHOAL_RT_CORE_BOARD_H

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace shoal::rt {

// SHOAL_BOARD=HOST:PATH; on other hosts the path means nothing.
inline constexpr const char *kBoardVariable = "SHOAL_BOARD";
inline constexpr char kBoardMagic[8] = {'S', 'H', 'O', 'A', 'L', 'B', 'R', 'D'};
inline constexpr uint32_t kBoardVersion = 2;
inline constexpr uint32_t kBoardGates = 16;
inline constexpr uint32_t kBoardWords = 12; // of text
inline constexpr uint32_t kBoardMostRanks = 1 << 20;

enum class RankState : uint32_t { Absent, Starting, Running, Finished, Failed };
enum class Phase : uint32_t {
  Computing,
  Entering, // a transfer is being started
  Waiting,  // for others
  Done,
};

// Text as it is copied to the board: cut to its size, padded with zeros, printable ASCII.
using BoardText = std::array<uint64_t, kBoardWords>;
BoardText boardText(std::string_view text);

// Where one of a rank's two hands is. `changes` is odd while the rest is written.
struct alignas(64) BoardPlace {
  std::atomic<uint32_t> changes;
  std::atomic<uint32_t> phase;
  std::atomic<uint64_t> text[kBoardWords];
};

struct alignas(64) BoardEntry {
  std::atomic<int32_t> pid;
  std::atomic<uint32_t> state;   // RankState
  std::atomic<uint32_t> program; // 0: the one that was asked for, 1: its evaluation
  std::atomic<uint32_t> timeoutMs; // of this rank's watchdog; 0: none
  std::atomic<uint64_t> step;      // from 1; 0: before the first
  uint64_t reserved[5];
  // Per gate the last operation that was entered. Operations of a gate are entered by all its
  // ranks in one order, so a rank has entered what is not after its number. Gate 0 is what
  // all ranks do together outside of steps, gate s + 1 is stream s.
  std::atomic<uint64_t> entered[kBoardGates];
  BoardPlace compute;       // the calling thread
  BoardPlace communication; // the transfer under way that it will wait for next
};

struct alignas(64) BoardHeader {
  char magic[8];
  uint32_t version, ranks, entryBytes;
  std::atomic<uint32_t> reporter; // who told the first failure: rank + 1, 0: nobody yet
  uint64_t reserved[5];
};

static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(BoardPlace) == 128 &&
              sizeof(BoardHeader) == 64 && sizeof(BoardEntry) == 64 + 128 + 256);

// An entry as it was at one moment.
struct RankPlace {
  pid_t pid = 0;
  RankState state = RankState::Absent;
  bool evaluates = false;
  uint32_t timeoutMs = 0;
  uint64_t step = 0;
  Phase phase = Phase::Computing;
  std::string text;              // what the calling thread is at
  std::string entering, awaited; // the transfer that is being started, that is under way
  uint64_t changes = 0;      // grows with everything the rank does

  bool ended() const { return state == RankState::Finished || state == RankState::Failed; }
};

class Board {
public:
  Board() = default;
  ~Board();
  Board(Board &&other) noexcept { *this = std::move(other); }
  Board &operator=(Board &&other) noexcept;

  // In this process alone.
  static Board makePrivate(uint32_t ranks);
  // A new file of mode 0600 at `path`, which must not exist. Exit 1 when it cannot be made.
  static Board create(const std::string &path, uint32_t ranks);
  // Exit 2 unless it is a board of `ranks` ranks (0: of any number) that belongs to this user alone.
  static Board open(const std::string &path, uint32_t ranks);

  uint32_t ranks() const { return ranks_; }
  BoardHeader &header() const { return *header_; }
  BoardEntry &entry(uint32_t rank) const;
  RankPlace read(uint32_t rank) const;

  // Whether `who` (a rank, or ranks() for the launcher) is the first to tell a failure.
  bool claimReport(uint32_t who) const;
  bool isReported() const { return header_->reporter.load() != 0; }

private:
  void format(uint32_t ranks);

  BoardHeader *header_ = nullptr;
  uint64_t bytes_ = 0;
  uint32_t ranks_ = 0; // not read again from the file, which others can write
};

// The folder for files that ranks of a node share: /dev/shm where it has room, else $TMPDIR, else /tmp.
std::string sharedFolder();
std::string hostName();

// "at kernel 'k' (step 3)", "waiting in all_reduce 'g' (step 3)", "about to enter ...".
std::string whereText(const RankPlace &place);
// "is at kernel 'k' (step 3)", "waits in ...", "has not started". A rank that is not on the board
// although others run is on another machine.
std::string placeText(const RankPlace &place, bool othersRun);
// The same for all ranks but `except`, those at the same place together:
// "ranks 0, 2 wait in all_reduce 'g' (step 3); rank 3 is at kernel 'k' (step 3)".
std::string placesText(const Board &board, uint32_t except);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_BOARD_H
