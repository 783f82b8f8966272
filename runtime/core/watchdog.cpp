// Where this rank is, and what happens when it stays there.
#include "core/watchdog.h"
#include "core/error.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>

#include <unistd.h>

namespace shoal::rt {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

// A rank whose culprit waits for somebody else lets those speak first who see the cause.
constexpr double kDeference = 0.5;
// Whoever lost the word ends by itself when nobody has ended it.
constexpr auto kEndPatience = std::chrono::seconds(4);

// R, S, T (stopped), Z, ...; nothing when there is no such process.
std::optional<char> processState(pid_t pid) {
  std::FILE *file = std::fopen(cat("/proc/", pid, "/stat").c_str(), "re");
  if (!file)
    return std::nullopt;
  char line[256] = "";
  char *got = std::fgets(line, sizeof line, file);
  std::fclose(file);
  std::string_view text = got ? line : "";
  size_t name = text.rfind(')');
  if (name == std::string_view::npos || name + 2 >= text.size())
    return std::nullopt;
  return text[name + 2];
}

bool isStopped(const RankPlace &place) {
  std::optional<char> state = place.pid > 0 ? processState(place.pid) : std::nullopt;
  return state == 'T' || state == 't';
}

bool isDead(const RankPlace &place) {
  if (place.pid <= 0 || place.ended())
    return false;
  std::optional<char> state = processState(place.pid);
  return !state || state == 'Z' || state == 'X';
}

std::string secondsText(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

} // namespace

Beacon::Beacon(BoardEntry &entry) : entry_(entry) {
  entry_.pid.store(getpid(), std::memory_order_release);
  setState(RankState::Starting);
  alone("the start");
}

void Beacon::setState(RankState state) {
  entry_.state.store(uint32_t(state), std::memory_order_release);
}

void Beacon::setTimeout(double seconds) {
  entry_.timeoutMs = uint32_t(std::min(std::ceil(seconds * 1000), 4e9));
}

void Beacon::beginStep(uint64_t step, bool evaluates) {
  tick_.fetch_add(1, std::memory_order_relaxed);
  entry_.step.store(step, std::memory_order_relaxed);
  entry_.program.store(evaluates, std::memory_order_relaxed);
}

void Beacon::write(BoardPlace &place, const Operation &operation, Phase phase) {
  (&place == &entry_.compute ? current_ : awaited_).store(&operation, std::memory_order_relaxed);
  uint32_t changes = place.changes.load(std::memory_order_relaxed);
  place.changes.store(changes + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  place.phase.store(uint32_t(phase), std::memory_order_relaxed);
  for (uint32_t i = 0; i < kBoardWords; ++i)
    place.text[i].store(operation.text[i], std::memory_order_relaxed);
  place.changes.store(changes + 2, std::memory_order_release);
}

const Operation &Beacon::known(const std::string &what, uint32_t gate, const std::vector<uint32_t> &members) {
  auto [at, isNew] = known_.try_emplace(what);
  if (isNew)
    at->second = {boardText(what), kNone, gate, members};
  return at->second;
}

void Beacon::alone(const std::string &what) {
  std::lock_guard hold(mutex_);
  alone_ = &known(what, kNone, {});
  at(*alone_, Phase::Computing);
}

Beacon::Together::Together(Beacon &beacon, const std::string &what, const std::vector<uint32_t> &members)
    : beacon_(beacon) {
  std::lock_guard hold(beacon.mutex_);
  const Operation &operation = beacon.known(what, 0, members);
  beacon.calls_.fetch_add(1, std::memory_order_relaxed);
  beacon.at(operation, Phase::Waiting);
  beacon.entered(operation);
}

Beacon::Together::~Together() { beacon_.at(*beacon_.alone_, Phase::Computing); }

void Beacon::forget() {
  alone("the work after the steps");
  std::lock_guard hold(mutex_);
  noTransfer();
}

const Operation *Beacon::waiting() const {
  if (entry_.compute.phase.load(std::memory_order_acquire) != uint32_t(Phase::Waiting))
    return nullptr;
  bool transfers =
      entry_.communication.phase.load(std::memory_order_acquire) == uint32_t(Phase::Waiting);
  return (transfers ? awaited_ : current_).load(std::memory_order_relaxed);
}

HangLine hangLine(const Board &board, uint32_t rank, const Operation &operation, uint64_t ordinal,
                  double seconds) {
  RankPlace mine = board.read(rank);
  mine.phase = Phase::Computing; // "is at": only the name and the step are wanted
  std::string text(reinterpret_cast<const char *>(operation.text.data()));
  std::string line = cat("rank ", rank, " waited ", secondsText(seconds), " in ", text);
  if (mine.step != 0 && operation.gate != 0)
    line += cat(" (", mine.evaluates ? "evaluation, " : "", "step ", mine.step, ")");
  bool running = mine.state == RankState::Running;
  if (operation.gate >= kBoardGates)
    return {line + "; " + placesText(board, rank), true};

  // The one to name, best first: it has not entered and cannot, or computes, or waits; or it has
  // entered but cannot move.
  struct Culprit {
    uint32_t rank;
    RankPlace place;
    bool entered, stopped, dead;
    int order;
  };
  std::optional<Culprit> named;
  size_t missing = 0;
  std::vector<uint32_t> members = operation.members;
  if (members.empty())
    for (uint32_t other = 0; other < board.ranks(); ++other)
      members.push_back(other);
  for (uint32_t other : members) {
    if (other == rank || other >= board.ranks())
      continue;
    Culprit one{other, board.read(other), false, false, false, 0};
    bool elsewhere = running && one.place.state == RankState::Absent;
    one.entered = board.entry(other).entered[operation.gate].load() >= ordinal;
    one.stopped = isStopped(one.place);
    one.dead = isDead(one.place);
    if (one.entered && !one.stopped && !one.dead)
      continue;
    missing += !one.entered && !elsewhere;
    one.order = one.entered                             ? 4
                : elsewhere                             ? 3
                : one.stopped || one.dead               ? 0
                : one.place.phase != Phase::Waiting     ? 1
                                                        : 2;
    if (!named || one.order < named->order)
      named = one;
  }
  if (!named)
    return {line + "; all its ranks have entered it: " + placesText(board, rank), true};
  bool elsewhere = named->order == 3;
  line += cat("; rank ", named->rank);
  if (elsewhere)
    return {line + " and perhaps others are on another machine, and all ranks of this one have entered it",
            false};
  line += named->entered ? " has entered it but does not move: it "
                         : missing > 1 ? cat(" and ", missing - 1, " more have not entered it: it ")
                                       : std::string(" has not entered it: it ");
  line += placeText(named->place, running);
  if (named->stopped || named->dead)
    line += named->stopped ? ", stopped by a signal" : ", and its process has ended";
  return {line, named->order != 2};
}

Watchdog::Watchdog(const Board &board, uint32_t rank, Beacon &beacon, double seconds,
                   std::function<void()> end)
    : board_(board), rank_(rank), beacon_(beacon), seconds_(seconds), end_(std::move(end)) {
  beacon.setTimeout(seconds);
  if (seconds > 0)
    thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    std::lock_guard hold(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable())
    thread_.join();
}

// Time counts only while this thread itself runs, so that a job that was stopped as a whole
// (a terminal's Ctrl-Z, a batch system) may go on.
void Watchdog::watch() {
  double tick = std::clamp(seconds_ / 8, 0.001, 0.1), waited = 0;
  uint64_t seen = 0;
  auto last = steady_clock::now();
  std::unique_lock hold(mutex_);
  while (!stopped_.wait_for(hold, duration<double>(tick), [&] { return stop_; })) {
    auto now = steady_clock::now();
    double passed = std::min(duration<double>(now - last).count(), 5 * tick);
    last = now;
    RankPlace place = board_.read(rank_);
    if (place.phase != Phase::Waiting || place.changes != seen)
      waited = 0;
    else
      waited += passed;
    seen = place.changes;
    if (waited >= seconds_)
      fire(waited);
  }
}

void Watchdog::fire(double waited) {
  HangLine line;
  {
    std::lock_guard hold(beacon_.lock());
    const Operation *operation = beacon_.waiting();
    if (!operation)
      return;
    line = hangLine(board_, rank_, *operation, beacon_.ordinal(*operation), waited);
  }
  if (!line.cause && waited < seconds_ + kDeference)
    return;
  if (board_.claimReport(rank_)) {
    std::fprintf(stderr, "error: %s\n", line.text.c_str());
    std::fflush(stderr);
    beacon_.setState(RankState::Failed);
    end_();
  } else {
    std::this_thread::sleep_for(kEndPatience);
  }
  std::_Exit(kExitWorkFailed);
}

} // namespace shoal::rt
