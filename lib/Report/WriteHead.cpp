// The head of the page: what was compiled for which ranks, by which flags, and what it comes to.
#include "Write.h"

namespace shoal::report {

/// A number that matters, and what it is.
static void writeTile(Html &html, llvm::StringRef id, llvm::StringRef label, llvm::StringRef value,
                      llvm::StringRef note, llvm::StringRef title) {
  html.tag("div", {{"class", "tile"}}, [&] {
    html.tag("div", {{"class", "label"}}, label);
    html.tag("div", {{"class", "value"}, {"id", id.str()}, {"title", title.str()}}, value);
    html.tag("div", {{"class", "note"}}, note);
  });
}

static void writeTotals(Html &html, const Page &page) {
  uint64_t held = 0, host = 0;
  for (const rt::RankReport &rank : page.report.ranks) {
    held = std::max(held, rank.bytes.peak);
    host = std::max(host, rank.bytes.host);
  }
  const rt::RankReport *busiest = findBusiest(page.report);
  uint64_t sent = busiest ? getSentBytes(*busiest) : 0, count = 0;
  if (busiest)
    for (const rt::CollectiveReport &line : busiest->collectives)
      count += line.count;
  size_t ranks = page.report.ranks.size();
  html.tag("div", {{"class", "tiles"}}, [&] {
    writeTile(html, "ranks", "ranks", showCount(ranks), ranks == 1 ? "one device" : "one program for all", "");
    writeTile(html, "parameters", "parameters", showAmount(page.parameters),
              "in " + showNumberOf(page.parameterTensors, "tensor"), showCount(page.parameters));
    writeTile(html, "peak", "peak memory, per rank", showBytes(held), "all that the step allocates",
              showCount(held) + " B");
    if (host)
      writeTile(html, "host", "host memory, per rank", showBytes(host), "beside the device's", showCount(host) + " B");
    writeTile(html, "sent", "sent per step, per rank", showBytes(sent),
              count ? "by " + showNumberOf(count, "collective") : "nothing is sent", showCount(sent) + " B");
  });
}

void writeHead(Html &html, const Page &page) {
  html.tag("header", {}, [&] {
    html.tag("div", {{"class", "wide"}}, [&] {
      html.tag("div", {{"class", "what"}}, [&] {
        html.tag("h1", {}, page.report.program);
        html.tag("div", {{"class", "source"}}, page.source);
        html.tag("div", {{"class", "flags"}}, [&] {
          if (!page.mode.empty())
            html.tag("code", {{"class", "flag"}}, "--mode " + page.mode);
          for (const std::string &flag : page.flags)
            html.tag("code", {{"class", "flag"}}, flag);
        });
        writeTotals(html, page);
      });
      writeMesh(html, page.report);
    });
    html.tag("nav", {}, [&] {
      for (auto [id, name] : {std::pair("memory", "Memory"), std::pair("pipeline", "Pipeline"),
                              std::pair("collectives", "Collectives"), std::pair("layers", "Layers"),
                              std::pair("tensors", "Tensors")})
        if (page.pipeline || id != std::string_view("pipeline"))
          html.tag("a", {{"href", std::string("#") + id}}, name);
    });
  });
}

} // namespace shoal::report
