// Parameters and optimizer state: their first values, and files of them. Files hold whole
// logical tensors; rank 0 puts them together from every rank's pieces and writes alone.
#ifndef SHOAL_RT_CORE_PARAMETERS_H
#define SHOAL_RT_CORE_PARAMETERS_H

#include "core/file.h"
#include "core/parameter_files.h"
#include "core/program.h"
#include "mpi/world.h"

#include <functional>
#include <string>
#include <vector>

namespace shoal::rt {

// Writes this position's pieces of all parameters, state and the step counter into the
// arena. With files, each parameter comes from them and state that they hold too; without,
// from (seed, name, global index). The seed of random ops is --seed's in both cases. Padding is zero. Throws exit 2
// naming every tensor that is missing or has another shape.
struct LoadSummary {
  std::vector<std::string> unused;   // the files' tensors that found no use
  std::vector<std::string> newState; // state and step that files without any leave as they begin
};
// What of the optimizer's state and step begins anew, by the names that a checkpoint or files hold: nothing, or all of
// it where no state is there; the step counts what the state is made of. A part of the state is a fault.
struct NewState {
  std::vector<std::string> names; // in the program's order, the step behind
  std::string fault;              // for one line; empty: none
  // Whether the tensor's first value is drawn, whatever is there.
  bool holds(const Tensor &tensor) const;
};
NewState findNewState(const Program &program, const std::function<bool(const std::string &)> &isThere);

// Zeros in what the position holds, and the key of random ops in its place.
void clearArguments(const Program &program, uint32_t position, uint64_t seed, char *arena);
// The first values of a tensor that the position holds, into its storage.
void drawTensor(const Program &program, const Tensor &tensor, uint32_t position, uint64_t seed, char *to);
LoadSummary initializeArguments(const Program &program, uint32_t position, uint64_t seed,
                                const ParameterFiles *files, char *arena);

// A tensor to be written: `local` is its storage at this position.
struct DumpTensor {
  const Tensor *tensor;
  const char *local;
};

// Collective. Writes a safetensors file; `file` is null on ranks other than 0.
void dumpTensors(const World &world, const Program &program, uint32_t position,
                 const std::vector<DumpTensor> &tensors, OutputFile *file);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_PARAMETERS_H
