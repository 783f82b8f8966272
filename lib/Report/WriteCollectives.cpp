// Why ranks talk: totals by kind and axis, then every collective with what asked for it and what would remove it.
#include "Write.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace shoal::report {

static std::string showShare(uint64_t part, uint64_t whole) {
  return whole ? showPoint(100.0 * double(part) / double(whole)) : "0";
}

/// A bar of a share of the step's bytes, in the colour of the axis.
static void writeBar(Html &html, llvm::ArrayRef<std::string> axes, uint64_t part, uint64_t whole) {
  html.tag("div", {{"class", "bar"}, {"title", showShare(part, whole) + " % of what is sent"}}, [&] {
    html.tag("div", {{"class", axes.empty() ? "ax" : getAxisClass(axes.front())},
                     {"style", "width:" + showShare(part, whole) + "%"}}, "");
  });
}

/// The lines of the report, which `shoalc --report FILE.json` writes and the program counts.
static void writeTotals(Html &html, const rt::RankReport &rank, uint64_t sent, size_t ranks) {
  html.tag("div", {{"class", "card scroll"}}, [&] {
    html.tag("table", {{"class", "totals"}}, [&] {
      html.tag("thead", {}, [&] {
        html.tag("tr", {}, [&] {
          for (auto [title, style] : {std::pair("kind", ""), std::pair("axes", ""), std::pair("count", "num"),
                                      std::pair("sent per step", "num"), std::pair("share", "share")})
            html.tag("th", {{"class", style}}, title);
        });
      });
      html.tag("tbody", {}, [&] {
        for (const rt::CollectiveReport &line : rank.collectives) {
          html.tag("tr", {{"class", "total"}}, [&] {
            html.tag("td", {}, line.kind);
            html.tag("td", {}, [&] { writeAxes(html, line.axes); });
            html.tag("td", {{"class", "num"}}, showCount(line.count));
            writeBytes(html, "td", line.bytes);
            html.tag("td", {{"class", "share"}}, [&] { writeBar(html, line.axes, line.bytes, sent); });
          });
          html.newline();
        }
      });
    });
    if (ranks > 1)
      html.tag("p", {{"class", "note"}}, "Sent by rank " + std::to_string(rank.rank) +
                                             ", of all ranks one that sends the most, on a ring.");
  });
}

static void writeFact(Html &html, llvm::StringRef name, llvm::StringRef value) {
  if (value.empty())
    return;
  html.tag("dt", {}, name);
  html.tag("dd", {}, value);
}

/// One line each, cut where nobody reads on.
static void writeAskers(Html &html, llvm::ArrayRef<PageAsker> askers) {
  constexpr size_t kMost = 64;
  html.tag("dt", {}, "asked by");
  html.tag("dd", {}, [&] {
    html.tag("details", {}, [&] {
      html.tag("summary", {}, askers.front().asker + ", and " + showCount(askers.size() - 1) + " like it");
      html.tag("ol", {{"class", "askers"}}, [&] {
        for (const PageAsker &asker : askers.take_front(kMost)) {
          html.tag("li", {}, [&] {
            html.text(asker.asker);
            html.tag("div", {{"class", "note"}}, "overlaps with " + asker.overlap);
          });
          html.newline();
        }
        if (askers.size() > kMost)
          html.tag("li", {{"class", "note"}},
                   "and " + showCount(askers.size() - kMost) + " more, which shoalc --explain prints");
      });
    });
  });
}

static void writeCollective(Html &html, const PageCollective &collective, uint64_t sent) {
  uint64_t bytes = collective.bytes;
  html.tag("article", {{"class", "collective"}}, [&] {
    html.tag("header", {}, [&] {
      html.tag("b", {}, collective.kind);
      writeAxes(html, collective.axes);
      if (!collective.part.empty() || !collective.layers.empty())
        html.tag("span", {},
                 "in " + collective.part + (collective.part.empty() || collective.layers.empty() ? "" : " of ") +
                     collective.layers);
      if (!collective.places.empty())
        html.tag("span", {}, "at " + collective.places);
      if (collective.count > 1)
        html.tag("span", {{"class", "badge"}}, "×" + showCount(collective.count));
      html.tag("span", {{"class", "shape"}}, collective.type);
      writeBytes(html, "strong", bytes);
      writeBar(html, collective.axes, bytes, sent);
    });
    html.tag("dl", {}, [&] {
      if (collective.askers.size() > 1)
        writeAskers(html, collective.askers);
      else if (!collective.askers.empty())
        writeFact(html, "asked by", collective.askers.front().asker);
      writeFact(html, "because of", collective.cause);
      writeFact(html, collective.hidden.empty() ? "layout" : "in a ring", collective.change);
      if (collective.askers.size() == 1)
        writeFact(html, "overlaps with", collective.askers.front().overlap);
      writeFact(html, "hidden", collective.hidden);
      writeFact(html, "removed by", collective.removal);
    });
  });
  html.newline();
}

void writeCollectives(Html &html, const Page &page) {
  const rt::RankReport *rank = findBusiest(page.report);
  html.tag("section", {{"id", "collectives"}}, [&] {
    html.tag("h2", {}, "Collectives");
    if (!rank || rank->collectives.empty()) {
      html.tag("p", {{"class", "lead"}}, "No rank talks to another one in a step.");
      return;
    }
    uint64_t sent = getSentBytes(*rank);
    writeTotals(html, *rank, sent, page.report.ranks.size());
    if (page.collectives.empty())
      return;
    html.tag("h3", {}, "Why each is there");
    if (!page.assumptions.empty())
      html.tag("p", {{"class", "note"}},
               std::string(1, llvm::toUpper(page.assumptions[0])) + page.assumptions.substr(1) + ".");
    std::vector<const PageCollective *> order;
    for (const PageCollective &collective : page.collectives)
      order.push_back(&collective);
    llvm::stable_sort(order, [](const PageCollective *a, const PageCollective *b) {
      return a->bytes > b->bytes;
    });
    html.tag("div", {{"class", "card"}}, [&] {
      for (const PageCollective *collective : order)
        writeCollective(html, *collective, sent);
    });
  });
}

} // namespace shoal::report
