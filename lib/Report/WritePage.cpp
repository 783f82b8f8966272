// The frame of the page, and what its parts share.
#include "Write.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"

#include "shoal-rt/timeline_page.h"

namespace shoal::report {

std::string getAxisClass(llvm::StringRef axis) {
  llvm::StringRef origin = dist::getAxisOrigin(axis);
  for (const dist::KnownAxis &known : dist::getKnownAxes())
    if (known.name == origin)
      return "ax " + known.name.str();
  // Names of the user's own get the colours that no known axis has, by their letters: the same in every run.
  unsigned sum = 0;
  for (char c : origin)
    sum = sum * 31 + static_cast<unsigned char>(c);
  return "ax free" + std::to_string(sum % kNumFreeColours);
}

void writeAxis(Html &html, llvm::StringRef axis, llvm::StringRef more) {
  html.tag("span", {{"class", getAxisClass(axis)}}, axis.str() + more.str());
}

void writeAxes(Html &html, llvm::ArrayRef<std::string> axes) {
  for (const std::string &axis : axes)
    writeAxis(html, axis);
}

uint64_t getSentBytes(const rt::RankReport &rank) {
  uint64_t sent = 0;
  for (const rt::CollectiveReport &line : rank.collectives)
    sent += line.bytes;
  return sent;
}

const rt::RankReport *findBusiest(const rt::Report &report) {
  const rt::RankReport *busiest = nullptr;
  for (const rt::RankReport &rank : report.ranks)
    if (!busiest || getSentBytes(rank) > getSentBytes(*busiest))
      busiest = &rank;
  return busiest;
}

std::string writeHtml(const Page &page) {
  Html html;
  html.raw("<!DOCTYPE html>\n");
  html.tag("html", {{"lang", "en"}}, [&] {
    html.tag("head", {}, [&] {
      html.leaf("meta", {{"charset", "utf-8"}});
      html.leaf("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
      html.leaf("meta", {{"name", "color-scheme"}, {"content", "light dark"}});
      // Whatever a name holds, the page loads nothing.
      html.leaf("meta", {{"http-equiv", "Content-Security-Policy"},
                         {"content", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"}});
      html.tag("title", {}, page.report.program + " · Shoal");
      html.tag("style", {}, [&] {
        html.raw(getStyle());
        if (page.pipeline)
          html.raw(rt::kTimelineStyle);
      });
    });
    html.newline();
    html.tag("body", {}, [&] {
      writeHead(html, page);
      html.tag("main", {}, [&] {
        writeMemory(html, page);
        writePipeline(html, page);
        writeCollectives(html, page);
        writeLayers(html, page);
        writeTensors(html, page);
      });
      html.tag("script", {}, [&] { html.raw(getScript()); });
    });
  });
  html.newline();
  return html.take();
}

} // namespace shoal::report
