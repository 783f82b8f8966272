// The page of evidence: what a compilation promises, to look at. `readLocal` and `readProgram` gather it from the
// program's last two levels as plain data, `writeHtml` draws it: one file without scripts or pictures from
// elsewhere, which any browser shows.
#ifndef SHOAL_REPORT_PAGE_H
#define SHOAL_REPORT_PAGE_H

#include "shoal-rt/report.h"
#include "shoal-rt/timeline.h"

#include "mlir/IR/BuiltinOps.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::report {

/// An op of one device's program, or equal ones that follow each other.
struct PageOp {
  std::string name;      // "matmul"
  std::string shape;     // of its first result on one rank: "8×256×768 f32"
  std::string arguments; // names of the arguments that it reads: "h.0.mlp.c_fc.weight"
  std::string reason;    // of a collective
  std::vector<std::string> axes;
  bool isCommunication = false;
  bool isMinor = false; // computes nothing: a view, a position
  int64_t count = 1;

  bool operator==(const PageOp &) const = default;
};

/// Ops of one layer, or of `names.size()` layers that are equal but for their numbers.
struct PageLayer {
  std::vector<std::string> names; // as in nn.layer; none: the title says what it is
  std::string title;
  std::vector<PageOp> forward, backward, update;
};

struct PageDim {
  int64_t global = 0, local = 0;
  int64_t parts = 1; // of the axes together; parts * local - global elements are padding
  std::vector<std::string> axes;

  bool operator==(const PageDim &) const = default;
};

/// A tensor that outlives the step or crosses its border, or several that are equal but for their names.
struct PageTensor {
  std::string name; // numbers that differ in braces: "h.{0…11}.mlp.c_fc.weight"
  std::string role; // "parameter", "state", "buffer", "input", "output"
  std::string element;
  std::vector<PageDim> dims;
  std::vector<int64_t> file;      // empty: as in the program
  std::vector<std::string> state; // of a parameter: what the optimizer keeps in the same layout, "m"
  std::vector<std::string> holds; // of a bucket: the tensors that lie in it, one after another
  int64_t copies = 1;             // ranks that hold the same piece
  std::string places;             // "pipe 0": where on the axis of a pipeline; empty: everywhere
  int64_t bytes = 0;              // of one such tensor on one rank, padding included
  int64_t count = 1;
};

/// Who asked for a collective, and what it overlaps with.
struct PageAsker {
  std::string asker, overlap;

  bool operator==(const PageAsker &) const = default;
};

/// A collective, or several that are equal but for their layers, or outside of layers (buckets of gradients) but for
/// who asks. What `dist::Explanation` says, as text.
struct PageCollective {
  std::string kind;
  std::vector<std::string> axes;
  int64_t ranks = 1;
  std::string type;
  uint64_t bytes = 0; // sent by one rank in a step, by all of them
  int64_t count = 1;
  std::string part;   // "the backward pass"
  std::string layers; // "h.0 … h.11"
  std::string change, cause, removal;
  std::vector<PageAsker> askers;
  std::string hidden = ""; // of a ring, whether its transfers run beside what it computes
  std::string places = ""; // "pipe 0": which ranks of a pipeline send, of all whose bytes are counted here
};

/// Classes of memory, as in the report.
enum class PageClass { Params, Optimizer, Grads, Activations, Workspace };
inline constexpr size_t kNumPageClasses = 5;

/// Bytes in use at one row.
struct PageRow {
  std::string name;
  bool communicates = false;
  std::vector<std::string> axes; // of a collective; a message has none
  std::array<uint64_t, kNumPageClasses> bytes{};

  uint64_t getTotal() const;
};

/// A buffer that is in use at the peak, or equal ones.
struct PageHeld {
  PageClass storage = PageClass::Activations;
  std::string shape, firstRow, lastRow; // from the row that writes it to the last that touches it
  uint64_t bytes = 0; // of one
  int64_t count = 1;
};

/// What lies in a stage of a pipeline, wherever axes cut it.
struct PageStage {
  int64_t stage = 0, rank = 0; // of a line of ranks
  std::vector<std::string> layers; // in order
  uint64_t tensors = 0, parameters = 0, bytes = 0; // of parameters: how many tensors, their elements and bytes

  /// "embed, h.0 … h.5".
  std::string tellLayers(llvm::StringRef ellipsis) const;
};

struct Page {
  std::string source; // the file
  std::string mode;   // "train"
  std::vector<std::string> flags;
  rt::Report report; // by rank

  std::vector<PageLayer> layers;
  std::vector<PageTensor> tensors;
  // Of the model, wherever they lie: elements of whole tensors, and how many tensors.
  uint64_t parameters = 0, parameterTensors = 0;
  std::vector<PageCollective> collectives;
  std::string assumptions; // of times that collectives tell

  std::optional<rt::Timeline> pipeline; // simulated, of one line of ranks
  std::vector<PageStage> stages;        // of it

  std::vector<PageRow> rows; // of the step, then of the evaluation beside it
  size_t stepRows = 0;
  std::string rowsOf;         // "pipe 1": the rank of a pipeline whose rows they are
  uint64_t arena = 0;         // what the programs allocate
  std::vector<PageHeld> held; // at the peak, the largest first
  int64_t otherHeld = 0;      // buffers that `held` leaves out

  /// The first row with the most bytes in use. What the arena has besides lies between buffers.
  size_t findPeak() const;
};

/// Layers, tensors and collectives of a module that is one device's program (L2). `overlap`: as compiled without
/// --no-overlap. An error when it has no step, or several.
llvm::LogicalResult readLocal(mlir::ModuleOp module, bool overlap, Page &page);
/// What passes around rings in such a module, for reports; null without any.
llvm::FailureOr<rt::ReportJson> readRings(mlir::ModuleOp module, bool overlap);
/// The arena of its rank programs (L3). An error when it has none, or too many.
llvm::LogicalResult readProgram(mlir::ModuleOp module, Page &page);

/// Layers and parameters of the stages of a pipeline, of a module that is a plan (L1): in order, ranks left to their
/// schedule. Empty without stages.
std::vector<PageStage> readStages(mlir::ModuleOp global);

std::string writeHtml(const Page &page);

} // namespace shoal::report

#endif // SHOAL_REPORT_PAGE_H
