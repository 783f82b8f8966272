// Whatever a name holds, it is text on the page; numbers as people read them.
#include "Write.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"

#include "gtest/gtest.h"

#include <set>

using namespace shoal::report;

namespace {

TEST(Html, EscapesWhatMeansSomethingToABrowser) {
  EXPECT_EQ(escapeHtml("<script>alert(\"1\")</script> & 'it'"),
            "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;it&#39;");
  EXPECT_EQ(escapeHtml("8×256 f32\n"), "8×256 f32\n");
}

TEST(Html, ReplacesWhatIsNoText) {
  EXPECT_EQ(escapeHtml(llvm::StringRef("a\0b\x1b\x7f", 5)), "a\uFFFDb\uFFFD\uFFFD");
  EXPECT_EQ(escapeHtml("\xff<"), "\uFFFD&lt;");
}

TEST(Html, ClosesItsElements) {
  Html html;
  html.tag("p", {{"title", "a\"b"}}, [&] {
    html.tag("b", {}, "1 < 2");
    html.leaf("line", {{"x1", "0"}});
  });
  EXPECT_EQ(html.take(), "<p title=\"a&quot;b\"><b>1 &lt; 2</b><line x1=\"0\"/></p>");
}

TEST(Html, ShowsNumbersInThreeDigits) {
  EXPECT_EQ(showBytes(0), "0 B");
  EXPECT_EQ(showBytes(999), "999 B");
  EXPECT_EQ(showBytes(1024), "1 KiB");
  EXPECT_EQ(showBytes(1536), "1.5 KiB");
  EXPECT_EQ(showBytes(1047552), "1 MiB"); // 1023 KiB have four
  EXPECT_EQ(showBytes(uint64_t(157) << 30), "157 GiB");
  EXPECT_EQ(showBytes(~uint64_t(0)), "16 EiB");
  EXPECT_EQ(showCount(0), "0");
  EXPECT_EQ(showCount(999), "999");
  EXPECT_EQ(showCount(1437226), "1,437,226");
  EXPECT_EQ(showAmount(9610), "9,610");
  EXPECT_EQ(showAmount(124439808), "124M");
  EXPECT_EQ(showAmount(70553706496), "70.6B");
  EXPECT_EQ(showPoint(-0.01), "0");
  EXPECT_EQ(showPoint(2.26), "2.3");
  EXPECT_EQ(showNumberOf(1, "tensor"), "1 tensor");
  EXPECT_EQ(showNumberOf(1200, "tensor"), "1,200 tensors");
}

/// A class without a rule has no colour, which no browser tells.
TEST(Html, EveryAxisHasAColour) {
  const std::string style = getStyle();
  auto expectRule = [&](llvm::StringRef classes, const std::string &colour) {
    EXPECT_TRUE(llvm::StringRef(style).contains("." + classes.str().replace(classes.find(' '), 1, ".") + " { --axis: var(--" +
                                    colour + "); }"))
        << classes.str();
    EXPECT_EQ(llvm::StringRef(style).count("--" + colour + ": #"), 2u) << colour; // in light and in dark
  };
  for (const shoal::dist::KnownAxis &axis : shoal::dist::getKnownAxes()) {
    EXPECT_EQ(getAxisClass(axis.name), "ax " + axis.name.str());
    EXPECT_EQ(getAxisClass(axis.name.str() + ".1"), "ax " + axis.name.str());
    expectRule(getAxisClass(axis.name), axis.name.str());
  }
  std::set<std::string> free;
  for (char letter = 'a'; letter <= 'z'; ++letter)
    free.insert(getAxisClass(llvm::StringRef(&letter, 1)));
  EXPECT_EQ(free.size(), kNumFreeColours);
  for (llvm::StringRef classes : free)
    expectRule(classes, classes.drop_front(3).str());
}

/// The chart says where its plot lies; the script has no numbers of its own.
TEST(Html, TheScriptReadsTheChart) {
  Page page;
  page.rows = {{"a", false, {}, {8, 0, 0, 0, 0}}};
  page.stepRows = 1;
  page.arena = 64;
  std::string html = writeHtml(page);
  auto find = [&](const std::string &before) {
    size_t at = html.find(before);
    EXPECT_NE(at, std::string::npos) << before;
    at = std::min(at + before.size(), html.size());
    return html.substr(at, html.find_first_of(" \"", at) - at);
  };
  for (const std::string &number : {find("viewBox=\"0 0 "), find("data-left=\""), find("data-width=\"")}) {
    EXPECT_GE(number.size(), 2u);
    EXPECT_FALSE(getScript().contains(number)) << number;
  }
  // The plot's frame is drawn where the chart says.
  std::string left = find("data-left=\"");
  EXPECT_EQ(find("<line class=\"arena\" x1=\""), left);
  EXPECT_EQ(find("<line class=\"arena\" x1=\"" + left + "\" x2=\""),
            std::to_string(std::stoi(left) + std::stoi(find("data-width=\""))));
  for (const char *read : {"chart.dataset.left", "chart.dataset.width", "chart.viewBox.baseVal.width"})
    EXPECT_TRUE(getScript().contains(read)) << read;
}

/// Every text of a page that comes from a model.
TEST(Html, NoNameOfAModelIsMarkup) {
  const std::string hostile = "</script></title><img src=x onerror=alert(1)>\"'&";
  Page page;
  page.source = page.mode = hostile;
  page.flags = {hostile};
  page.report.program = hostile;
  page.report.axes = {{hostile, 1}, {"data", 2}};
  for (uint64_t rank : {0, 1})
    page.report.ranks.push_back({rank, {{hostile, 0}, {"data", rank}}, {}, {{hostile, {hostile}, 1, 8}}, {}, {}, {}});
  PageOp op{hostile, hostile, hostile, hostile, {hostile}, true, false, 2};
  page.layers = {{{hostile, hostile}, hostile, {op}, {op}, {op}}};
  page.tensors = {{hostile, hostile, hostile, {{4, 2, 2, {hostile}}}, {4}, {hostile}, {hostile}, 2, hostile, 8, 2}};
  page.collectives = {
      {hostile, {hostile}, 2, hostile, 8, 2, hostile, hostile, hostile, hostile, hostile, {{hostile, hostile}}},
      {hostile, {}, 2, hostile, 8, 2, "", "", "", "", "", {{hostile, hostile}, {hostile, hostile}}}};
  page.rows = {{hostile, true, {hostile}, {8, 8, 8, 8, 8}}};
  page.rowsOf = hostile;
  page.pipeline.emplace();
  page.pipeline->title = page.pipeline->note = hostile;
  page.stages = {{0, 0, {hostile}, 2, 8, 8}};
  page.stepRows = 1;
  page.arena = 64;
  page.held = {{PageClass::Grads, hostile, hostile, hostile, 8, 2}};
  std::string html = writeHtml(page);
  llvm::StringRef text = html;
  EXPECT_FALSE(text.contains("<img"));
  EXPECT_EQ(text.count("</script>"), 1u); // the page's own
  EXPECT_EQ(text.count("</title>"), 1u + page.report.ranks.size()); // and those of the drawn ranks
  EXPECT_GT(text.count("&lt;img src=x"), 30u);
}

} // namespace
