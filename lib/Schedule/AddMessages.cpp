// Messages that follow from dependencies. All events of all ranks, computations and messages, are put in one order,
// in which a message is one event of both its ranks. Each rank's list is its part of that order, so the first event
// that is not done can always be done: no order of the actions makes the ranks wait in a circle, even if each send
// waits for its receive.
#include "Run.h"

#include "shoal/Schedule/Simulate.h"

#include "llvm/ADT/STLExtras.h"

#include <queue>
#include <tuple>

namespace shoal::pipe {

namespace {

struct Event {
  double time;
  bool isCompute; // a message first, so that it follows the action that makes what it carries
  int64_t rank;   // that computes or sends
  Product product;

  auto key() const { return std::tuple(time, isCompute, rank, product.stage, product.microbatch, product.backward); }
  bool operator<(const Event &other) const { return key() > other.key(); } // the queue's top is the largest
};

class Messages {
public:
  Messages(const Schedule &bare, const Run &ran)
      : bare(bare), ran(ran), shape(bare.shape), next(shape.ranks, 0), isSent(getNumProducts(shape), false),
        result(shape.ranks) {}

  std::vector<std::vector<Action>> take() {
    for (int64_t rank = 0; rank < shape.ranks; ++rank)
      offer(rank);
    while (!events.empty()) {
      Event event = events.top();
      events.pop();
      if (event.isCompute)
        compute(event.rank);
      else
        send(event.rank, event.product);
    }
    return std::move(result);
  }

private:
  /// The rank's next action, unless a message that it reads is not yet there.
  void offer(int64_t rank) {
    if (next[rank] == bare.ranks[rank].size())
      return;
    std::optional<Product> need = getNeed(bare.ranks[rank][next[rank]], shape);
    if (!need || !crosses(*need, shape) || isSent[need->getIndex(shape)])
      events.push({ran.times[rank][next[rank]].begin, true, rank, {}});
  }

  void compute(int64_t rank) {
    const Action &action = bare.ranks[rank][next[rank]];
    result[rank].push_back(action);
    if (std::optional<Product> product = getProduct(action, shape); product && crosses(*product, shape))
      events.push({ran.times[rank][next[rank]].end, false, rank, *product});
    ++next[rank];
    offer(rank);
  }

  void send(int64_t rank, const Product &product) {
    int64_t reader = getReader(product), peer = shape.getRank(reader);
    add(rank, ActionKind::Send, product, product.stage, peer);
    add(peer, ActionKind::Recv, product, reader, rank);
    isSent[product.getIndex(shape)] = true;
    // Only a rank whose next action waits for this has not offered it yet.
    if (next[peer] < bare.ranks[peer].size())
      if (std::optional<Product> need = getNeed(bare.ranks[peer][next[peer]], shape);
          need && need->getIndex(shape) == product.getIndex(shape))
        offer(peer);
  }

  void add(int64_t rank, ActionKind kind, const Product &product, int64_t stage, int64_t peer) {
    bool joined = !result[rank].empty() && result[rank].back().isMessage();
    result[rank].push_back(
        {kind, product.backward, joined, int32_t(stage), int32_t(product.microbatch), int32_t(peer)});
  }

  const Schedule &bare;
  const Run &ran;
  const Shape &shape;
  std::vector<size_t> next;
  std::vector<bool> isSent; // by product
  std::priority_queue<Event> events;
  std::vector<std::vector<Action>> result;
};

} // namespace

bool addMessages(Schedule &schedule, const Costs &costs) {
  for (std::vector<Action> &actions : schedule.ranks)
    llvm::erase_if(actions, [](const Action &action) { return action.isMessage(); });
  Run ran = run(schedule, costs);
  if (!ran.isComplete(schedule))
    return false;
  schedule.ranks = Messages(schedule, ran).take();
  return true;
}

} // namespace shoal::pipe
