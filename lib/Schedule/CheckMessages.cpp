// Messages as a rendezvous: a send ends when its receive is there. The n-th send from one rank to another meets the
// n-th receive there, as in MPI and NCCL.
#include "Check.h"
#include "Run.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace shoal::pipe {

namespace {

/// A message by its place in the lists.
struct Slot {
  int64_t rank;
  size_t index;
};

/// From one rank to another.
struct Channel {
  std::vector<Slot> sends, recvs;
  size_t sent = 0, received = 0; // posted so far
};

class MessageChecker {
public:
  explicit MessageChecker(const Schedule &schedule) : schedule(schedule), shape(schedule.shape) {}

  std::optional<Fault> check() {
    sent.assign(getNumProducts(shape), false);
    made = received = sent;
    for (int64_t rank = 0; rank < shape.ranks; ++rank)
      if (auto fault = checkRank(rank))
        return fault;
    if (auto fault = checkEnds())
      return fault;
    for (const Channel &channel : channels)
      if (auto fault = checkChannel(channel))
        return fault;
    return rendezvous();
  }

private:
  const Action &get(const Slot &slot) const { return schedule.ranks[slot.rank][slot.index]; }
  std::string show(const Slot &slot) const { return place(schedule, slot.rank, get(slot)); }

  Channel &getChannel(int64_t from, int64_t to) {
    auto [entry, isNew] = numbers.try_emplace(from * shape.ranks + to, channels.size());
    if (isNew)
      channels.emplace_back();
    return channels[entry->second];
  }
  Channel &getChannel(const Slot &slot) {
    const Action &message = get(slot);
    return message.kind == ActionKind::Send ? getChannel(slot.rank, message.peer) : getChannel(message.peer, slot.rank);
  }

  /// Each message once, between neighbours, sent behind what makes it and received before what reads it.
  std::optional<Fault> checkRank(int64_t rank) {
    for (auto [index, action] : llvm::enumerate(schedule.ranks[rank])) {
      Slot slot{rank, index};
      if (action.isMessage()) {
        if (auto fault = checkMessage(slot))
          return fault;
        continue;
      }
      if (!action.isCompute())
        continue;
      if (std::optional<Product> need = getNeed(action, shape);
          need && crosses(*need, shape) && !received[need->getIndex(shape)])
        return Fault{show(slot) + " reads what the rank has not received: R" + (need->backward ? "B" : "F") +
                         " must stand before it (a file without any S and R gets all of them)",
                     {},
                     slot.rank};
      if (std::optional<Product> product = getProduct(action, shape))
        made[product->getIndex(shape)] = true;
    }
    return std::nullopt;
  }

  std::optional<Fault> checkMessage(const Slot &slot) {
    const Action &message = get(slot);
    bool isSend = message.kind == ActionKind::Send;
    int64_t other = message.getOtherStage();
    if (!shape.hasStage(other))
      return Fault{show(slot) + (isSend ? " has no stage to go to" : " has no stage to come from") + ": " +
                       (message.backward == isSend ? "it is of the first stage" : "it is of the last stage"),
                   {},
                   slot.rank};
    int64_t peer = shape.getRank(other);
    if (peer == slot.rank)
      return Fault{show(slot) + " is of two stages of one rank: there is nothing to send", {}, slot.rank};
    if (peer != message.peer)
      return Fault{show(slot) + " must name rank " + std::to_string(peer) + ", which has stage " +
                       std::to_string(other),
                   {},
                   slot.rank};
    size_t index = getProductOfMessage(message).getIndex(shape);
    if ((isSend ? sent : received)[index])
      return Fault{show(slot) + " stands twice", {}, slot.rank};
    if (isSend && !made[index])
      return Fault{show(slot) + " stands before what makes it", {}, slot.rank};
    (isSend ? sent : received)[index] = true;
    (isSend ? getChannel(slot).sends : getChannel(slot).recvs).push_back(slot);
    return std::nullopt;
  }

  std::optional<Fault> checkEnds() const {
    for (const Channel &channel : channels) {
      for (const Slot &slot : channel.recvs)
        if (!sent[getProductOfMessage(get(slot)).getIndex(shape)])
          return Fault{show(slot) + " has no counterpart: rank " + std::to_string(get(slot).peer) + " never sends it",
                       {},
                       slot.rank};
      for (const Slot &slot : channel.sends)
        if (!received[getProductOfMessage(get(slot)).getIndex(shape)])
          return Fault{show(slot) + " has no counterpart: rank " + std::to_string(get(slot).peer) +
                           " never receives it",
                       {},
                       slot.rank};
    }
    return std::nullopt;
  }

  std::optional<Fault> checkChannel(const Channel &channel) const {
    for (auto [index, ends] : llvm::enumerate(llvm::zip_equal(channel.sends, channel.recvs))) {
      const auto &[send, recv] = ends;
      if (getProductOfMessage(get(send)).getIndex(shape) != getProductOfMessage(get(recv)).getIndex(shape))
        return Fault{show(send) + " meets " + show(recv) + ", which is another message: both are number " +
                         std::to_string(index) + " of those from rank " + std::to_string(send.rank) + " to rank " +
                         std::to_string(recv.rank) + ", and messages arrive in the order in which they are sent",
                     {},
                     send.rank};
    }
    return std::nullopt;
  }

