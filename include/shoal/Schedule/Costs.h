// What a schedule is timed with: durations in one unit, whichever it is, and bytes.
#ifndef SHOAL_SCHEDULE_COSTS_H
#define SHOAL_SCHEDULE_COSTS_H

#include "shoal/Schedule/Schedule.h"

#include <optional>

namespace shoal::pipe {

/// Of one stage and one micro-batch.
struct StageCosts {
  double forward = 1, backward = 2, backwardInput = 1, backwardWeight = 1;
  int64_t stashBytes = 0;       ///< kept from F until B or I
  int64_t weightStashBytes = 0; ///< kept from I until W
  int64_t messageBytes = 0;     ///< of its output, and so of the cotangent that comes back for it
  std::optional<int64_t> cotangentBytes; ///< of that where it differs

  double getDuration(ActionKind kind) const {
    switch (kind) {
    case ActionKind::Forward:
      return forward;
    case ActionKind::Backward:
      return backward;
    case ActionKind::BackwardInput:
      return backwardInput;
    case ActionKind::BackwardWeight:
      return backwardWeight;
    default:
      return 0;
    }
  }
};

struct Costs {
  std::vector<StageCosts> stages; ///< one per stage
  double transfer = 0;            ///< of one message
  double transferByte = 0;        ///< of each of its bytes, besides
  double norm = 0;                ///< from when the last rank has come
  double update = 0;              ///< of a rank

  double getDuration(const Action &action) const {
    if (action.kind == ActionKind::Update)
      return update;
    return action.isCompute() ? stages[action.stage].getDuration(action.kind) : 0;
  }

  /// Of what stage `from` makes for the next one, or for the one before.
  int64_t getMessageBytes(int64_t from, bool backward) const {
    const StageCosts &forward = stages[from - backward];
    return backward ? forward.cotangentBytes.value_or(forward.messageBytes) : forward.messageBytes;
  }
  double getTransfer(int64_t from, bool backward) const {
    return transfer + transferByte * double(getMessageBytes(from, backward));
  }

  /// Equal stages; `rank` is a rank's whole share of a micro-batch, all its chunks, as the formulas have it.
  static Costs uniform(const Shape &shape, StageCosts rank = {}) {
    rank.forward /= shape.chunks;
    rank.backward /= shape.chunks;
    rank.backwardInput /= shape.chunks;
    rank.backwardWeight /= shape.chunks;
    Costs costs;
    costs.stages.assign(shape.getStages(), rank);
    return costs;
  }
};

} // namespace shoal::pipe

#endif // SHOAL_SCHEDULE_COSTS_H
