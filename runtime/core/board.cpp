// The file behind the progress board and what is read from it.
#include "core/board.h"
#include "core/error.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace shoal::rt {
namespace {

constexpr int kTornReads = 100; // a dead rank may have left its place half written

uint64_t boardBytes(uint32_t ranks) {
  return sizeof(BoardHeader) + uint64_t(ranks) * sizeof(BoardEntry);
}

std::string readText(const std::atomic<uint64_t> (&words)[kBoardWords]) {
  char bytes[kBoardWords * 8];
  for (uint32_t i = 0; i < kBoardWords; ++i) {
    uint64_t word = words[i].load(std::memory_order_relaxed);
    std::memcpy(bytes + 8 * i, &word, 8);
  }
  std::string text(bytes, strnlen(bytes, sizeof bytes));
  for (char &c : text)
    if (c < ' ' || c > '~')
      c = '?';
  return text;
}

struct PlaceCopy {
  Phase phase = Phase::Computing;
  std::string text;
  uint32_t changes = 0;
};

PlaceCopy readPlace(const BoardPlace &place) {
  PlaceCopy copy;
  for (int attempt = 0; attempt < kTornReads; ++attempt) {
    uint32_t before = place.changes.load(std::memory_order_acquire);
    uint32_t phase = place.phase.load(std::memory_order_relaxed);
    copy.phase = phase <= uint32_t(Phase::Done) ? Phase(phase) : Phase::Computing;
    copy.text = readText(place.text);
    copy.changes = before;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && place.changes.load(std::memory_order_relaxed) == before)
      break;
  }
  return copy;
}

} // namespace