  /// All ranks advance as far as they can.
  std::optional<Fault> rendezvous() {
    at.assign(shape.ranks, 0);
    pending.assign(shape.ranks, 0);
    for (int64_t rank = 0; rank < shape.ranks; ++rank)
      queue.push_back(rank);
    while (!queue.empty())
      advance(queue.pop_back_val());
    return findDeadlock();
  }

  size_t getSize(int64_t rank) const { return schedule.ranks[rank].size(); }

  void advance(int64_t rank) {
    while (pending[rank] == 0 && at[rank] < getSize(rank)) {
      const Action &action = schedule.ranks[rank][at[rank]];
      if (action.kind == ActionKind::Norm) {
        pending[rank] = 1;
        meeting.push_back(rank);
        if (int64_t(meeting.size()) == shape.ranks)
          for (int64_t each : std::exchange(meeting, {}))
            finish(each, 1);
        return;
      }
      if (!action.isMessage()) {
        ++at[rank];
        continue;
      }
      // All messages of a group are there at once. The group waits at its first message until the last has met its
      // other end.
      size_t end = at[rank];
      do
        ++end, ++pending[rank];
      while (end < getSize(rank) && schedule.ranks[rank][end].joined);
      for (size_t index = at[rank]; index < end; ++index)
        post({rank, index});
      return;
    }
  }

  void post(const Slot &slot) {
    Channel &channel = getChannel(slot);
    bool isSend = get(slot).kind == ActionKind::Send;
    size_t number = isSend ? channel.sent++ : channel.received++;
    if (number >= (isSend ? channel.received : channel.sent))
      return;
    finish(slot.rank, 1);
    finish((isSend ? channel.recvs : channel.sends)[number].rank, 1);
  }

  void finish(int64_t rank, int64_t messages) {
    pending[rank] -= messages;
    if (pending[rank] != 0)
      return;
    do
      ++at[rank];
    while (at[rank] < getSize(rank) && schedule.ranks[rank][at[rank]].joined);
    queue.push_back(rank);
  }

  std::optional<Fault> findDeadlock() {
    std::vector<int64_t> next(shape.ranks, -1);
    std::vector<std::string> why(shape.ranks);
    bool isStuck = false;
    for (int64_t rank = 0; rank < shape.ranks; ++rank) {
      if (at[rank] == getSize(rank))
        continue;
      isStuck = true;
      if (schedule.ranks[rank][at[rank]].kind == ActionKind::Norm) {
        next[rank] = findAbsent();
        why[rank] = show({rank, at[rank]}) + " waits for rank " + std::to_string(next[rank]);
        continue;
      }
      at[rank] = findUnmet(rank);
      const Action &message = schedule.ranks[rank][at[rank]];
      next[rank] = message.peer;
    }
    if (!isStuck)
      return std::nullopt;
    for (int64_t rank = 0; rank < shape.ranks; ++rank)
      if (next[rank] >= 0 && why[rank].empty())
        why[rank] = show({rank, at[rank]}) + " waits for rank " + std::to_string(next[rank]) + ", which is at " +
                    format(schedule.ranks[next[rank]][at[next[rank]]], shape, next[rank]);
    return describeCycle(schedule, "the ranks wait for each other in a circle: ", next, at, why);
  }

  /// A rank that has not come to the norm.
  int64_t findAbsent() const {
    for (int64_t rank = 0; rank < shape.ranks; ++rank)
      if (at[rank] < getSize(rank) && schedule.ranks[rank][at[rank]].kind != ActionKind::Norm)
        return rank;
    return -1;
  }

  /// Of the group that the rank waits in, the first message whose other end is not there.
  size_t findUnmet(int64_t rank) {
    for (size_t index = at[rank];; ++index) {
      Slot slot{rank, index};
      Channel &channel = getChannel(slot);
      bool isSend = get(slot).kind == ActionKind::Send;
      const std::vector<Slot> &own = isSend ? channel.sends : channel.recvs;
      size_t number = llvm::find_if(own, [&](const Slot &it) { return it.index == index; }) - own.begin();
      if (number >= std::min(channel.sent, channel.received))
        return index;
    }
  }

  const Schedule &schedule;
  const Shape &shape;
  std::vector<bool> made, sent, received; // by product
  std::vector<Channel> channels;
  llvm::DenseMap<int64_t, size_t> numbers; // of channels, by both ranks
  std::vector<size_t> at;                  // per rank, the action that it is at
  std::vector<int64_t> pending;            // per rank, messages of its group that have not met
  llvm::SmallVector<int64_t> queue;
  std::vector<int64_t> meeting;
};

} // namespace

std::optional<Fault> checkMessages(const Schedule &schedule) { return MessageChecker(schedule).check(); }

} // namespace shoal::pipe
