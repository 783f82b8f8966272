// How every tensor lies on the mesh: its dimensions with the axes that cut them, and a picture of the cuts.
#include "Write.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace shoal::report {

/// Which dimensions the picture shows: up to two, those that are cut before those that are not, then the largest.
static std::vector<size_t> pickDims(const PageTensor &tensor) {
  std::vector<size_t> picked(tensor.dims.size());
  for (size_t i = 0; i < picked.size(); ++i)
    picked[i] = i;
  llvm::stable_sort(picked, [&](size_t a, size_t b) {
    auto rank = [&](size_t i) { return std::pair(tensor.dims[i].parts > 1, tensor.dims[i].global); };
    return rank(a) > rank(b);
  });
  picked.resize(std::min<size_t>(picked.size(), 2));
  llvm::sort(picked);
  return picked;
}

/// A rectangle with the cuts of its dimensions; the first rank's piece is filled, padding is shaded.
static void writePicture(Html &html, const PageTensor &tensor) {
  constexpr double kWidth = 52, kHeight = 34, kInset = 1;
  constexpr int64_t kMostCuts = 16;
  std::vector<size_t> picked = pickDims(tensor);
  PageDim none{1, 1, 1, {}};
  const PageDim &down = picked.size() > 1 ? tensor.dims[picked[0]] : none;
  const PageDim &across = picked.empty() ? none : tensor.dims[picked.back()];
  double height = picked.size() > 1 ? kHeight : 10, top = kInset + (kHeight - height) / 2;
  html.tag("svg", {{"class", "cut"}, {"width", "54"}, {"height", "36"}, {"viewBox", "0 0 54 36"},
                   {"aria-hidden", "true"}}, [&] {
    auto rect = [&](llvm::StringRef style, double x, double y, double w, double h) {
      html.leaf("rect", {{"class", style.str()}, {"x", showPoint(x)}, {"y", showPoint(y)}, {"width", showPoint(w)},
                         {"height", showPoint(h)}});
    };
    double pieceWidth = kWidth / across.parts, pieceHeight = height / down.parts;
    rect("whole", kInset, top, kWidth, height);
    rect("piece", kInset, top, std::max(pieceWidth, 1.5), std::max(pieceHeight, 1.5));
    // Padding lies at the end of the last pieces.
    auto padded = [](const PageDim &dim) {
      return double(dim.parts * dim.local - dim.global) / double(dim.parts * dim.local);
    };
    if (padded(across) > 0)
      rect("pad", kInset + kWidth * (1 - padded(across)), top, kWidth * padded(across), height);
    if (padded(down) > 0)
      rect("pad", kInset, top + height * (1 - padded(down)), kWidth, height * padded(down));
    auto cuts = [&](const PageDim &dim, bool isAcross) {
      int64_t shown = std::min(dim.parts, kMostCuts);
      for (int64_t cut = 1; cut < shown; ++cut) {
        double x = kInset + kWidth * cut / shown, y = top + height * cut / shown;
        html.leaf("line", {{"class", getAxisClass(dim.axes.back()) + " slice"},
                           {"x1", showPoint(isAcross ? x : kInset)}, {"x2", showPoint(isAcross ? x : kInset + kWidth)},
                           {"y1", showPoint(isAcross ? top : y)}, {"y2", showPoint(isAcross ? top + height : y)}});
      }
    };
    cuts(across, true);
    cuts(down, false);
    rect("edge", kInset, top, kWidth, height);
  });
}

/// Every dimension with the axes that shard it: "768", "3072 tensor".
static void writeDims(Html &html, const PageTensor &tensor) {
  if (tensor.dims.empty())
    html.tag("span", {{"class", "note"}}, "scalar");
  for (const PageDim &dim : tensor.dims) {
    html.tag("span", {{"class", dim.axes.empty() ? "dim" : "dim sharded"}}, [&] {
      html.text(std::to_string(dim.global));
      writeAxes(html, dim.axes);
    });
  }
}

static std::string joinSizes(llvm::ArrayRef<int64_t> sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : "×") + std::to_string(size);
  return text;
}

