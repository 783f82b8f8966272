// Memory over the step: the arena row by row, stacked by class, with the row that needs the most.
#include "Write.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <nlohmann/json.hpp>

namespace shoal::report {

namespace {

constexpr llvm::StringLiteral kClassNames[kNumPageClasses] = {"parameters", "optimizer state", "gradients",
                                                              "activations", "workspace"};

/// Neighbouring rows as one column, which stands for the row of them that needs the most.
struct Column {
  size_t row;          // that stands for it
  std::string traffic; // the colour of a collective in it, as a class
};

class Chart {
public:
  Chart(Html &html, const Page &page);
  void write();

private:
  static constexpr double kLeft = 80, kTop = 26, kWidth = 1000, kHeight = 250, kTraffic = 10;
  // With what is written right of the plot and below it.
  static constexpr double kAllWidth = kLeft + kWidth + 8, kAllHeight = kTop + kHeight + kTraffic + 32;

  double xOf(size_t column) const { return kLeft + kWidth * double(column) / double(columns.size()); }
  double yOf(double bytes) const { return kTop + kHeight * (1 - bytes / double(top)); }
  void writeTicks();
  void writeArea(size_t storage);
  void writeTraffic();
  void writeGaps();
  void writePeak();
  std::string describeRows() const;

  Html &html;
  const Page &page;
  std::vector<Column> columns;
  size_t stepColumns = 0, peak;
  uint64_t top; // of the scale
};

} // namespace

Chart::Chart(Html &html, const Page &page) : html(html), page(page), peak(page.findPeak()) {
  constexpr size_t kMostColumns = 700;
  size_t perColumn = llvm::divideCeil(page.rows.size(), kMostColumns);
  auto add = [&](size_t begin, size_t end) {
    for (size_t first = begin; first < end; first += perColumn) {
      Column column{first, ""};
      for (size_t row = first; row < std::min(first + perColumn, end); ++row) {
        if (page.rows[row].getTotal() > page.rows[column.row].getTotal())
          column.row = row;
        if (const PageRow &other = page.rows[row]; other.communicates)
          column.traffic = other.axes.empty() ? "ax" : getAxisClass(other.axes.front());
      }
      columns.push_back(column);
    }
  };
  add(0, page.stepRows);
  stepColumns = columns.size();
  add(page.stepRows, page.rows.size());
  top = std::max<uint64_t>(page.arena, 1);
}

/// Lines at round numbers of bytes.
void Chart::writeTicks() {
  uint64_t step = 1;
  while (top / step > 5)
    step *= 2;
  for (uint64_t bytes = 0; bytes <= top; bytes += step) {
    html.leaf("line", {{"class", "tick"}, {"x1", showPoint(kLeft)}, {"x2", showPoint(kLeft + kWidth)},
                       {"y1", showPoint(yOf(bytes))}, {"y2", showPoint(yOf(bytes))}});
    html.tag("text", {{"class", "tick"}, {"x", showPoint(kLeft - 8)}, {"y", showPoint(yOf(bytes) + 4)}},
             showBytes(bytes));
  }
}

/// From left to right along its upper edge, and back along its lower.
void Chart::writeArea(size_t storage) {
  std::vector<double> lower, upper;
  bool isEmpty = true;
  for (const Column &column : columns) {
    const PageRow &row = page.rows[column.row];
    uint64_t below = 0;
    for (size_t i = 0; i < storage; ++i)
      below += row.bytes[i];
    lower.push_back(yOf(below));
    upper.push_back(yOf(below + row.bytes[storage]));
    isEmpty &= row.bytes[storage] == 0;
  }
  if (isEmpty)
    return;
  std::string path = "M" + showPoint(xOf(0)) + " " + showPoint(upper.front());
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0 && showPoint(upper[i]) == showPoint(upper[i - 1]))
      continue;
    path += "H" + showPoint(xOf(i)) + "V" + showPoint(upper[i]);
  }
  path += "H" + showPoint(xOf(columns.size())) + "V" + showPoint(lower.back());
  for (size_t i = columns.size(); i-- > 1;)
    if (showPoint(lower[i]) != showPoint(lower[i - 1]))
      path += "H" + showPoint(xOf(i)) + "V" + showPoint(lower[i - 1]);
  path += "H" + showPoint(xOf(0)) + "Z";
  html.leaf("path", {{"class", "mem mem" + std::to_string(storage)}, {"d", path}});
  html.newline();
}

