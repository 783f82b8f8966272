// How the programs of this project end, the compiler's, the launcher's and the compiled ones alike.
#ifndef SHOAL_RT_EXIT_CODES_H
#define SHOAL_RT_EXIT_CODES_H

namespace shoal::rt {

inline constexpr int kExitWorkFailed = 1; // the machine or another rank failed us
inline constexpr int kExitBadInput = 2;   // the command line or a file is wrong

} // namespace shoal::rt

#endif // SHOAL_RT_EXIT_CODES_H
