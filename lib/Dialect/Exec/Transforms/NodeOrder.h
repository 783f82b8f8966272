// A total order of numbered nodes that answers "which comes first" at once and lets nodes move at a
// cost of what moves, not of what they move past: a linked list whose nodes carry growing labels
// (Dietz and Sleator, 1987; here all labels are spread anew where a gap is used up).
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_NODEORDER_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_NODEORDER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace shoal::exec {

class NodeOrder {
public:
  /// Nodes 0 to count - 1, in this order.
  explicit NodeOrder(unsigned count) : links(count + 1) {
    for (unsigned i = 0; i <= count; ++i)
      links[i] = {i == 0 ? count : i - 1, i == count ? 0 : i + 1, 0};
    spread();
  }

  bool isBefore(unsigned a, unsigned b) const { return links[a].label < links[b].label; }

  void remove(unsigned node) {
    Link &link = links[node];
    links[link.previous].next = link.next;
    links[link.next].previous = link.previous;
  }

  /// Moves nodes, in the order given, to right before `node`, which is none of them.
  void moveBefore(unsigned node, llvm::ArrayRef<unsigned> moved) {
    for (unsigned i : moved)
      remove(i);
    unsigned previous = links[node].previous;
    uint64_t begin = previous == end() ? 0 : links[previous].label;
    uint64_t gap = (links[node].label - begin) / (moved.size() + 1);
    for (unsigned i : moved) {
      begin += gap;
      links[i] = {previous, node, begin};
      links[previous].next = links[node].previous = i;
      previous = i;
    }
    if (gap == 0)
      spread();
  }

  llvm::SmallVector<unsigned> nodes() const {
    llvm::SmallVector<unsigned> result;
    for (unsigned i = links[end()].next; i != end(); i = links[i].next)
      result.push_back(i);
    return result;
  }

private:
  struct Link {
    unsigned previous, next;
    uint64_t label;
  };

  /// Stands before the first node and behind the last.
  unsigned end() const { return links.size() - 1; }

  void spread() {
    uint64_t step = ~uint64_t(0) / (links.size() + 1), label = 0;
    for (unsigned i = links[end()].next; i != end(); i = links[i].next)
      links[i].label = label += step;
  }

  llvm::SmallVector<Link> links;
};

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_NODEORDER_H
