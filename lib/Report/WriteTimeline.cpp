// Draws a timeline as SVG, in the style of the report's page.
#include "Write.h"

#include "shoal/Report/TimelinePage.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

namespace shoal::report {

namespace {

using pipe::ActionKind, pipe::RankTimeline, pipe::Span, pipe::Timeline, pipe::Transfer;

constexpr llvm::StringLiteral kTimelineStyle = R"css(
:root { --F: #9dbcf0; --B: #8fd3b6; --I: #f3c77f; --W: #c9b5ef; --N: #eda3a0; --U: #b7bdc4; --on: #14181c; --go: #2f6bd8; --back: #b3541e; }
@media (prefers-color-scheme: dark) {
  :root { --F: #7099e0; --B: #58b592; --I: #dba650; --W: #a88ce0; --N: #d97f7b; --U: #8d959e; --on: #0d1013; --go: #7aa9ff; --back: #f0a050; }
}
.timeline { display: flex; } .timeline svg { display: block; flex: none; } .timeline .scroll { flex: 1 1 auto; min-width: 0; }
.timeline text { font: 11px system-ui, sans-serif; fill: var(--soft); font-variant-numeric: tabular-nums; }
.timeline text.rankname { fill: var(--ink); font-size: 12.5px; font-weight: 600; }
.timeline text.on { fill: var(--on); text-anchor: middle; pointer-events: none; } .timeline text.mid { text-anchor: middle; }
.F { --k: var(--F); } .B { --k: var(--B); } .I { --k: var(--I); } .W { --k: var(--W); } .N { --k: var(--N); } .U { --k: var(--U); }
.act { fill: var(--k); stroke: var(--card); stroke-width: .7; } .act.odd { fill: color-mix(in srgb, var(--k) 62%, var(--card)); }
.lane { fill: var(--fill); }
.send { stroke-width: 1.2; opacity: .75; } .go { stroke: var(--go); } .back { stroke: var(--back); stroke-dasharray: 3 2; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 12px 0 2px; font-size: 12.5px; color: var(--soft); }
.legend .swatch { background: var(--k); } .legend .swatch.odd { background: color-mix(in srgb, var(--k) 62%, var(--card)); margin-left: -5px; }
.legend svg { vertical-align: 3px; margin-right: 8px; }
.ranks td, .ranks th { white-space: nowrap; } .ranks .bar > div { background: var(--soft); } .ranks .stash .bar > div { background: var(--F); }
.ranks .wide { width: 24%; min-width: 110px; padding-left: 18px; }
)css";

constexpr double kRow = 24, kGap = 16, kTop = 6, kAxis = 22, kLeft = 6;
// From so many spans on, a page would be slow: they are drawn as one shape per kind, without words.
constexpr size_t kMostWords = 20000;

constexpr char kLetters[] = "FBIW??NU";
char letterOf(ActionKind kind) { return kLetters[unsigned(kind)]; }

constexpr std::pair<ActionKind, llvm::StringLiteral> kLegend[] = {
    {ActionKind::Forward, "forward"},
    {ActionKind::Backward, "backward"},
    {ActionKind::BackwardInput, "backward for the input"},
    {ActionKind::BackwardWeight, "backward for the weight"},
    {ActionKind::Norm, "norm over all ranks"},
    {ActionKind::Update, "update"},
};

std::string showNumber(double value, const char *form = "%.4g") {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(form, value);
  return text;
}

std::string showPercent(double part) { return showNumber(100 * part, "%.1f") + " %"; }

class TimelineWriter {
public:
  explicit TimelineWriter(const Timeline &timeline) : timeline(timeline), makespan(timeline.getMakespan()) {
    bool isFirst = true;
    for (const RankTimeline &rank : timeline.ranks) {
      numSpans += rank.spans.size();
      for (const Span &span : rank.spans) {
        start = isFirst ? span.begin : std::min(start, span.begin);
        isFirst = false;
        used[unsigned(span.kind)] = true;
        usesChunks |= isOdd(span);
      }
    }
    // Wide enough for the number of a micro-batch in a usual span, within what a browser scrolls well.
    double busy = 0;
    for (const RankTimeline &rank : timeline.ranks)
      busy += rank.busy;
    double usual = numSpans ? busy / numSpans : 0;
    width = usual > 0 ? std::clamp(24 * makespan / usual, 860.0, 16000.0) : 860;
  }

  std::string take() {
    html.raw("<!DOCTYPE html>\n");
    html.tag("html", {{"lang", "en"}}, [&] {
      html.tag("head", {}, [&] { writeHead(); });
      html.newline();
      html.tag("body", {}, [&] {
        html.tag("header", {}, [&] { html.tag("div", {{"class", "wide"}}, [&] { writeSummary(); }); });
        html.tag("main", {}, [&] {
          html.tag("div", {{"class", "card"}}, [&] { writeChart(); });
          html.tag("h2", {}, "Ranks");
          html.tag("p", {{"class", "lead"}},
                   "Own idle time lies between a rank's first start and its last end. The bubble is all of its idle "
                   "time, as part of "
                   "the makespan. The stash is what it keeps for backward passes: micro-batches, times chunks, from F "
                   "until B or W.");
          html.tag("div", {{"class", "card scroll"}}, [&] { writeRanks(); });
        });
      });
    });
    html.newline();
    return html.take();
  }

private:
  std::string showTime(double value) const {
    return showNumber(value) + (timeline.unit.empty() ? "" : " " + timeline.unit);
  }
  double x(double time) const { return makespan > 0 ? kLeft + (time - start) / makespan * width : kLeft; }
  static double y(size_t rank) { return kTop + rank * (kRow + kGap); }
  double getHeight() const { return y(timeline.ranks.size()) + kAxis; }
  bool isOdd(const Span &span) const { return span.stage >= 0 && timeline.shape.getChunk(span.stage) % 2 == 1; }
  std::string classOf(const Span &span) const {
    return std::string("act ") + letterOf(span.kind) + (isOdd(span) ? " odd" : "");
  }

  void writeHead() {
    html.leaf("meta", {{"charset", "utf-8"}});
    html.leaf("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
    html.leaf("meta", {{"name", "color-scheme"}, {"content", "light dark"}});
    // Whatever a name holds, the page loads and runs nothing.
    html.leaf("meta", {{"http-equiv", "Content-Security-Policy"},
                       {"content", "default-src 'none'; style-src 'unsafe-inline'"}});
    html.tag("title", {}, timeline.title + " · timeline · Shoal");
    html.tag("style", {}, [&] {
      html.raw(getStyle());
      html.raw(kTimelineStyle);
    });
  }

  void writeTile(llvm::StringRef label, const std::string &value) {
    html.tag("div", {{"class", "tile"}}, [&] {
      html.tag("div", {{"class", "label"}}, label);
      html.tag("div", {{"class", "value"}}, value);
    });
  }

  void writeSummary() {
    const pipe::Shape &shape = timeline.shape;
    int64_t peak = 0, peakBytes = 0;
    for (const RankTimeline &rank : timeline.ranks) {
      peak = std::max(peak, rank.peakStash);
      peakBytes = std::max(peakBytes, rank.peakBytes);
    }
    html.tag("div", {{"class", "what"}}, [&] {
      html.tag("h1", {}, timeline.title);
      html.tag("div", {{"class", "flags"}}, [&] {
        auto flag = [&](const std::string &text) { html.tag("span", {{"class", "flag"}}, text); };
        flag(showNumberOf(shape.ranks, "rank"));
        flag(showCount(shape.microbatches) + (shape.microbatches == 1 ? " micro-batch" : " micro-batches"));
        flag(showNumberOf(shape.chunks, "chunk") + " per rank");
      });
      html.tag("div", {{"class", "tiles"}}, [&] {
        writeTile("makespan", showTime(makespan));
        writeTile("bubble", showPercent(timeline.getBubble()));
        writeTile("peak stash", showCount(peak));
        if (peakBytes)
          writeTile("stash bytes", showBytes(peakBytes));
        writeTile("messages", showCount(timeline.transfers.size()));
        if (int64_t bytes = timeline.getTransferBytes())
          writeTile("sent", showBytes(bytes));
      });
    });
  }

  void writeChart() {
    html.tag("div", {{"class", "timeline"}}, [&] {
      html.tag("svg", {{"width", "62"}, {"height", showPoint(getHeight())}}, [&] {
        for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
          html.tag("text", {{"class", "rankname"}, {"x", "0"}, {"y", showPoint(y(rank) + kRow / 2 + 4)}},
                   "rank " + std::to_string(rank));
      });
      html.tag("div", {{"class", "scroll"}}, [&] {
        html.tag("svg",
                 {{"role", "img"},
                  {"aria-label", "what each rank does over time"},
                  {"width", showPoint(width + 2 * kLeft + 24)},
                  {"height", showPoint(getHeight())}},
                 [&] {
                   writeAxis();
                   for (auto [rank, line] : llvm::enumerate(timeline.ranks))
                     writeLane(rank, line);
                   for (const Transfer &transfer : timeline.transfers)
                     writeTransfer(transfer);
                 });
      });
    });
    writeLegend();
    if (numSpans > kMostWords)
      html.tag("p", {{"class", "note"}},
               "Of more than " + showCount(kMostWords) +
                   " actions the picture names none and draws no messages; the Chrome trace has them all.");
  }

  void writeAxis() {
    if (!(makespan > 0))
      return;
    // Ticks at 1, 2 or 5 times a power of ten, some 90 pixels apart.
    double wish = makespan * 90 / width, power = std::pow(10, std::floor(std::log10(wish)));
    double step = power * (wish <= power ? 1 : wish <= 2 * power ? 2 : wish <= 5 * power ? 5 : 10);
    std::string bottom = showPoint(y(timeline.ranks.size()) - kGap / 2);
    for (int64_t tick = 0; tick * step <= makespan * (1 + 1e-9); ++tick) {
      std::string at = showPoint(x(start + tick * step));
      html.leaf("line", {{"class", "tick"}, {"x1", at}, {"x2", at}, {"y1", "0"}, {"y2", bottom}});
      html.tag(
          "text",
          {{"class", tick ? "mid" : "start"}, {"x", tick ? at : showPoint(kLeft)}, {"y", showPoint(getHeight() - 8)}},
          showTime(tick * step));
    }
    html.newline();
  }

  void writeLane(size_t rank, const RankTimeline &line) {
    html.leaf("rect", {{"class", "lane"},
                       {"x", showPoint(kLeft)},
                       {"y", showPoint(y(rank))},
                       {"width", showPoint(width)},
                       {"height", showPoint(kRow)}});
    if (numSpans > kMostWords)
      writeShapes(rank, line);
    else
      for (const Span &span : line.spans)
        writeSpan(rank, span);
    html.newline();
  }

  void writeSpan(size_t rank, const Span &span) {
    pipe::Action action{span.kind, false, false, span.stage, span.microbatch, -1};
    std::string name = format(action, timeline.shape, rank);
    double left = x(span.begin), wide = x(span.end) - left;
    html.tag("rect",
             {{"class", classOf(span)},
              {"x", showPoint(left)},
              {"y", showPoint(y(rank))},
              {"width", showPoint(std::max(wide, 1.0))},
              {"height", showPoint(kRow)}},
             [&] {
               html.tag("title", {},
                        name + (span.stage >= 0 ? " of stage " + std::to_string(span.stage) : "") + ": " +
                            showTime(span.begin - start) + " to " + showTime(span.end - start));
             });
    std::string word = span.microbatch >= 0 ? std::to_string(span.microbatch) : name;
    if (wide >= 7.0 * word.size() + 3)
      html.tag("text", {{"class", "on"}, {"x", showPoint(left + wide / 2)}, {"y", showPoint(y(rank) + kRow / 2 + 4)}},
               word);
  }

  void writeShapes(size_t rank, const RankTimeline &line) {
    llvm::SmallVector<std::pair<std::string, std::string>> shapes; // class, path
    for (const Span &span : line.spans) {
      std::string kind = classOf(span);
      auto *shape = llvm::find_if(shapes, [&](const auto &it) { return it.first == kind; });
      if (shape == shapes.end())
        shape = &shapes.emplace_back(kind, "");
      double left = x(span.begin);
      shape->second += "M" + showPoint(left) + " " + showPoint(y(rank)) + "h" +
                       showPoint(std::max(x(span.end) - left, 0.3)) + "v" + showPoint(kRow) + "H" + showPoint(left) +
                       "z";
    }
    for (const auto &[kind, path] : shapes)
      html.leaf("path", {{"class", kind}, {"d", path}, {"stroke", "none"}});
  }

  void writeTransfer(const Transfer &transfer) {
    if (numSpans > kMostWords)
      return;
    bool isDown = transfer.to > transfer.from;
    html.tag("line",
             {{"class", transfer.backward ? "send back" : "send go"},
              {"x1", showPoint(x(transfer.begin))},
              {"y1", showPoint(y(transfer.from) + (isDown ? kRow : 0))},
              {"x2", showPoint(x(transfer.end))},
              {"y2", showPoint(y(transfer.to) + (isDown ? 0 : kRow))}},
             [&] {
               html.tag("title", {},
                        std::string(transfer.backward ? "cotangents" : "activations") + " of micro-batch " +
                            std::to_string(transfer.microbatch) + " from stage " + std::to_string(transfer.stage) +
                            ", rank " + std::to_string(transfer.from) + " to rank " + std::to_string(transfer.to) +
                            (transfer.bytes ? ", " + showBytes(transfer.bytes) : ""));
             });
  }

  void writeLegend() {
    html.tag("div", {{"class", "legend"}}, [&] {
      for (const auto &[kind, words] : kLegend)
        if (used[unsigned(kind)])
          html.tag("span", {{"class", std::string(1, letterOf(kind))}}, [&] {
            html.tag("i", {{"class", "swatch"}}, "");
            if (usesChunks && kind < ActionKind::Send)
              html.tag("i", {{"class", "swatch odd"}}, "");
            html.text(std::string(1, letterOf(kind)) + " " + words.str());
          });
      if (usesChunks)
        html.tag("span", {}, "pale: chunks 1, 3, …");
      if (!timeline.transfers.empty() && numSpans <= kMostWords)
        for (bool backward : {false, true})
          html.tag("span", {}, [&] {
            html.tag("svg", {{"width", "22"}, {"height", "3"}}, [&] {
              html.leaf("line", {{"class", backward ? "send back" : "send go"},
                                 {"x1", "0"},
                                 {"y1", "1.5"},
                                 {"x2", "22"},
                                 {"y2", "1.5"}});
            });
            html.text(backward ? "cotangents" : "activations");
          });
    });
  }

  void writeBar(llvm::StringRef kind, double part) {
    html.tag("td", {{"class", kind.str()}}, [&] {
      html.tag("div", {{"class", "bar"}}, [&] {
        html.tag("div", {{"style", "width:" + showPoint(100 * std::clamp(part, 0.0, 1.0)) + "%"}}, "");
      });
    });
  }

  void writeRanks() {
    int64_t peak = 1;
    bool hasBytes = false;
    for (const RankTimeline &rank : timeline.ranks) {
      peak = std::max(peak, rank.peakStash);
      hasBytes |= rank.peakBytes != 0;
    }
    auto number = [&](llvm::StringRef tag, const std::string &text) { html.tag(tag, {{"class", "num"}}, text); };
    html.tag("table", {{"class", "ranks"}}, [&] {
      html.tag("tr", {}, [&] {
        html.tag("th", {}, "rank");
        for (llvm::StringRef name : {"busy", "own idle", "idle", "bubble"})
          number("th", name.str());
        html.tag("th", {}, "");
        number("th", "peak stash");
        html.tag("th", {}, "");
        if (hasBytes)
          number("th", "stash bytes");
      });
      for (auto [index, rank] : llvm::enumerate(timeline.ranks)) {
        double idle = makespan - rank.busy, bubble = makespan > 0 ? std::max(0.0, idle / makespan) : 0;
        html.newline();
        html.tag("tr", {}, [&] {
          html.tag("td", {}, std::to_string(index));
          number("td", showTime(rank.busy));
          number("td", showTime(rank.getIdle()));
          number("td", showTime(idle));
          number("td", showPercent(bubble));
          writeBar("wide", bubble);
          number("td", showCount(rank.peakStash));
          writeBar("wide stash", double(rank.peakStash) / peak);
          if (hasBytes)
            writeBytes(html, "td", rank.peakBytes);
        });
      }
    });
  }

  const Timeline &timeline;
  double makespan, start = 0, width = 0;
  size_t numSpans = 0;
  bool used[8] = {}, usesChunks = false;
  Html html;
};

} // namespace

std::string writeTimelinePage(const Timeline &timeline) { return TimelineWriter(timeline).take(); }

} // namespace shoal::report
