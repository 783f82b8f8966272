// Appends a shared object to the runtime executable, as shoalc does:
//   append_payload RUNTIME PAYLOAD.so OUT
#include "shoal-rt/payload.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: append_payload RUNTIME PAYLOAD.so OUT\n");
    return 2;
  }
  namespace fs = std::filesystem;
  fs::copy_file(argv[1], argv[3], fs::copy_options::overwrite_existing);
  std::ifstream payload(argv[2], std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(payload), {}};
  std::ofstream out(argv[3], std::ios::binary | std::ios::app);
  out.write(bytes.data(), std::streamsize(bytes.size()));
  shoal::rt::PayloadFooter footer = shoal::rt::payloadFooter(bytes.data(), bytes.size());
  out.write(reinterpret_cast<const char *>(&footer), sizeof footer);
  return out ? 0 : 1;
}
