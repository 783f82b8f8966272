// Parameters and optimizer state: their first values, and files of them. Files hold whole
// logical tensors; rank 0 puts them together from every rank's pieces and writes alone.
#ifndef SHOAL_RT_CORE_PARAMETERS_H
#define SHOAL_RT_CORE_PARAMETERS_H

#include "core/file.h"
#include "core/parameter_files.h"
#include "core/program.h"
#include "mpi/world.h"

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
// Zeros, and the key of random ops in its place.
void clearArguments(const Program &program, uint64_t seed, char *arena);
// The first values of a tensor, into its storage.
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
