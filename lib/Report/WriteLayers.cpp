// The program by layers: forward and backward pass beside each other, collectives in their place.
#include "Write.h"

#include "llvm/ADT/STLExtras.h"

namespace shoal::report {

/// A list of more ops than anybody looks at is cut, and says so.
static constexpr size_t kMostOps = 1500;

static void writeOp(Html &html, const PageOp &op) {
  std::string style = op.isCommunication ? "op comm" : op.isMinor ? "op minor" : "op";
  if (op.isCommunication && !op.axes.empty())
    style += " " + getAxisClass(op.axes.front());
  html.tag("li", {{"class", style}, {"title", op.reason}}, [&] {
    html.tag("b", {}, op.name);
    if (op.isCommunication)
      writeAxes(html, op.axes);
    if (op.count > 1)
      html.tag("i", {}, "×" + showCount(op.count));
    if (!op.arguments.empty())
      html.tag("em", {}, op.arguments);
    if (!op.shape.empty())
      html.tag("span", {{"class", "shape"}}, op.shape);
  });
  html.newline();
}

static void writeOps(Html &html, llvm::StringRef title, llvm::ArrayRef<PageOp> ops) {
  if (ops.empty())
    return;
  html.tag("div", {{"class", "pass"}}, [&] {
    html.tag("h4", {}, title);
    html.tag("ol", {{"class", "ops"}}, [&] {
      for (const PageOp &op : ops.take_front(kMostOps))
        writeOp(html, op);
      if (ops.size() > kMostOps)
        html.tag("li", {{"class", "op minor"}},
                 "and " + showNumberOf(ops.size() - kMostOps, "line") + " more, which shoalc --emit local prints");
    });
  });
}

/// "forward: 23 ops, 2 collectives".
static uint64_t countOps(llvm::ArrayRef<PageOp> ops, bool ofCommunication) {
  uint64_t count = 0;
  for (const PageOp &op : ops)
    if (op.isCommunication == ofCommunication && !op.isMinor)
      count += op.count;
  return count;
}

static void writeLayer(Html &html, const PageLayer &layer, bool isOpen) {
  auto body = [&] {
    html.tag("summary", {}, [&] {
      html.tag("b", {}, layer.title);
      if (layer.names.size() > 1)
        html.tag("span", {{"class", "badge"}}, showCount(layer.names.size()) + " equal layers");
      uint64_t ops = 0, collectives = 0;
      for (const std::vector<PageOp> *list : {&layer.forward, &layer.backward, &layer.update}) {
        ops += countOps(*list, false);
        collectives += countOps(*list, true);
      }
      std::string counts = showNumberOf(ops, "op");
      if (collectives)
        counts += ", " + showNumberOf(collectives, "collective");
      html.tag("span", {{"class", "note"}}, counts + (layer.names.size() > 1 ? " in each" : ""));
    });
    html.tag("div", {{"class", "passes"}}, [&] {
      bool hasBackward = !layer.backward.empty() || !layer.update.empty();
      writeOps(html, hasBackward ? "Forward" : "In order", layer.forward);
      html.tag("div", {{"class", "side"}}, [&] {
        writeOps(html, "Backward", layer.backward);
        writeOps(html, "Update", layer.update);
      });
    });
  };
  if (isOpen)
    html.tag("details", {{"class", "card"}, {"open", ""}}, body);
  else
    html.tag("details", {{"class", "card"}}, body);
  html.newline();
}

void writeLayers(Html &html, const Page &page) {
  constexpr size_t kMostOpen = 8;
  html.tag("section", {{"id", "layers"}}, [&] {
    html.tag("h2", {}, "The program by layers");
    html.tag("p", {{"class", "lead"}},
             std::string(page.pipeline
                             ? "What the ranks of a pipeline run, each the layers of its stages, with the shapes that "
                               "they see; what every micro-batch repeats is one line."
                             : "What one rank runs, with the shapes that it sees.") +
                 " Coloured lines are collectives over the mesh axis of that colour; their reason appears under the "
                 "pointer.");
    for (const PageLayer &layer : page.layers)
      writeLayer(html, layer, page.layers.size() <= kMostOpen || layer.names.size() > 1);
  });
}

} // namespace shoal::report