static std::string showLocal(const PageTensor &tensor) {
  std::vector<int64_t> sizes;
  for (const PageDim &dim : tensor.dims)
    sizes.push_back(dim.local);
  return joinSizes(sizes);
}

/// "2 past 3072": elements of the last ranks that stand for none.
static std::string showPadding(const PageTensor &tensor) {
  std::string text;
  for (const PageDim &dim : tensor.dims)
    if (int64_t padding = dim.parts * dim.local - dim.global)
      text += (text.empty() ? "padding: " : ", ") + std::to_string(padding) + " past " + std::to_string(dim.global);
  return text;
}

/// "parameter, with the optimizer's m, v alike; in files 768×2304"; "parameter; a bucket of h.{0…11}.ln_1.weight, wte".
static std::string describe(const PageTensor &tensor) {
  std::string text = tensor.role;
  for (const std::string &state : tensor.state)
    text += (&state == &tensor.state.front() ? ", with the optimizer's " : ", ") + state;
  if (!tensor.state.empty())
    text += " alike";
  if (!tensor.holds.empty())
    text += "; a bucket of " + llvm::join(tensor.holds, ", ");
  if (!tensor.file.empty())
    text += "; in files " + joinSizes(tensor.file);
  return text;
}

static void writeTensor(Html &html, const PageTensor &tensor, bool hasPlaces) {
  html.tag("tr", {}, [&] {
    html.tag("td", {}, [&] { writePicture(html, tensor); });
    html.tag("td", {{"class", "name"}}, [&] {
      html.tag("code", {}, tensor.name);
      if (tensor.count > 1)
        html.tag("span", {{"class", "badge"}}, showNumberOf(tensor.count, "tensor"));
      html.tag("div", {{"class", "note"}}, describe(tensor));
    });
    html.tag("td", {{"class", "dims"}}, [&] {
      writeDims(html, tensor);
      html.tag("span", {{"class", "note"}}, " " + tensor.element);
    });
    html.tag("td", {{"class", "num"}}, [&] {
      html.text(showLocal(tensor));
      if (std::string padding = showPadding(tensor); !padding.empty())
        html.tag("div", {{"class", "note"}}, padding);
    });
    if (hasPlaces)
      html.tag("td", {}, tensor.places.empty() ? "all" : tensor.places);
    html.tag("td", {{"class", "num"}}, tensor.copies == 1 ? "" : showCount(tensor.copies));
    writeBytes(html, "td", uint64_t(tensor.bytes) * tensor.count * (1 + tensor.state.size()));
  });
  html.newline();
}

void writeTensors(Html &html, const Page &page) {
  // Ranks of a pipeline hold what their stages read.
  bool hasPlaces = llvm::any_of(page.tensors, [](const PageTensor &tensor) { return !tensor.places.empty(); });
  html.tag("section", {{"id", "tensors"}}, [&] {
    html.tag("h2", {}, "Shardings per tensor");
    html.tag("p", {{"class", "lead"}},
             "Each dimension with the mesh axes that cut it. In the picture the first rank's piece is filled; a tensor "
             "without cuts is whole on " +
                 std::string(hasPlaces ? "every rank that holds it" : "every rank") +
                 ". Bytes are one rank's, padding and the optimizer's state included" +
                 (hasPlaces ? "; ranks of the pipeline hold what its stages read." : "."));
    html.tag("div", {{"class", "card scroll"}}, [&] {
      html.tag("table", {}, [&] {
        html.tag("thead", {}, [&] {
          html.tag("tr", {}, [&] {
            for (auto [title, style] :
                 {std::pair("", ""), std::pair("tensor", ""), std::pair("dimensions", ""),
                  std::pair("on one rank", "num"), std::pair("ranks", ""), std::pair("copies", "num"),
                  std::pair("bytes per rank", "num")})
              if (hasPlaces || title != llvm::StringRef("ranks"))
                html.tag("th", {{"class", style}}, title);
          });
        });
        html.tag("tbody", {}, [&] {
          for (const PageTensor &tensor : page.tensors)
            writeTensor(html, tensor, hasPlaces);
        });
      });
    });
  });
}

} // namespace shoal::report
