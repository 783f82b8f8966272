// Schedules of pipelines as plain data: what each rank computes, sends and receives, in which order. Generators make
// them, files and the op pipe.schedule hold them, `check` and `simulate` read them.
#ifndef SHOAL_SCHEDULE_SCHEDULE_H
#define SHOAL_SCHEDULE_SCHEDULE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::pipe {

/// How the stages lie on the ranks. Loop: stage k on rank k mod P, as in Megatron's interleaved schedule. Vee: every
/// second chunk runs back, so that with two chunks rank r has the stages r and 2P-1-r, and the loss is where the
/// input is.
enum class Placement : uint8_t { Loop, Vee };

std::optional<Placement> symbolizePlacement(llvm::StringRef name);
llvm::StringRef stringifyPlacement(Placement placement);

/// P, M and v of the formulas.
struct Shape {
  int64_t ranks = 1, microbatches = 1, chunks = 1;
  Placement placement = Placement::Loop;

  int64_t getStages() const { return ranks * chunks; }
  int64_t getRank(int64_t stage) const;
  int64_t getChunk(int64_t stage) const { return stage / ranks; }
  int64_t getStage(int64_t rank, int64_t chunk) const;
  /// Whether what stage `from` makes for stage `to` travels.
  bool crosses(int64_t from, int64_t to) const { return getRank(from) != getRank(to); }
  bool hasStage(int64_t stage) const { return stage >= 0 && stage < getStages(); }

  bool operator==(const Shape &) const = default;
};

/// Ranks times chunks times micro-batches: tables of schedules have as many entries.
inline constexpr int64_t kMostWork = int64_t(1) << 22;

/// The rule that the shape breaks, with the values; empty when none.
std::string findFault(const Shape &shape);

enum class ActionKind : uint8_t {
  Forward,        ///< F
  Backward,       ///< B: the whole backward
  BackwardInput,  ///< I: the cotangents of the stage's input
  BackwardWeight, ///< W: the gradients of its parameters, from what I has kept
  Send,           ///< S: what F makes for the next stage, or B and I for the one before
  Recv,           ///< R
  Norm,           ///< N: the global norm of the gradients, exchanged between all ranks
  Update,         ///< U: the optimizer's, of all stages of the rank
};

/// What a stage computes in one go, by the words of the op pipe.call: forward, backward, backward_input,
/// backward_weight.
using Part = ActionKind;
std::optional<Part> symbolizePart(llvm::StringRef name);
llvm::StringRef stringifyPart(Part part);

struct Action {
  ActionKind kind = ActionKind::Forward;
  bool backward = false; ///< of a message: cotangents for the stage before, not activations for the next one
  bool joined = false;   ///< of a message: progresses together with the message in front of it
  int32_t stage = -1;    ///< of a message: the rank's own, which has made it or will read it; -1 of N and U
  int32_t microbatch = -1;
  int32_t peer = -1; ///< of a message: the rank at the other end

  bool isMessage() const { return kind == ActionKind::Send || kind == ActionKind::Recv; }
  bool isCompute() const { return kind <= ActionKind::BackwardWeight; }
  /// Whether it makes what the stage before waits for.
  bool makesCotangent() const { return kind == ActionKind::Backward || kind == ActionKind::BackwardInput; }
  /// The stage at the other end of a message.
  int64_t getOtherStage() const { return stage + ((kind == ActionKind::Send) != backward ? 1 : -1); }

  static Action compute(ActionKind kind, int64_t stage, int64_t microbatch) {
    return {kind, false, false, int32_t(stage), int32_t(microbatch), -1};
  }
  bool operator==(const Action &) const = default;
};

struct Schedule {
  Shape shape;
  std::vector<std::vector<Action>> ranks;
  /// Per rank the most micro-batches (times chunks) that are stashed at once, from F until B or W; empty where
  /// nothing is promised.
  std::vector<int64_t> peak;

  bool hasMessages() const;
  bool operator==(const Schedule &) const = default;
};

/// Whether it has the backward pass in two parts, I and W.
bool splitsBackward(const Schedule &schedule);

/// "F3", "W3.1" (chunk 1), "SF3>1" (send to rank 1 what F3 makes), "RB3.1<2" (receive what B3.1 or I3.1 reads), "N",
/// "U". A stage that is not of `rank` stands as "F3@5".
std::string format(const Action &action, const Shape &shape, int64_t rank);

/// What rows of a program say of the action that they are part of, whichever rank reads it: "F3@5", "SF3@5", "U".
std::string getScope(const Action &action);

} // namespace shoal::pipe

#endif // SHOAL_SCHEDULE_SCHEDULE_H
