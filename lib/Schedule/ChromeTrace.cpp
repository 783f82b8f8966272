// A timeline in the Trace Event Format: a process per rank with its computations, its sends, and the stash as a
// counter.
#include "shoal/Schedule/Timeline.h"
#include "shoal/Support/OptionTable.h"

#include "llvm/ADT/STLExtras.h"

namespace shoal::pipe {

namespace {

constexpr int64_t kComputes = 0, kSends = 1;

class TraceWriter {
public:
  TraceWriter(const Timeline &timeline, double microseconds) : timeline(timeline), scale(microseconds) {}

  std::string take() {
    for (auto [rank, line] : llvm::enumerate(timeline.ranks)) {
      name("process_name", rank, kComputes, "rank " + std::to_string(rank));
      name("thread_name", rank, kComputes, "computes");
      name("thread_name", rank, kSends, "sends");
      int64_t stash = 0;
      for (const Span &span : line.spans) {
        Action action{span.kind, false, false, span.stage, span.microbatch, -1};
        complete(format(action, timeline.shape, rank), rank, kComputes, span.begin, span.end);
        if (span.kind == ActionKind::Forward)
          count(rank, span.begin, ++stash);
        else if (span.kind == ActionKind::Backward || span.kind == ActionKind::BackwardWeight)
          count(rank, span.end, --stash);
      }
    }
    for (const Transfer &it : timeline.transfers) {
      Action send{ActionKind::Send, it.backward, false, it.stage, it.microbatch, it.to};
      complete(format(send, timeline.shape, it.from), it.from, kSends, it.begin, it.end);
    }
    return "{\"traceEvents\":[" + events + "\n]}\n";
  }

private:
  std::string time(double value) const { return shortestDigits(value * scale); }

  void event(const std::string &members) { events += (events.empty() ? "\n{" : ",\n{") + members + "}"; }
  static std::string place(int64_t rank, int64_t thread) {
    return ",\"pid\":" + std::to_string(rank) + ",\"tid\":" + std::to_string(thread);
  }

  // All names are the writer's own words and numbers, so nothing needs escapes.
  void name(const char *what, int64_t rank, int64_t thread, const std::string &name) {
    event("\"ph\":\"M\",\"name\":\"" + std::string(what) + "\"" + place(rank, thread) + ",\"args\":{\"name\":\"" +
          name + "\"}");
  }
  void complete(const std::string &name, int64_t rank, int64_t thread, double begin, double end) {
    event("\"ph\":\"X\",\"name\":\"" + name + "\",\"cat\":\"" + name.front() + "\"" + place(rank, thread) +
          ",\"ts\":" + time(begin) + ",\"dur\":" + time(end - begin));
  }
  void count(int64_t rank, double at, int64_t stash) {
    event("\"ph\":\"C\",\"name\":\"stash\"" + place(rank, kComputes) + ",\"ts\":" + time(at) +
          ",\"args\":{\"micro-batches\":" + std::to_string(stash) + "}");
  }

  const Timeline &timeline;
  double scale;
  std::string events;
};

} // namespace

std::string writeChromeTrace(const Timeline &timeline, double microseconds) {
  return TraceWriter(timeline, microseconds).take();
}

} // namespace shoal::pipe