BoardText boardText(std::string_view text) {
  BoardText words{};
  char *to = reinterpret_cast<char *>(words.data());
  constexpr size_t most = sizeof words - 1;
  for (size_t i = 0; i < std::min(text.size(), most); ++i)
    to[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
  if (text.size() > most)
    std::memcpy(to + most - 3, "...", 3);
  return words;
}

Board::~Board() {
  if (header_)
    munmap(header_, bytes_);
}

Board &Board::operator=(Board &&other) noexcept {
  std::swap(header_, other.header_);
  std::swap(bytes_, other.bytes_);
  std::swap(ranks_, other.ranks_);
  return *this;
}

void Board::format(uint32_t ranks) {
  ranks_ = ranks;
  std::memcpy(header_->magic, kBoardMagic, sizeof kBoardMagic);
  header_->version = kBoardVersion;
  header_->ranks = ranks;
  header_->entryBytes = sizeof(BoardEntry);
}

Board Board::makePrivate(uint32_t ranks) {
  Board board;
  board.bytes_ = boardBytes(ranks);
  void *at = mmap(nullptr, board.bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    workFailed("no memory for the progress board: ", std::strerror(errno));
  board.header_ = static_cast<BoardHeader *>(at);
  board.format(ranks);
  return board;
}

Board Board::create(const std::string &path, uint32_t ranks) {
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0)
    workFailed(path, ": the progress board cannot be made: ", std::strerror(errno));
  Board board;
  board.bytes_ = boardBytes(ranks);
  // Allocated now: a full disk must not end a rank at its first store.
  int error = posix_fallocate(fd, 0, off_t(board.bytes_));
  void *at = error == 0 ? mmap(nullptr, board.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                        : MAP_FAILED;
  if (error == 0 && at == MAP_FAILED)
    error = errno;
  close(fd);
  if (error != 0) {
    unlink(path.c_str());
    workFailed(path, ": the progress board cannot be made: ", std::strerror(error));
  }
  board.header_ = static_cast<BoardHeader *>(at);
  board.format(ranks);
  return board;
}

Board Board::open(const std::string &path, uint32_t ranks) {
  int fd = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    badInput(path, ": the progress board cannot be opened: ", std::strerror(errno));
  struct stat info;
  auto refuse = [&](const auto &...parts) {
    close(fd);
    badInput(path, ": is no progress board of this run: ", parts...);
  };
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    refuse("it is no regular file");
  if (info.st_uid != geteuid() || (info.st_mode & 077) != 0)
    refuse("it must belong to this user alone");
  BoardHeader header{};
  ssize_t got = pread(fd, static_cast<void *>(&header), sizeof header, 0);
  if (got != ssize_t(sizeof header) || std::memcmp(header.magic, kBoardMagic, sizeof kBoardMagic) != 0)
    refuse("it does not start as one");
  if (header.version != kBoardVersion || header.entryBytes != sizeof(BoardEntry))
    refuse("its version is ", header.version, " with entries of ", header.entryBytes,
           " bytes, expected ", kBoardVersion, " with ", sizeof(BoardEntry));
  if (header.ranks == 0 || header.ranks > kBoardMostRanks || (ranks != 0 && header.ranks != ranks))
    refuse("it is for ", header.ranks, " ranks, expected ", ranks);
  if (uint64_t(info.st_size) != boardBytes(header.ranks))
    refuse("it has ", info.st_size, " bytes, expected ", boardBytes(header.ranks));
  Board board;
  board.bytes_ = boardBytes(header.ranks);
  board.ranks_ = header.ranks;
  void *at = mmap(nullptr, board.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED)
    refuse(std::strerror(errno));
  close(fd);
  board.header_ = static_cast<BoardHeader *>(at);
  return board;
}

BoardEntry &Board::entry(uint32_t rank) const {
  return reinterpret_cast<BoardEntry *>(header_ + 1)[rank];
}

RankPlace Board::read(uint32_t rank) const {
  const BoardEntry &entry = this->entry(rank);
  RankPlace place;
  place.pid = entry.pid.load(std::memory_order_acquire);
  uint32_t state = entry.state.load(std::memory_order_acquire);
  place.state = state <= uint32_t(RankState::Failed) ? RankState(state) : RankState::Absent;
  place.evaluates = entry.program.load(std::memory_order_relaxed) != 0;
  place.timeoutMs = entry.timeoutMs.load(std::memory_order_relaxed);
  place.step = entry.step.load(std::memory_order_relaxed);
  PlaceCopy compute = readPlace(entry.compute), communication = readPlace(entry.communication);
  place.phase = compute.phase;
  place.text = compute.text;
  if (communication.phase == Phase::Waiting)
    place.awaited = communication.text;
  if (communication.phase == Phase::Entering)
    place.entering = communication.text;
  place.changes = uint64_t(compute.changes) + communication.changes + state;
  for (const std::atomic<uint64_t> &gate : entry.entered)
    place.changes += gate.load(std::memory_order_relaxed);
  return place;
}

bool Board::claimReport(uint32_t who) const {
  uint32_t nobody = 0;
  return header_->reporter.compare_exchange_strong(nobody, who + 1);
}

std::string sharedFolder() {
  // What Open MPI and a board keep there, of a few ranks; containers give 64 MiB where nobody asks for more.
  constexpr uint64_t kRoom = uint64_t(32) << 20;
  struct statvfs memory;
  bool hasRoom = statvfs("/dev/shm", &memory) == 0 && memory.f_bavail * memory.f_frsize >= kRoom;
  for (const char *folder : {hasRoom ? static_cast<const char *>("/dev/shm") : nullptr,
                             static_cast<const char *>(std::getenv("TMPDIR"))})
    if (folder && access(folder, W_OK | X_OK) == 0)
      return folder;
  return "/tmp";
}

std::string hostName() {
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

namespace {

// The operation with its step.
std::string operationText(const RankPlace &place) {
  std::string text = !place.entering.empty()                                     ? place.entering
                     : place.phase == Phase::Waiting && !place.awaited.empty() ? place.awaited
                                                                                 : place.text;
  if (place.step != 0)
    text += cat(" (", place.evaluates ? "evaluation, " : "", "step ", place.step, ")");
  return text;
}

} // namespace

std::string whereText(const RankPlace &place) {
  return (!place.entering.empty()          ? "about to enter "
          : place.phase == Phase::Waiting ? "waiting in "
                                          : "at ") +
         operationText(place);
}

namespace {

// With the verb for one rank or for several.
std::string placeText(const RankPlace &place, bool othersRun, bool several) {
  if (place.state == RankState::Absent && othersRun)
    return several ? "are on another machine" : "is on another machine";
  if (place.state == RankState::Absent)
    return several ? "have not started" : "has not started";
  if (place.state == RankState::Finished)
    return several ? "have finished" : "has finished";
  if (place.state == RankState::Failed)
    return several ? "have failed" : "has failed";
  if (place.entering.empty() && place.phase == Phase::Waiting)
    return (several ? "wait in " : "waits in ") + operationText(place);
  return (several ? "are " : "is ") + whereText(place);
}

} // namespace

std::string placeText(const RankPlace &place, bool othersRun) {
  return placeText(place, othersRun, false);
}

std::string placesText(const Board &board, uint32_t except) {
  struct Group {
    RankPlace place;
    std::string ranks;
    uint32_t count = 0;
  };
  std::vector<Group> groups; // in the order of their first ranks
  std::map<std::string, size_t> known;
  bool running = false; // MPI has started, so all ranks of this machine are on the board
  for (uint32_t rank = 0; rank < board.ranks(); ++rank)
    running |= board.read(rank).state == RankState::Running;
  for (uint32_t rank = 0; rank < board.ranks(); ++rank) {
    if (rank == except)
      continue;
    RankPlace place = board.read(rank);
    auto [at, isNew] = known.emplace(placeText(place, running), groups.size());
    if (isNew)
      groups.push_back({place, "", 0});
    Group &group = groups[at->second];
    group.ranks += (group.count++ ? ", " : "") + std::to_string(rank);
  }
  std::string text;
  for (const Group &group : groups)
    text += cat(text.empty() ? "" : "; ", group.count > 1 ? "ranks " : "rank ", group.ranks, " ",
                placeText(group.place, running, group.count > 1));
  return text;
}

} // namespace shoal::rt
