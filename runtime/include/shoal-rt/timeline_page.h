// The page of a timeline: ranks as rows, what they compute in colours, messages between them, bubbles and stashes. The
// compiler's and the run's are the same page, to be laid side by side.
#ifndef SHOAL_RT_TIMELINE_PAGE_H
#define SHOAL_RT_TIMELINE_PAGE_H

#include "shoal-rt/html.h"
#include "shoal-rt/page_style.h"
#include "shoal-rt/timeline.h"

#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace shoal::rt {

inline constexpr std::string_view kTimelineStyle = R"css(
:root { --F: #9dbcf0; --B: #8fd3b6; --I: #f3c77f; --W: #c9b5ef; --N: #eda3a0; --U: #b7bdc4; --O: #d8dbd6; --on: #14181c; --go: #2f6bd8; --back: #b3541e; }
@media (prefers-color-scheme: dark) {
  :root { --F: #7099e0; --B: #58b592; --I: #dba650; --W: #a88ce0; --N: #d97f7b; --U: #8d959e; --O: #4d545b; --on: #0d1013; --go: #7aa9ff; --back: #f0a050; }
}
.timeline { display: flex; } .timeline svg { display: block; flex: none; } .timeline .scroll { flex: 1 1 auto; min-width: 0; }
.timeline text { font: 11px system-ui, sans-serif; fill: var(--soft); font-variant-numeric: tabular-nums; }
.timeline text.rankname { fill: var(--ink); font-size: 12.5px; font-weight: 600; }
.timeline text.on { fill: var(--on); text-anchor: middle; pointer-events: none; } .timeline text.mid { text-anchor: middle; }
.F { --k: var(--F); } .B { --k: var(--B); } .I { --k: var(--I); } .W { --k: var(--W); } .N { --k: var(--N); } .U { --k: var(--U); } .O { --k: var(--O); }
.act { fill: var(--k); stroke: var(--card); stroke-width: .7; } .act.odd { fill: color-mix(in srgb, var(--k) 62%, var(--card)); }
.lane { fill: var(--fill); }
.send { stroke-width: 1.2; opacity: .75; } .go { stroke: var(--go); } .back { stroke: var(--back); stroke-dasharray: 3 2; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 12px 0 2px; font-size: 12.5px; color: var(--soft); }
.legend .swatch { background: var(--k); } .legend .swatch.odd { background: color-mix(in srgb, var(--k) 62%, var(--card)); margin-left: -5px; }
.legend svg { vertical-align: 3px; margin-right: 8px; }
.ranks td, .ranks th { white-space: nowrap; } .ranks .bar > div { background: var(--soft); } .ranks .stash .bar > div { background: var(--F); }
.ranks .wide { width: 24%; min-width: 110px; padding-left: 18px; }
.wait { fill: var(--card); opacity: .8; } .swatch.wait { background: repeating-linear-gradient(45deg, var(--k) 0 2px, var(--card) 2px 5px); }
)css";

// Draws a timeline as SVG, without scripts or anything from elsewhere.
class TimelineWriter {
public:
  TimelineWriter(const Timeline &timeline, Html &html)
      : timeline_(timeline), html_(html), scale_(timeline), makespan_(timeline.makespan()),
        start_(timeline.limits().first) {
    size_t longest = 0, most = 0; // characters of a name, spans of a rank
    double busy = 0;
    for (const TimelineRank &rank : timeline.ranks) {
      numSpans_ += rank.spans.size();
      most = std::max(most, rank.spans.size());
      longest = std::max(longest, rank.name.size());
      busy += rank.busy;
      std::set<int64_t> stages;
      for (const TimelineSpan &span : rank.spans) {
        used_.insert(span.kind);
        if (span.isPass())
          stages.insert(span.stage);
      }
      stages_.emplace_back(stages.begin(), stages.end());
      usesChunks_ |= stages.size() > 1;
      hasWaits_ |= !rank.waits.empty();
    }
    nameWidth_ = std::clamp(8.0 * double(longest) + 14, 62.0, 240.0);
    // Wide enough for the number of a micro-batch in a usual span, within what a browser scrolls well; where ranks
    // are idle most of the time, no wider than so many spans need.
    double usual = numSpans_ ? busy / double(numSpans_) : 0, wide = std::clamp(48.0 * double(most), 860.0, 16000.0);
    width_ = usual > 0 ? std::clamp(24 * makespan_ / usual, 860.0, wide) : 860;
  }

  // The parts of a page.
  void writeHead();
  void writeSummary();
  void writeChart();
  void writeRanks();

private:
  static constexpr double kRow = 24, kGap = 16, kTop = 6, kAxis = 22, kLeft = 6;
  // From so many spans on, a page would be slow: they are drawn as one shape per kind, without words.
  static constexpr size_t kMostWords = 20000;
  static constexpr std::pair<char, const char *> kLegend[] = {
      {'F', "F forward"},
      {'B', "B backward"},
      {'I', "I backward for the input"},
      {'W', "W backward for the weight"},
      {'N', "N norm over all ranks"},
      {'U', "U update"},
      {'O', "other work"},
  };

  std::string showTime(double value) const { return scale_.show(value); }
  static std::string showPercent(double part) { return showNumber(100 * part, "%.1f") + " %"; }
  double x(double time) const { return makespan_ > 0 ? kLeft + (time - start_) / makespan_ * width_ : kLeft; }
  static double y(size_t rank) { return kTop + double(rank) * (kRow + kGap); }
  double height() const { return y(timeline_.ranks.size()) + kAxis; }
  // Stages of a rank alternate.
  bool isOdd(size_t rank, const TimelineSpan &span) const {
    const std::vector<int64_t> &own = stages_[rank];
    return span.isPass() && (std::lower_bound(own.begin(), own.end(), span.stage) - own.begin()) % 2 == 1;
  }
  std::string classOf(size_t rank, const TimelineSpan &span) const {
    return std::string("act ") + span.kind + (isOdd(rank, span) ? " odd" : "");
  }
  bool hasMessages(bool backward) const {
    return std::any_of(timeline_.transfers.begin(), timeline_.transfers.end(), [&](const TimelineTransfer &it) {
      return it.backward == backward && it.isOfSchedule();
    });
  }
  bool drawsWords() const { return numSpans_ <= kMostWords; }

  void writeTile(std::string_view label, const std::string &value) {
    html_.tag("div", {{"class", "tile"}}, [&] {
      html_.tag("div", {{"class", "label"}}, label);
      html_.tag("div", {{"class", "value"}}, value);
    });
  }

  void writeAxis() {
    if (!(makespan_ > 0))
      return;
    // Ticks at 1, 2 or 5 times a power of ten, some 90 pixels apart.
    double wish = makespan_ * scale_.factor() * 90 / width_, power = std::pow(10, std::floor(std::log10(wish)));
    double step = power * (wish <= power ? 1 : wish <= 2 * power ? 2 : wish <= 5 * power ? 5 : 10) / scale_.factor();
    std::string bottom = showPoint(y(timeline_.ranks.size()) - kGap / 2);
    for (int64_t tick = 0; double(tick) * step <= makespan_ * (1 + 1e-9); ++tick) {
      std::string at = showPoint(x(start_ + double(tick) * step));
      html_.leaf("line", {{"class", "tick"}, {"x1", at}, {"x2", at}, {"y1", "0"}, {"y2", bottom}});
      html_.tag("text",
                {{"class", tick ? "mid" : "start"},
                 {"x", tick ? at : showPoint(kLeft)},
                 {"y", showPoint(height() - 8)}},
                showTime(double(tick) * step));
    }
    html_.newline();
  }

  void writeLane(size_t rank, const TimelineRank &line) {
    html_.leaf("rect", {{"class", "lane"},
                        {"x", showPoint(kLeft)},
                        {"y", showPoint(y(rank))},
                        {"width", showPoint(width_)},
                        {"height", showPoint(kRow)}});
    if (!drawsWords())
      writeShapes(rank, line);
    else
      for (const TimelineSpan &span : line.spans)
        writeSpan(rank, span);
    if (drawsWords()) {
      for (const TimelineWait &wait : line.waits)
        writeWait(rank, wait);
      for (const TimelineSpan &span : line.spans)
        writeWord(rank, span);
    }
    html_.newline();
  }

  std::string showPeriod(double begin, double end) const {
    return ": " + showTime(begin - start_) + " to " + showTime(end - start_);
  }

  void writeSpan(size_t rank, const TimelineSpan &span) {
    double left = x(span.begin), wide = x(span.end) - left;
    html_.tag("rect",
              {{"class", classOf(rank, span)},
               {"x", showPoint(left)},
               {"y", showPoint(y(rank))},
               {"width", showPoint(std::max(wide, 1.0))},
               {"height", showPoint(kRow)}},
              [&] {
                html_.tag("title", {},
                          span.name() + (span.isPass() ? " of stage " + std::to_string(span.stage) : "") +
                              showPeriod(span.begin, span.end));
              });
  }

  void writeWord(size_t rank, const TimelineSpan &span) {
    double left = x(span.begin), wide = x(span.end) - left;
    std::string word = span.microbatch >= 0 ? std::to_string(span.microbatch) : span.kind == 'O' ? "" : span.name();
    if (!word.empty() && wide >= 7.0 * double(word.size()) + 3)
      html_.tag("text", {{"class", "on"}, {"x", showPoint(left + wide / 2)}, {"y", showPoint(y(rank) + kRow / 2 + 4)}},
                word);
  }

  // In the lower part of the row, so that the action around it still shows.
  void writeWait(size_t rank, const TimelineWait &wait) {
    double left = x(wait.begin), wide = x(wait.end) - left;
    if (wide < 0.3)
      return;
    html_.tag("rect",
              {{"class", "wait"},
               {"x", showPoint(left)},
               {"y", showPoint(y(rank) + kRow / 2)},
               {"width", showPoint(wide)},
               {"height", showPoint(kRow / 2)}},
              [&] { html_.tag("title", {}, "waits for " + wait.what + showPeriod(wait.begin, wait.end)); });
  }

  void writeShapes(size_t rank, const TimelineRank &line) {
    std::vector<std::pair<std::string, std::string>> shapes; // class, path
    for (const TimelineSpan &span : line.spans) {
      std::string kind = classOf(rank, span);
      auto shape = std::find_if(shapes.begin(), shapes.end(), [&](const auto &it) { return it.first == kind; });
      if (shape == shapes.end())
        shape = shapes.insert(shape, {kind, ""});
      double left = x(span.begin);
      shape->second += "M" + showPoint(left) + " " + showPoint(y(rank)) + "h" +
                       showPoint(std::max(x(span.end) - left, 0.3)) + "v" + showPoint(kRow) + "H" + showPoint(left) +
                       "z";
    }
    for (const auto &[kind, path] : shapes)
      html_.leaf("path", {{"class", kind}, {"d", path}, {"stroke", "none"}});
  }

  void writeTransfer(const TimelineTransfer &transfer) {
    bool isDown = transfer.to > transfer.from;
    html_.tag("line",
              {{"class", transfer.backward ? "send back" : "send go"},
               {"x1", showPoint(x(transfer.begin))},
               {"y1", showPoint(y(size_t(transfer.from)) + (isDown ? kRow : 0))},
               {"x2", showPoint(x(transfer.end))},
               {"y2", showPoint(y(size_t(transfer.to)) + (isDown ? 0 : kRow))}},
              [&] {
                html_.tag("title", {},
                          transfer.name() + ", rank " + std::to_string(transfer.from) + " to rank " + std::to_string(transfer.to) +
                              (transfer.bytes ? ", " + showBytes(transfer.bytes) : "") +
                              showPeriod(transfer.begin, transfer.end));
              });
  }

  void writeLegend() {
    html_.tag("div", {{"class", "legend"}}, [&] {
      for (const auto &[kind, words] : kLegend)
        if (used_.count(kind))
          html_.tag("span", {{"class", std::string(1, kind)}}, [&] {
            html_.tag("i", {{"class", "swatch"}}, "");
            if (usesChunks_ && std::string_view("FBIW").find(kind) != std::string_view::npos)
              html_.tag("i", {{"class", "swatch odd"}}, "");
            html_.text(words);
          });
      if (usesChunks_)
        html_.tag("span", {}, "pale: chunks 1, 3, …");
      if (hasWaits_ && drawsWords())
        html_.tag("span", {{"class", "O"}}, [&] {
          html_.tag("i", {{"class", "swatch wait"}}, "");
          html_.text("lower half light: waiting");
        });
      for (bool backward : {false, true})
        if (drawsWords() && hasMessages(backward))
          html_.tag("span", {}, [&] {
            html_.tag("svg", {{"width", "22"}, {"height", "3"}}, [&] {
              html_.leaf("line", {{"class", backward ? "send back" : "send go"},
                                  {"x1", "0"},
                                  {"y1", "1.5"},
                                  {"x2", "22"},
                                  {"y2", "1.5"}});
            });
            html_.text(backward ? "cotangents" : "activations");
          });
      if (makespan_ > 0)
        html_.tag("span", {}, "100 pixels: " + showTime(100 * makespan_ / width_));
    });
  }

  void writeBar(std::string_view kind, double part) {
    html_.tag("td", {{"class", std::string(kind)}}, [&] {
      html_.tag("div", {{"class", "bar"}}, [&] {
        if (part > 0)
          html_.tag("div", {{"style", "width:" + showPoint(100 * std::min(part, 1.0)) + "%"}}, "");
      });
    });
  }

  const Timeline &timeline_;
  Html &html_;
  TimeScale scale_;
  double makespan_, start_, width_ = 0, nameWidth_ = 0;
  size_t numSpans_ = 0;
  std::set<char> used_;
  std::vector<std::vector<int64_t>> stages_; // per rank, in order
  bool usesChunks_ = false, hasWaits_ = false;
};

inline void TimelineWriter::writeHead() {
  html_.leaf("meta", {{"charset", "utf-8"}});
  html_.leaf("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  html_.leaf("meta", {{"name", "color-scheme"}, {"content", "light dark"}});
  // Whatever a name holds, the page loads and runs nothing.
  html_.leaf("meta", {{"http-equiv", "Content-Security-Policy"},
                      {"content", "default-src 'none'; style-src 'unsafe-inline'"}});
  html_.tag("title", {}, timeline_.title + " · timeline · Shoal");
  html_.tag("style", {}, [&] {
    html_.raw(kPageStyle);
    html_.raw(kTimelineStyle);
  });
}

inline void TimelineWriter::writeSummary() {
  int64_t peak = 0;
  uint64_t peakBytes = 0;
  std::optional<double> normWait;
  for (const TimelineRank &rank : timeline_.ranks) {
    peak = std::max(peak, rank.peakStash);
    peakBytes = std::max(peakBytes, rank.peakBytes);
    if (std::optional<double> wait = rank.normWait())
      normWait = std::max(normWait.value_or(0), *wait);
  }
  html_.tag("div", {{"class", "what"}}, [&] {
    html_.tag("h1", {}, timeline_.title);
    if (!timeline_.note.empty())
      html_.tag("div", {{"class", "source"}}, timeline_.note);
    html_.tag("div", {{"class", "flags"}}, [&] {
      for (const std::string &fact : timeline_.facts)
        html_.tag("span", {{"class", "flag"}}, fact);
    });
    html_.tag("div", {{"class", "tiles"}}, [&] {
      writeTile("makespan", showTime(makespan_));
      writeTile("bubble", showPercent(timeline_.bubble()));
      writeTile("peak stash", showCount(uint64_t(peak)));
      if (peakBytes)
        writeTile("stash bytes", showBytes(peakBytes));
      if (normWait)
        writeTile("longest wait for the norm", showTime(*normWait));
      uint64_t bytes = timeline_.messageBytes();
      writeTile("activations and cotangents",
                showNumberOf(timeline_.numMessages(), "message") + (bytes ? ", " + showBytes(bytes) : ""));
    });
  });
}

inline void TimelineWriter::writeChart() {
  html_.tag("div", {{"class", "timeline"}}, [&] {
    html_.tag("svg", {{"width", showPoint(nameWidth_)}, {"height", showPoint(height())}}, [&] {
      for (size_t rank = 0; rank < timeline_.ranks.size(); ++rank)
        html_.tag("text", {{"class", "rankname"}, {"x", "0"}, {"y", showPoint(y(rank) + kRow / 2 + 4)}},
                  timeline_.ranks[rank].name);
    });
    html_.tag("div", {{"class", "scroll"}}, [&] {
      html_.tag("svg",
                {{"role", "img"},
                 {"aria-label", "what each rank does over time"},
                 {"width", showPoint(width_ + 2 * kLeft + 24)},
                 {"height", showPoint(height())}},
                [&] {
                  writeAxis();
                  for (size_t rank = 0; rank < timeline_.ranks.size(); ++rank)
                    writeLane(rank, timeline_.ranks[rank]);
                  if (drawsWords())
                    for (const TimelineTransfer &transfer : timeline_.transfers)
                      writeTransfer(transfer);
                });
    });
  });
  writeLegend();
  if (!drawsWords())
    html_.tag("p", {{"class", "note"}},
              "Of more than " + showCount(kMostWords) +
                  " actions the picture names none and draws no messages; the Chrome trace has them all.");
}

inline void TimelineWriter::writeRanks() {
  int64_t peak = 1;
  bool hasBytes = false, hasNorm = false;
  for (const TimelineRank &rank : timeline_.ranks) {
    peak = std::max(peak, rank.peakStash);
    hasBytes |= rank.peakBytes != 0;
    hasNorm |= rank.normWait().has_value();
  }
  auto number = [&](std::string_view tag, const std::string &text) { html_.tag(tag, {{"class", "num"}}, text); };
  html_.tag("table", {{"class", "ranks"}}, [&] {
    html_.tag("tr", {}, [&] {
      html_.tag("th", {}, "rank");
      for (const char *name : {"busy", "own idle", "idle", "bubble"})
        number("th", name);
      html_.tag("th", {}, "");
      if (hasNorm)
        number("th", "waits for the norm");
      number("th", "peak stash");
      html_.tag("th", {}, "");
      if (hasBytes)
        number("th", "stash bytes");
    });
    for (const TimelineRank &rank : timeline_.ranks) {
      double idle = idleTime(makespan_, rank.busy), bubble = makespan_ > 0 ? idle / makespan_ : 0;
      html_.newline();
      html_.tag("tr", {}, [&] {
        html_.tag("td", {}, rank.name.starts_with("rank ") ? rank.name.substr(5) : rank.name);
        number("td", showTime(rank.busy));
        number("td", showTime(rank.ownIdle()));
        number("td", showTime(idle));
        number("td", showPercent(bubble));
        writeBar("wide", bubble);
        if (hasNorm)
          number("td", showTime(rank.normWait().value_or(0)));
        number("td", showCount(uint64_t(rank.peakStash)));
        writeBar("wide stash", double(rank.peakStash) / double(peak));
        if (hasBytes)
          writeBytes(html_, "td", rank.peakBytes);
      });
    }
  });
}

inline constexpr const char *kRanksLead =
    "Own idle time lies between a rank's first start and its last end. The bubble is all of its idle time, as part of the "
    "makespan. The stash is what it keeps for backward passes: micro-batches, times chunks, from F until B or W.";

inline std::string writeTimelinePage(const Timeline &timeline) {
  Html html;
  TimelineWriter writer(timeline, html);
  html.raw("<!DOCTYPE html>\n");
  html.tag("html", {{"lang", "en"}}, [&] {
    html.tag("head", {}, [&] { writer.writeHead(); });
    html.newline();
    html.tag("body", {}, [&] {
      html.tag("header", {}, [&] { html.tag("div", {{"class", "wide"}}, [&] { writer.writeSummary(); }); });
      html.tag("main", {}, [&] {
        html.tag("div", {{"class", "card"}}, [&] { writer.writeChart(); });
        html.tag("h2", {}, "Ranks");
        html.tag("p", {{"class", "lead"}}, kRanksLead);
        html.tag("div", {{"class", "card scroll"}}, [&] { writer.writeRanks(); });
      });
    });
  });
  html.newline();
  return html.take();
}

} // namespace shoal::rt

#endif // SHOAL_RT_TIMELINE_PAGE_H