/// When ranks talk: a mark per column below the chart, in the colour of the axis.
void Chart::writeTraffic() {
  double y = kTop + kHeight + 6;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].traffic.empty())
      continue;
    size_t end = i + 1;
    while (end < columns.size() && columns[end].traffic == columns[i].traffic)
      ++end;
    html.leaf("rect", {{"class", columns[i].traffic + " talk"}, {"x", showPoint(xOf(i))},
                       {"y", showPoint(y)}, {"width", showPoint(std::max(1.0, xOf(end) - xOf(i)))},
                       {"height", showPoint(kTraffic)}});
    i = end - 1;
  }
  if (llvm::any_of(columns, [](const Column &column) { return !column.traffic.empty(); }))
    html.tag("text", {{"class", "tick"}, {"x", showPoint(kLeft - 8)}, {"y", showPoint(y + 9)}}, "collectives");
}

/// What no row uses of the arena, from its end down.
void Chart::writeGaps() {
  double used = yOf(page.rows[peak].getTotal());
  if (used > kTop)
    html.leaf("rect", {{"class", "gaps"}, {"x", showPoint(kLeft)}, {"y", showPoint(kTop)},
                       {"width", showPoint(kWidth)}, {"height", showPoint(used - kTop)}});
  html.leaf("line", {{"class", "arena"}, {"x1", showPoint(kLeft)}, {"x2", showPoint(kLeft + kWidth)},
                     {"y1", showPoint(kTop)}, {"y2", showPoint(kTop)}});
  html.tag("text", {{"class", "arena end"}, {"x", showPoint(kLeft + kWidth)}, {"y", showPoint(kTop - 7)}},
           "arena " + showBytes(page.arena));
}

void Chart::writePeak() {
  size_t at = llvm::find_if(columns, [&](const Column &column) { return column.row == peak; }) - columns.begin();
  const PageRow &row = page.rows[peak];
  double x = (xOf(at) + xOf(at + 1)) / 2, y = yOf(row.getTotal());
  bool isRight = x > kLeft + kWidth * 0.5;
  html.leaf("line", {{"class", "peak"}, {"x1", showPoint(x)}, {"x2", showPoint(x)}, {"y1", showPoint(y)},
                     {"y2", showPoint(kTop + kHeight)}});
  html.leaf("circle", {{"class", "peak"}, {"cx", showPoint(x)}, {"cy", showPoint(y)}, {"r", "4"}});
  html.tag("text", {{"class", isRight ? "peak end" : "peak"}, {"x", showPoint(x + (isRight ? -8 : 8))},
                    {"y", showPoint(y - 7)}},
           showBytes(row.getTotal()) + " at row " + showCount(peak) + ", " + row.name);
}

/// For the script: per column its row, its name and its bytes.
std::string Chart::describeRows() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Column &column : columns) {
    const PageRow &row = page.rows[column.row];
    all.push_back({column.row, row.name, showBytes(row.getTotal())});
  }
  return rt::toText(all, -1);
}

void Chart::write() {
  html.tag("svg", {{"class", "chart"}, {"role", "img"},
                   {"viewBox", "0 0 " + showPoint(kAllWidth) + " " + showPoint(kAllHeight)},
                   {"aria-label", "bytes in use by row of the step"}, {"data-left", showPoint(kLeft)},
                   {"data-width", showPoint(kWidth)}, {"data-rows", describeRows()}}, [&] {
    html.tag("defs", {}, [&] {
      html.tag("pattern", {{"id", "hatch"}, {"width", "5"}, {"height", "5"}, {"patternUnits", "userSpaceOnUse"},
                           {"patternTransform", "rotate(45)"}},
               [&] { html.leaf("rect", {{"class", "hatch"}, {"width", "1.4"}, {"height", "5"}}); });
    });
    writeTicks();
    for (size_t storage = 0; storage < kNumPageClasses; ++storage)
      writeArea(storage);
    writeGaps();
    writeTraffic();
    double bottom = kTop + kHeight + kTraffic + 24;
    html.tag("text", {{"class", "axis"}, {"x", showPoint(kLeft)}, {"y", showPoint(bottom)}},
             "row 0 of " + showCount(page.stepRows));
    if (stepColumns < columns.size()) {
      double x = xOf(stepColumns);
      html.leaf("line", {{"class", "border"}, {"x1", showPoint(x)}, {"x2", showPoint(x)}, {"y1", showPoint(kTop)},
                         {"y2", showPoint(bottom)}});
      html.tag("text", {{"class", "axis"}, {"x", showPoint(x + 6)}, {"y", showPoint(bottom)}},
               "evaluation, when asked for");
    }
    writePeak();
    html.leaf("line", {{"class", "cursor"}, {"x1", "0"}, {"x2", "0"}, {"y1", showPoint(kTop)},
                       {"y2", showPoint(kTop + kHeight)}});
  });
  html.tag("p", {{"class", "readout note"}}, "");
}

