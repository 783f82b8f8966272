// Loads the appended shared object through a memory file, which needs neither a writable
// disk nor cleaning up.
#include "core/payload.h"
#include "core/error.h"
#include "core/evaluation.h"
#include "shoal-rt/payload.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

// Keeps the text that shoalc looks for in the executable.
extern "C" {
extern const char *const shoal_runtime_marker;
__attribute__((used)) const char *const shoal_runtime_marker = shoal::rt::kRuntimeMarker;
}

namespace shoal::rt {
namespace {

struct Descriptor {
  explicit Descriptor(int fd) : fd(fd) {}
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  int fd;
};

// Hands a range of a file to `take` in pieces; false when it cannot be read or `take` fails.
template <typename Take> bool readRange(int from, uint64_t offset, uint64_t size, Take take) {
  std::vector<char> buffer(1 << 20);
  while (size != 0) {
    ssize_t got = pread(from, buffer.data(), std::min<uint64_t>(size, buffer.size()), off_t(offset));
    if (got <= 0 || !take(buffer.data(), size_t(got)))
      return false;
    offset += uint64_t(got);
    size -= uint64_t(got);
  }
  return true;
}

bool copyRange(int from, uint64_t offset, uint64_t size, int to) {
  return readRange(from, offset, size, [to](const char *bytes, size_t count) {
    for (size_t done = 0; done < count;) {
      ssize_t put = write(to, bytes + done, count - done);
      if (put <= 0)
        return false;
      done += size_t(put);
    }
    return true;
  });
}

void *openThroughMemory(int self, uint64_t offset, uint64_t size) {
  Descriptor memory(memfd_create("shoal-payload", MFD_CLOEXEC));
  if (memory.fd < 0 || !copyRange(self, offset, size, memory.fd))
    return nullptr;
  return dlopen(cat("/proc/self/fd/", memory.fd).c_str(), RTLD_NOW | RTLD_LOCAL);
}

void *openThroughFile(int self, uint64_t offset, uint64_t size, std::string &note) {
  const char *folder = std::getenv("TMPDIR");
  std::string path = cat(folder && *folder ? folder : "/tmp", "/shoal-payload-XXXXXX");
  Descriptor file(mkstemp(path.data()));
  if (file.fd < 0)
    workFailed("the program needs an executable memory file or a temporary file, and ", path,
               " cannot be made: ", std::strerror(errno));
  if (!copyRange(self, offset, size, file.fd)) {
    unlink(path.c_str());
    workFailed(path, ": write failed: ", std::strerror(errno));
  }
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::string why = handle ? "" : dlerror();
  unlink(path.c_str());
  if (!handle)
    badInput("the payload cannot be loaded: ", why);
  note = cat("no executable memory file on this system: the program was loaded through ", path);
  return handle;
}

// Bytes behind a symbol, as the shared object states them.
uint64_t symbolBytes(void *address) {
  Dl_info info;
  void *symbol = nullptr;
  if (!dladdr1(address, &info, &symbol, RTLD_DL_SYMENT) || !symbol || info.dli_saddr != address)
    return 0;
  return static_cast<const ElfW(Sym) *>(symbol)->st_size;
}

} // namespace

LoadedPayload loadPayload(const std::string &executable, std::string &note) {
  Descriptor self(open(executable.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (self.fd < 0 || fstat(self.fd, &info) != 0)
    badInput("this executable cannot read itself: ", executable, ": ", std::strerror(errno));
  uint64_t fileBytes = uint64_t(info.st_size);
  PayloadFooter footer{};
  if (fileBytes < sizeof footer ||
      pread(self.fd, &footer, sizeof footer, off_t(fileBytes - sizeof footer)) != sizeof footer ||
      !isPayloadFooter(footer))
    badInput("this executable holds no program; make one with: shoalc FILE.mlir -o OUT");
  if (footer.size > fileBytes - sizeof footer)
    badInput("the payload must lie inside the file of ", fileBytes, " bytes, got: ", footer.size);
  uint64_t offset = fileBytes - sizeof footer - footer.size;
  uint64_t checksum = kChecksumStart;
  bool isRead = readRange(self.fd, offset, footer.size, [&](const char *bytes, size_t count) {
    checksum = payloadChecksum(bytes, count, checksum);
    return true;
  });
  if (!isRead || checksum != footer.checksum)
    badInput("this executable is damaged: checksum ", checksum, ", expected: ", footer.checksum,
             "; make it again with shoalc");

  void *handle = openThroughMemory(self.fd, offset, footer.size);
  if (!handle)
    handle = openThroughFile(self.fd, offset, footer.size, note);
  void *blob = dlsym(handle, kProgramSymbol);
  void *kernels = dlsym(handle, kKernelsSymbol);
  if (!blob)
    badInput("the payload lacks the symbol '", kProgramSymbol, "'");
  LoadedPayload loaded;
  loaded.program =
      std::make_unique<Program>(static_cast<const unsigned char *>(blob), symbolBytes(blob));
  uint64_t numKernels = loaded.program->header().numKernels;
  if (void *evaluation = dlsym(handle, kEvaluationSymbol)) {
    loaded.evaluation = std::make_unique<Program>(static_cast<const unsigned char *>(evaluation),
                                                  symbolBytes(evaluation));
    checkEvaluation(*loaded.program, *loaded.evaluation);
    numKernels = std::max<uint64_t>(numKernels, loaded.evaluation->header().numKernels);
  }
  uint64_t wanted = numKernels * sizeof(shoal_rt_kernel);
  if (wanted != 0 && (!kernels || symbolBytes(kernels) < wanted))
    badInput("the payload must hold ", numKernels, " kernels in '",
             kKernelsSymbol, "', got: ",
             kernels ? symbolBytes(kernels) / sizeof(shoal_rt_kernel) : 0);
  loaded.kernels = static_cast<const shoal_rt_kernel *>(kernels);
  return loaded;
}

} // namespace shoal::rt
