// The actions of all ranks in an order that their dependencies allow, with times.
#ifndef SHOAL_LIB_SCHEDULE_RUN_H
#define SHOAL_LIB_SCHEDULE_RUN_H

#include "shoal/Schedule/Costs.h"
#include "shoal/Schedule/Timeline.h"

namespace shoal::pipe {

/// What one stage makes of a micro-batch for a neighbour.
struct Product {
  int64_t stage = 0, microbatch = 0;
  bool backward = false;

  size_t getIndex(const Shape &shape) const {
    return (size_t(backward) * shape.getStages() + stage) * shape.microbatches + microbatch;
  }
};

inline size_t getNumProducts(const Shape &shape) { return 2 * shape.getStages() * shape.microbatches; }

/// The neighbour's product that a computation reads; none at the ends of the pipeline and for W.
std::optional<Product> getNeed(const Action &action, const Shape &shape);
/// What the computation makes for a neighbour; none at the ends of the pipeline and for W.
std::optional<Product> getProduct(const Action &action, const Shape &shape);
/// The stage that reads it.
inline int64_t getReader(const Product &product) { return product.stage + (product.backward ? -1 : 1); }
/// Whether it travels between ranks.
inline bool crosses(const Product &product, const Shape &shape) {
  return shape.crosses(product.stage, getReader(product));
}
/// What a message carries.
Product getProductOfMessage(const Action &message);

struct ActionTime {
  double begin = 0, end = 0;
};

struct Run {
  std::vector<std::vector<ActionTime>> times; ///< of the actions that have run
  std::vector<Transfer> transfers;

  size_t getDone(size_t rank) const { return times[rank].size(); }
  bool isComplete(const Schedule &schedule) const;
};

/// As `simulate` says. The schedule's actions are of its shape, each on the rank that has its stage.
Run run(const Schedule &schedule, const Costs &costs);

} // namespace shoal::pipe

#endif // SHOAL_LIB_SCHEDULE_RUN_H
