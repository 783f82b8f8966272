// The program inside this executable: finds the payload at the end of our own file, loads
// it, and hands out its table and kernels.
#ifndef SHOAL_RT_CORE_PAYLOAD_H
#define SHOAL_RT_CORE_PAYLOAD_H

#include "core/program.h"

#include <memory>
#include <string>

namespace shoal::rt {

struct LoadedPayload {
  std::unique_ptr<Program> program;
  std::unique_ptr<Program> evaluation; // of a training program; null: none
  const shoal_rt_kernel *kernels = nullptr; // of both: header().numKernels entries
};

// `executable` is usually /proc/self/exe. Throws exit 2 when there is no payload or it is
// not one of ours. Once loaded it stays until the process ends. `note` receives a line
// when a temporary file had to stand in for a memory file.
LoadedPayload loadPayload(const std::string &executable, std::string &note);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_PAYLOAD_H
