// An independent witness of what crosses MPI's interface: preloaded into a program, it
// wraps the calls that send data, those too that the runtime does not make, and at MPI_Finalize writes what they were given, per
// rank, to $SHOAL_PMPI_OUT.<rank>:
//   {"rank": 0, "arena_bytes": 65536, "calls": [{"call": "MPI_Iallreduce", "comm": "shoal stream 1 {data}",
//     "ranks": 4, "elements": 1024, "element_bytes": 4, "count": 3}]}
// `elements` is the count argument of the sending side, `count` how often the call was made
// with it in the whole run. Communicators of a program are named after their stream and
// axes; the runtime's own traffic is on MPI_COMM_WORLD. `arena_bytes` is how much memory the
// program asked the system for where all buffers lie that it gave to calls on communicators of its own;
// 0 when there is no such piece.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include <mpi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

struct Mapping {
  uintptr_t begin;
  size_t bytes; // as asked for
};
// No container: the first mappings are made before any constructor has run.
Mapping mappings[1024];
std::atomic<size_t> numMappings;
uintptr_t lowest = UINTPTR_MAX, highest = 0; // buffers on communicators of the program

void *mapMemory(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
  auto made = static_cast<uintptr_t>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
  if (made != UINTPTR_MAX && (flags & MAP_ANONYMOUS))
    if (size_t index = numMappings++; index < std::size(mappings))
      mappings[index] = {made, bytes};
  return reinterpret_cast<void *>(made); // as the call gives it: -1 is MAP_FAILED, and errno is set
}

size_t arenaBytes() {
  size_t bytes = 0; // of the last one: an address may have been given back and be used again
  for (size_t i = 0; i < std::min(numMappings.load(), std::size(mappings)); ++i)
    if (mappings[i].begin <= lowest && highest < mappings[i].begin + mappings[i].bytes)
      bytes = mappings[i].bytes;
  return bytes;
}

struct Call {
  std::string name, comm;
  int ranks, elements, elementBytes;
  auto operator<=>(const Call &) const = default;
};

std::map<Call, long> &calls() {
  static std::map<Call, long> made;
  return made;
}

void count(const char *name, int elements, MPI_Datatype type, MPI_Comm comm, const void *buffer = nullptr) {
  char text[MPI_MAX_OBJECT_NAME];
  int length = 0, ranks = 0, bytes = 0;
  PMPI_Comm_get_name(comm, text, &length);
  PMPI_Comm_size(comm, &ranks);
  PMPI_Type_size(type, &bytes);
  calls()[{name, std::string(text, size_t(length)), ranks, elements, bytes}] += 1;
  if (buffer && std::string_view(text).starts_with("shoal stream")) {
    lowest = std::min(lowest, reinterpret_cast<uintptr_t>(buffer));
    highest = std::max(highest, reinterpret_cast<uintptr_t>(buffer));
  }
}

void countWindow(const char *name, int elements, MPI_Datatype type, MPI_Win window) {
  char text[MPI_MAX_OBJECT_NAME];
  int length = 0, bytes = 0;
  PMPI_Win_get_name(window, text, &length);
  PMPI_Type_size(type, &bytes);
  calls()[{name, std::string(text, size_t(length)), 0, elements, bytes}] += 1;
}

void write() {
  const char *base = std::getenv("SHOAL_PMPI_OUT");
  if (!base)
    return;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string path = std::string(base) + "." + std::to_string(rank);
  std::FILE *file = std::fopen(path.c_str(), "w");
  if (!file) {
    std::fprintf(stderr, "error: %s: cannot be written\n", path.c_str());
    return;
  }
  std::fprintf(file, "{\"rank\": %d, \"arena_bytes\": %zu, \"calls\": [", rank, arenaBytes());
  const char *separator = "";
  for (const auto &[call, times] : calls()) {
    std::fprintf(file,
                 "%s\n  {\"call\": \"%s\", \"comm\": \"%s\", \"ranks\": %d, \"elements\": %d, "
                 "\"element_bytes\": %d, \"count\": %ld}",
                 separator, call.name.c_str(), call.comm.c_str(), call.ranks, call.elements,
                 call.elementBytes, times);
    separator = ",";
  }
  std::fprintf(file, "]}\n");
  std::fclose(file);
}

} // namespace

extern "C" {

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  return mapMemory(at, bytes, protection, flags, file, offset);
}
void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {
  return mapMemory(at, bytes, protection, flags, file, offset);
}

int MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
  count("MPI_Allreduce", n, t, c);
  return PMPI_Allreduce(in, out, n, t, op, c);
}
int MPI_Iallreduce(const void *in, void *out, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c,
                   MPI_Request *r) {
  count("MPI_Iallreduce", n, t, c, out);
  return PMPI_Iallreduce(in, out, n, t, op, c, r);
}
int MPI_Iallgather(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u,
                   MPI_Comm c, MPI_Request *r) {
  count("MPI_Iallgather", n, t, c, out);
  return PMPI_Iallgather(in, n, t, out, m, u, c, r);
}
int MPI_Ireduce_scatter_block(const void *in, void *out, int n, MPI_Datatype t, MPI_Op op,
                              MPI_Comm c, MPI_Request *r) {
  count("MPI_Ireduce_scatter_block", n, t, c, out);
  return PMPI_Ireduce_scatter_block(in, out, n, t, op, c, r);
}
int MPI_Ialltoall(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u,
                  MPI_Comm c, MPI_Request *r) {
  count("MPI_Ialltoall", n, t, c);
  return PMPI_Ialltoall(in, n, t, out, m, u, c, r);
}
int MPI_Ibcast(void *buffer, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request *r) {
  count("MPI_Ibcast", n, t, c);
  return PMPI_Ibcast(buffer, n, t, root, c, r);
}
int MPI_Iscatter(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u, int root,
                 MPI_Comm c, MPI_Request *r) {
  count("MPI_Iscatter", n, t, c);
  return PMPI_Iscatter(in, n, t, out, m, u, root, c, r);
}
int MPI_Igather(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u, int root,
                MPI_Comm c, MPI_Request *r) {
  count("MPI_Igather", n, t, c);
  return PMPI_Igather(in, n, t, out, m, u, root, c, r);
}
int MPI_Isend(const void *in, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r) {
  count("MPI_Isend", n, t, c, in);
  return PMPI_Isend(in, n, t, to, tag, c, r);
}
int MPI_Send(const void *in, int n, MPI_Datatype t, int to, int tag, MPI_Comm c) {
  count("MPI_Send", n, t, c);
  return PMPI_Send(in, n, t, to, tag, c);
}
int MPI_Bcast(void *buffer, int n, MPI_Datatype t, int root, MPI_Comm c) {
  count("MPI_Bcast", n, t, c);
  return PMPI_Bcast(buffer, n, t, root, c);
}
int MPI_Reduce(const void *in, void *out, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c) {
  count("MPI_Reduce", n, t, c);
  return PMPI_Reduce(in, out, n, t, op, root, c);
}
int MPI_Gather(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u, int root,
               MPI_Comm c) {
  count("MPI_Gather", n, t, c);
  return PMPI_Gather(in, n, t, out, m, u, root, c);
}
int MPI_Gatherv(const void *in, int n, MPI_Datatype t, void *out, const int *m, const int *at,
                MPI_Datatype u, int root, MPI_Comm c) {
  count("MPI_Gatherv", n, t, c);
  return PMPI_Gatherv(in, n, t, out, m, at, u, root, c);
}
int MPI_Scatter(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u, int root,
                MPI_Comm c) {
  count("MPI_Scatter", n, t, c);
  return PMPI_Scatter(in, n, t, out, m, u, root, c);
}
int MPI_Allgather(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u,
                  MPI_Comm c) {
  count("MPI_Allgather", n, t, c);
  return PMPI_Allgather(in, n, t, out, m, u, c);
}
int MPI_Allgatherv(const void *in, int n, MPI_Datatype t, void *out, const int *m, const int *at,
                   MPI_Datatype u, MPI_Comm c) {
  count("MPI_Allgatherv", n, t, c);
  return PMPI_Allgatherv(in, n, t, out, m, at, u, c);
}
int MPI_Alltoall(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u,
                 MPI_Comm c) {
  count("MPI_Alltoall", n, t, c);
  return PMPI_Alltoall(in, n, t, out, m, u, c);
}
int MPI_Reduce_scatter_block(const void *in, void *out, int n, MPI_Datatype t, MPI_Op op,
                             MPI_Comm c) {
  count("MPI_Reduce_scatter_block", n, t, c);
  return PMPI_Reduce_scatter_block(in, out, n, t, op, c);
}
int MPI_Sendrecv(const void *in, int n, MPI_Datatype t, int to, int tag, void *out, int m,
                 MPI_Datatype u, int from, int fromTag, MPI_Comm c, MPI_Status *status) {
  count("MPI_Sendrecv", n, t, c);
  return PMPI_Sendrecv(in, n, t, to, tag, out, m, u, from, fromTag, c, status);
}
int MPI_Issend(const void *in, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r) {
  count("MPI_Issend", n, t, c);
  return PMPI_Issend(in, n, t, to, tag, c, r);
}
int MPI_Put(const void *in, int n, MPI_Datatype t, int to, MPI_Aint at, int m, MPI_Datatype u,
            MPI_Win w) {
  countWindow("MPI_Put", n, t, w);
  return PMPI_Put(in, n, t, to, at, m, u, w);
}
int MPI_Get(void *out, int n, MPI_Datatype t, int from, MPI_Aint at, int m, MPI_Datatype u,
            MPI_Win w) {
  countWindow("MPI_Get", n, t, w);
  return PMPI_Get(out, n, t, from, at, m, u, w);
}
int MPI_Barrier(MPI_Comm c) {
  count("MPI_Barrier", 0, MPI_BYTE, c);
  return PMPI_Barrier(c);
}
int MPI_Ibarrier(MPI_Comm c, MPI_Request *r) {
  count("MPI_Ibarrier", 0, MPI_BYTE, c);
  return PMPI_Ibarrier(c, r);
}
int MPI_Finalize(void) {
  write();
  return PMPI_Finalize();
}

} // extern "C"
