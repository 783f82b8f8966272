// A simulated timeline as that of a run, whose page and trace it shares.
#include "Write.h"

#include "shoal/Report/TimelinePage.h"

#include "shoal-rt/timeline_page.h"

#include "llvm/ADT/STLExtras.h"

namespace shoal::report {

static char letterOf(pipe::ActionKind kind) { return "FBIW??NU"[unsigned(kind)]; }

rt::Timeline toTimeline(const pipe::Timeline &timeline) {
  const pipe::Shape &shape = timeline.shape;
  rt::Timeline made;
  made.title = timeline.title;
  made.note = timeline.note;
  made.unit = timeline.unit;
  made.facts = timeline.facts;
  made.facts.insert(made.facts.end(),
                    {"a line of " + rt::showNumberOf(shape.ranks, "rank"),
                     rt::showCount(shape.microbatches) + (shape.microbatches == 1 ? " micro-batch" : " micro-batches"),
                     rt::showNumberOf(shape.chunks, "chunk") + " per rank"});
  for (auto [index, line] : llvm::enumerate(timeline.ranks)) {
    rt::TimelineRank &rank = made.ranks.emplace_back();
    rank.name = "rank " + std::to_string(index);
    for (const pipe::Span &span : line.spans)
      rank.spans.push_back({letterOf(span.kind), span.microbatch, span.stage, span.begin, span.end});
    rank.busy = line.busy;
    rank.peakStash = line.peakStash;
    rank.peakBytes = line.peakBytes;
  }
  for (const pipe::Transfer &it : timeline.transfers)
    made.transfers.push_back(
        {it.from, it.to, it.backward, it.stage, it.microbatch, uint64_t(it.bytes), it.begin, it.end});
  return made;
}

static void writeStages(Html &html, llvm::ArrayRef<PageStage> stages) {
  if (stages.empty())
    return;
  html.tag("p", {{"class", "lead"}}, "What lies in each stage, whole, however other axes cut it.");
  html.tag("div", {{"class", "card scroll"}}, [&] {
    html.tag("table", {{"class", "stages"}}, [&] {
      html.tag("thead", {}, [&] {
        html.tag("tr", {}, [&] {
          for (auto [title, style] :
               {std::pair("stage", "num"), std::pair("rank", "num"), std::pair("layers", ""),
                std::pair("parameters", "num"), std::pair("tensors", "num"), std::pair("bytes", "num")})
            html.tag("th", {{"class", style}}, title);
        });
      });
      html.tag("tbody", {}, [&] {
        for (const PageStage &it : stages)
          html.tag("tr", {}, [&] {
            html.tag("td", {{"class", "num"}}, showCount(uint64_t(it.stage)));
            html.tag("td", {{"class", "num"}}, showCount(uint64_t(it.rank)));
            html.tag("td", {}, it.tellLayers("…"));
            html.tag("td", {{"class", "num"}}, showCount(it.parameters));
            html.tag("td", {{"class", "num"}}, showCount(it.tensors));
            writeBytes(html, "td", it.bytes);
          });
      });
    });
  });
}

void writePipeline(Html &html, const Page &page) {
  if (!page.pipeline)
    return;
  rt::TimelineWriter writer(*page.pipeline, html);
  html.tag("h2", {{"id", "pipeline"}}, "Pipeline");
  bool standForMore = page.report.ranks.size() > page.pipeline->ranks.size();
  std::string ranks =
      standForMore ? "Ranks are counted along \"pipe\": each stands for all that other axes have beside it. " : "";
  html.tag("p", {{"class", "lead"}}, page.pipeline->note + " " + ranks + rt::kRanksLead);
  html.tag("div", {{"class", "card"}}, [&] { writer.writeChart(); });
  html.tag("div", {{"class", "card scroll"}}, [&] { writer.writeRanks(); });
  writeStages(html, page.stages);
}

std::string writeTimelinePage(const pipe::Timeline &timeline) { return rt::writeTimelinePage(toTimeline(timeline)); }

std::string writeChromeTrace(const pipe::Timeline &timeline, double microseconds) {
  rt::Timeline made = toTimeline(timeline);
  made.microseconds = microseconds;
  return rt::toChromeTrace(made).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

} // namespace shoal::report
