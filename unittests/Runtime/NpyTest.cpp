// .npy files: every version is read, what is written is read back, and hostile headers end
// in one line.
#include "TestSupport.h"
#include "core/npy.h"

namespace shoal::rt {
namespace {

using test::expectBadInput;
using test::ScratchFile;

std::string npy(const std::string &header, const std::string &data, int major = 1) {
  std::string text("\x93NUMPY", 6);
  text += char(major);
  text += '\0';
  size_t lengthBytes = major == 1 ? 2 : 4;
  for (size_t i = 0; i < lengthBytes; ++i)
    text += char(header.size() >> 8 * i & 255);
  return text + header + data;
}

TEST(Npy, ReadsVersions1To3) {
  for (int major : {1, 2, 3}) {
    ScratchFile file(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n",
                         std::string(24, '\1'), major));
    NpyFile read(file.path());
    EXPECT_EQ(read.type(), FileType::I32);
    EXPECT_EQ(read.shape(), (std::vector<uint64_t>{2, 3}));
    EXPECT_EQ(read.data()[23], 1);
  }
}

TEST(Npy, ReadsOtherSpellings) {
  ScratchFile scalar(npy("{\"shape\":(),\"descr\":\"=f8\",\"fortran_order\":False}", "12345678"));
  EXPECT_TRUE(NpyFile(scalar.path()).shape().empty());
  ScratchFile vector(npy("{'descr':'|b1','fortran_order':True,'shape':(3,)}", "abc"));
  EXPECT_EQ(NpyFile(vector.path()).type(), FileType::Bool);
  ScratchFile empty(npy("{'descr':'<f4','fortran_order':False,'shape':(0, 5)}", ""));
  EXPECT_EQ(NpyFile(empty.path()).shape()[0], 0u);
}

TEST(Npy, WritesWhatItReads) {
  for (std::vector<uint64_t> shape : {std::vector<uint64_t>{}, {7}, {2, 3, 4}}) {
    uint64_t count = 1;
    for (uint64_t dim : shape)
      count *= dim;
    std::string header = npyHeader(FileType::F64, shape);
    EXPECT_EQ(header.size() % 64, 0u);
    ScratchFile file(header + std::string(count * 8, 'x'));
    NpyFile read(file.path());
    EXPECT_EQ(read.shape(), shape);
    EXPECT_EQ(read.type(), FileType::F64);
  }
  expectBadInput([] { npyHeader(FileType::BF16, {}); }, "bf16");
}

TEST(Npy, RefusesHostileFiles) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}";
  struct {
    std::string bytes, part;
  } cases[] = {
      {"", "not a .npy file"},
      {"\x93NUMPY", "not a .npy file"},
      {"PK\3\4 something else", "not a .npy file"},
      {npy(good, "12345678", 4), "version must be 1 to 3, got: 4"},
      {npy(good, "1234567"), "takes 8 bytes of data, got: 7"},
      {npy(good, "123456789"), "takes 8 bytes of data, got: 9"},
      {std::string("\x93NUMPY\1\0\xff\xff{}", 12), "cut off"},
      {npy("", ""), "expected '{'"},
      {npy("{'descr': '<f4'", ""), "expected '}'"},
      {npy("{'descr': '<f4", ""), "end of a string"},
      {npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", "12345678"),
       "little-endian"},
      {npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "12345678"), "'<c8'"},
      {npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "12345678"), "'|O'"},
      {npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,2)}", "12345678"), "Fortran"},
      {npy("{'descr': '<f4', 'fortran_order': False}", ""), "expected the keys"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", ""), "expected a dimension"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296,4)}", ""),
       "does not fit 64 bits"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", ""),
       "does not fit 64 bits"},
      {npy(good + "trailing", "12345678"), "expected the end"},
      {npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "12345678"),
       "unexpected key"},
  };
  for (const auto &test : cases) {
    ScratchFile file(test.bytes);
    expectBadInput([&] { NpyFile read(file.path()); }, test.part);
  }
  expectBadInput([] { NpyFile read("/no/such/file.npy"); }, "/no/such/file.npy");
  expectBadInput([] { NpyFile read("/"); }, "must be a regular file, got: a directory");
}

// No cut of a good file may be read, and no changed byte may crash.
TEST(Npy, SurvivesCutsAndChanges) {
  std::string good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n", "12345678");
  for (size_t size = 0; size < good.size(); ++size) {
    ScratchFile file(good.substr(0, size));
    EXPECT_THROW(NpyFile(file.path()), Error) << size;
  }
  for (size_t at = 0; at < good.size(); ++at)
    for (char byte : {'\0', '\xff', '(', '\'', '9'}) {
      std::string changed = good;
      changed[at] = byte;
      ScratchFile file(changed);
      try {
        NpyFile read(file.path());
      } catch (const Error &error) {
        EXPECT_EQ(error.code, kExitBadInput);
      }
    }
}

} // namespace
} // namespace shoal::rt
