// The mesh as a grid of ranks: the last axis from left to right, the one before it from top to bottom, all
// others as one grid beside the next. A line joins ranks that differ along one axis only, in its colour.
#include "Write.h"

namespace shoal::report {

namespace {

using Axis = std::pair<std::string, uint64_t>;

/// What of a mesh is drawn: large ones in part, and the caption says so.
struct Grid {
  uint64_t rows, columns, blocks;
  uint64_t drawnRows, drawnColumns, drawnBlocks;
  double cell;
};

} // namespace

static Grid layOut(llvm::ArrayRef<Axis> axes, uint64_t ranks) {
  constexpr uint64_t kMostRows = 16, kMostColumns = 32, kMostBlocks = 8;
  Grid grid;
  grid.columns = axes.empty() ? 1 : axes.back().second;
  grid.rows = axes.size() < 2 ? 1 : axes[axes.size() - 2].second;
  grid.blocks = ranks / (grid.columns * grid.rows);
  grid.drawnColumns = std::min(grid.columns, kMostColumns);
  grid.drawnRows = std::min(grid.rows, kMostRows);
  grid.drawnBlocks = std::min(grid.blocks, kMostBlocks);
  uint64_t longest = std::max(grid.drawnColumns, grid.drawnRows);
  grid.cell = longest <= 4 ? 44 : longest <= 8 ? 34 : longest <= 16 ? 24 : 15;
  return grid;
}

/// "data 1, tensor 3".
static std::string showCoordinates(const rt::RankReport &rank) {
  std::string text;
  for (const auto &[axis, position] : rank.coords)
    text += (text.empty() ? "" : ", ") + axis + " " + std::to_string(position);
  return text;
}

static void writeBlock(Html &html, const rt::Report &report, llvm::ArrayRef<const rt::RankReport *> byPosition,
                       const Grid &grid, uint64_t block) {
  const std::vector<Axis> &axes = report.axes;
  double cell = grid.cell, left = 8, top = 6, size = cell - (cell >= 34 ? 14 : cell >= 24 ? 7 : 4);
  double width = left + grid.drawnColumns * cell, height = top + grid.drawnRows * cell;
  auto middle = [&](double origin, uint64_t at) { return origin + at * cell + cell / 2; };
  auto line = [&](const std::string &axis, double x1, double y1, double x2, double y2) {
    html.leaf("line", {{"class", getAxisClass(axis) + " link"}, {"x1", showPoint(x1)}, {"y1", showPoint(y1)},
                       {"x2", showPoint(x2)}, {"y2", showPoint(y2)}});
  };
  html.tag("svg", {{"viewBox", "0 0 " + showPoint(width) + " " + showPoint(height)}, {"width", showPoint(width)},
                   {"height", showPoint(height)}, {"role", "img"}, {"aria-label", "ranks of the mesh"}}, [&] {
    if (grid.drawnColumns > 1)
      for (uint64_t row = 0; row < grid.drawnRows; ++row)
        line(axes.back().first, middle(left, 0), middle(top, row), middle(left, grid.drawnColumns - 1),
             middle(top, row));
    if (grid.drawnRows > 1)
      for (uint64_t column = 0; column < grid.drawnColumns; ++column)
        line(axes[axes.size() - 2].first, middle(left, column), middle(top, 0), middle(left, column),
             middle(top, grid.drawnRows - 1));
    for (uint64_t row = 0; row < grid.drawnRows; ++row)
      for (uint64_t column = 0; column < grid.drawnColumns; ++column) {
        const rt::RankReport *rank = byPosition[(block * grid.rows + row) * grid.columns + column];
        html.tag("g", {}, [&] {
          html.tag("title", {}, "rank " + std::to_string(rank->rank) + ": " + showCoordinates(*rank));
          html.leaf("rect", {{"class", "rank"}, {"x", showPoint(middle(left, column) - size / 2)},
                             {"y", showPoint(middle(top, row) - size / 2)}, {"width", showPoint(size)},
                             {"height", showPoint(size)}, {"rx", "4"}});
          if (cell >= 24)
            html.tag("text", {{"class", cell >= 34 ? "id" : "id small"}, {"x", showPoint(middle(left, column))},
                              {"y", showPoint(middle(top, row))}}, std::to_string(rank->rank));
        });
      }
  });
}

void writeMesh(Html &html, const rt::Report &report) {
  uint64_t ranks = report.ranks.size();
  if (ranks <= 1)
    return;
  // Ranks in the order of mesh positions, the last axis fastest.
  std::vector<const rt::RankReport *> byPosition(ranks);
  for (const rt::RankReport &rank : report.ranks) {
    uint64_t position = 0;
    for (size_t axis = 0; axis < report.axes.size(); ++axis)
      position = position * report.axes[axis].second + rank.coords[axis].second;
    byPosition[position] = &rank;
  }
  Grid grid = layOut(report.axes, ranks);
  html.tag("figure", {{"class", "mesh"}}, [&] {
    html.tag("div", {{"class", "blocks"}}, [&] {
      for (uint64_t block = 0; block < grid.drawnBlocks; ++block)
        writeBlock(html, report, byPosition, grid, block);
    });
    html.tag("figcaption", {}, [&] {
      for (const auto &[axis, size] : report.axes)
        writeAxis(html, axis, "=" + std::to_string(size));
      uint64_t drawn = grid.drawnBlocks * grid.drawnRows * grid.drawnColumns;
      if (drawn < ranks)
        html.tag("span", {{"class", "note"}}, showCount(drawn) + " of " + showCount(ranks) + " ranks are drawn");
    });
  });
}

} // namespace shoal::report
