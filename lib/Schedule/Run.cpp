// Ranks advance as far as they can; a rank that waits is tried again when what it waits for is there.
#include "Run.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <utility>

namespace shoal::pipe {

std::optional<Product> getNeed(const Action &action, const Shape &shape) {
  if (action.kind == ActionKind::Forward && action.stage > 0)
    return Product{action.stage - 1, action.microbatch, false};
  if (action.makesCotangent() && action.stage + 1 < shape.getStages())
    return Product{action.stage + 1, action.microbatch, true};
  return std::nullopt;
}

std::optional<Product> getProduct(const Action &action, const Shape &shape) {
  if (action.kind == ActionKind::Forward && action.stage + 1 < shape.getStages())
    return Product{action.stage, action.microbatch, false};
  if (action.makesCotangent() && action.stage > 0)
    return Product{action.stage, action.microbatch, true};
  return std::nullopt;
}

Product getProductOfMessage(const Action &message) {
  int64_t stage = message.kind == ActionKind::Send ? message.stage : message.getOtherStage();
  return {stage, message.microbatch, message.backward};
}

bool Run::isComplete(const Schedule &schedule) const {
  for (auto [ran, actions] : llvm::zip_equal(times, schedule.ranks))
    if (ran.size() != actions.size())
      return false;
  return true;
}

namespace {

constexpr double kNotYet = -1;

class Runner {
public:
  Runner(const Schedule &schedule, const Costs &costs)
      : schedule(schedule), shape(schedule.shape), costs(costs), sendsExplicitly(schedule.hasMessages()),
        made(getNumProducts(shape), kNotYet), arrived(made), free(shape.ranks, 0), channels(shape.ranks),
        isQueued(shape.ranks, true) {
    result.times.resize(shape.ranks);
    for (int64_t rank = 0; rank < shape.ranks; ++rank) {
      result.times[rank].reserve(schedule.ranks[rank].size());
      queue.push_back(rank);
    }
  }

  Run take() {
    while (!queue.empty()) {
      int64_t rank = queue.pop_back_val();
      isQueued[rank] = false;
      while (result.getDone(rank) < schedule.ranks[rank].size() && step(rank))
        ;
    }
    return std::move(result);
  }

private:
  /// Runs the rank's next action unless it has to wait.
  bool step(int64_t rank) {
    const Action &action = schedule.ranks[rank][result.getDone(rank)];
    double begin = free[rank];
    if (action.kind == ActionKind::Norm)
      return meet(rank);
    if (action.kind == ActionKind::Send) {
      Product product = getProductOfMessage(action);
      double there = made[product.getIndex(shape)];
      if (there == kNotYet)
        return false;
      transfer(rank, product, std::max(begin, there));
    } else if (std::optional<Product> need = getNeed(action, shape)) {
      double there = arrived[need->getIndex(shape)];
      if (there == kNotYet)
        return false;
      begin = std::max(begin, there);
    }
    double end = begin + costs.getDuration(action);
    result.times[rank].push_back({begin, end});
    free[rank] = end;
    if (std::optional<Product> product = getProduct(action, shape)) {
      made[product->getIndex(shape)] = end;
      if (!crosses(*product, shape))
        arrive(*product, end);
      else if (!sendsExplicitly)
        transfer(rank, *product, end);
    }
    return true;
  }

  /// The ranks leave the exchange together.
  bool meet(int64_t rank) {
    meeting.push_back(rank);
    latest = std::max(latest, free[rank]);
    if (int64_t(meeting.size()) < shape.ranks)
      return false;
    for (int64_t each : std::exchange(meeting, {})) {
      result.times[each].push_back({latest, latest + costs.norm});
      free[each] = latest + costs.norm;
      wake(each);
    }
    return true;
  }

  void transfer(int64_t rank, const Product &product, double begin) {
    int64_t peer = shape.getRank(getReader(product));
    auto *channel = llvm::find_if(channels[rank], [&](const auto &it) { return it.first == peer; });
    if (channel == channels[rank].end())
      channel = &channels[rank].emplace_back(peer, 0.0);
    begin = std::max(begin, channel->second);
    channel->second = begin + costs.getTransfer(product.stage, product.backward);
    result.transfers.push_back({int32_t(rank), int32_t(peer), product.backward, int32_t(product.stage),
                                int32_t(product.microbatch), costs.getMessageBytes(product.stage, product.backward),
                                begin, channel->second});
    arrive(product, channel->second);
  }

  void arrive(const Product &product, double time) {
    arrived[product.getIndex(shape)] = time;
    wake(shape.getRank(getReader(product)));
  }

  void wake(int64_t rank) {
    if (!isQueued[rank])
      queue.push_back(rank);
    isQueued[rank] = true;
  }

  const Schedule &schedule;
  const Shape &shape;
  const Costs &costs;
  bool sendsExplicitly;
  std::vector<double> made, arrived; // by product: on the rank that makes it, and where it is read
  std::vector<double> free;          // per rank, when its last action has ended
  std::vector<llvm::SmallVector<std::pair<int64_t, double>, 4>> channels; // per sender: receiver, when it is free
  llvm::SmallVector<int64_t> queue;
  std::vector<bool> isQueued;
  std::vector<int64_t> meeting; // ranks that wait in N
  double latest = 0;
  Run result;
};

} // namespace

Run run(const Schedule &schedule, const Costs &costs) { return Runner(schedule, costs).take(); }

} // namespace shoal::pipe