/// The classes with their colours: what of each is in use at the peak, and the most of it at any row.
static void writeClasses(Html &html, const Page &page, size_t peak) {
  html.tag("table", {{"class", "classes"}}, [&] {
    html.tag("thead", {}, [&] {
      html.tag("tr", {}, [&] {
        html.tag("th", {}, "");
        html.tag("th", {{"class", "num"}}, "at the peak");
        html.tag("th", {{"class", "num"}}, "at most");
      });
    });
    html.tag("tbody", {}, [&] {
      for (size_t storage = kNumPageClasses; storage-- > 0;) {
        uint64_t most = 0;
        for (const PageRow &row : page.rows)
          most = std::max(most, row.bytes[storage]);
        if (!most)
          continue;
        html.tag("tr", {}, [&] {
          html.tag("td", {}, [&] {
            html.tag("span", {{"class", "swatch mem" + std::to_string(storage)}}, "");
            html.text(kClassNames[storage]);
          });
          writeBytes(html, "td", page.rows[peak].bytes[storage]);
          writeBytes(html, "td", most);
        });
      }
      uint64_t gaps = page.arena - page.rows[peak].getTotal();
      html.tag("tr", {}, [&] {
        html.tag("td", {}, [&] {
          html.tag("span", {{"class", "swatch gaps"}}, "");
          html.text("gaps and alignment");
        });
        writeBytes(html, "td", gaps);
        html.tag("td", {}, "");
      });
      html.tag("tr", {{"class", "sum"}}, [&] {
        html.tag("td", {}, "the arena");
        writeBytes(html, "td", page.arena);
        html.tag("td", {}, "");
      });
    });
  });
}

static void writeHeld(Html &html, const Page &page) {
  if (page.held.empty())
    return;
  html.tag("table", {{"class", "held"}}, [&] {
    html.tag("thead", {}, [&] {
      html.tag("tr", {}, [&] {
        html.tag("th", {}, "buffers in use at the peak");
        html.tag("th", {}, "from");
        html.tag("th", {}, "until");
        html.tag("th", {{"class", "num"}}, "bytes");
      });
    });
    html.tag("tbody", {}, [&] {
      for (const PageHeld &held : page.held)
        html.tag("tr", {}, [&] {
          html.tag("td", {}, [&] {
            html.tag("span", {{"class", "swatch mem" + std::to_string(size_t(held.storage))}}, "");
            html.text(held.shape);
            if (held.count > 1)
              html.tag("span", {{"class", "badge"}}, "×" + showCount(held.count));
          });
          html.tag("td", {}, held.firstRow);
          html.tag("td", {}, held.lastRow);
          writeBytes(html, "td", held.bytes * held.count);
        });
      if (page.otherHeld)
        html.tag("tr", {}, [&] {
          html.tag("td", {{"class", "note"}, {"colspan", "4"}},
                   "and " + showNumberOf(page.otherHeld, "buffer") + " of less");
        });
    });
  });
}

void writeMemory(Html &html, const Page &page) {
  if (page.rows.empty())
    return;
  html.tag("section", {{"id", "memory"}}, [&] {
    html.tag("h2", {}, "Memory over the step");
    html.tag("p", {{"class", "lead"}},
             "What is in use at each row of " +
                 (page.rowsOf.empty() ? "one rank's program"
                                      : "the program of the rank at " + page.rowsOf + ", which needs the most") +
                 ", from left to right. All of it lies in one arena, the promised peak, which is allocated once.");
    html.tag("div", {{"class", "card"}}, [&] {
      Chart(html, page).write();
      html.tag("div", {{"class", "below"}}, [&] {
        writeClasses(html, page, page.findPeak());
        writeHeld(html, page);
      });
    });
  });
}

} // namespace shoal::report
