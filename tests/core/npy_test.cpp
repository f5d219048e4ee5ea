#include "lockstep/core/npy.h"

#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "lockstep/core/half.h"
#include "support/expect_close.h"
#include "support/message.h"
#include "support/temp_folder.h"

namespace lockstep {
namespace {

using testing::message_of;
using testing::read_bytes;
using testing::TempFolder;
using testing::write_bytes;

std::string reference_file(const std::string& name) {
  return LOCKSTEP_SOURCE_DIR "/tests/reference/values/files/" + name + ".npy";
}

Tensor eighths() {
  Tensor x = empty({2, 3, 4});
  for (int i = 0; i < 24; ++i) x.data<float>()[i] = static_cast<float>(i) / 8;
  return x;
}

TEST(Npy, NumpysFilesAreRead) {
  for (const char* name : {"c_order", "fortran_order", "big_endian", "version_2", "version_3"}) {
    SCOPED_TRACE(name);
    const Tensor x = load_npy(reference_file(name));
    EXPECT_SAME_BITS(x, eighths());
    EXPECT_TRUE(x.is_contiguous());
  }
  for (const auto& [name, dtype] : {std::pair{"f64", kF64}, std::pair{"f16", kF16}}) {
    SCOPED_TRACE(name);
    const Tensor x = load_npy(reference_file(name));
    EXPECT_EQ(x.dtype(), dtype);
    EXPECT_CLOSE(x, eighths(), 0, 0);
  }
  for (const auto& [name, dtype] :
       {std::pair{"i32_big_endian", kI32}, std::pair{"i64", kI64}, std::pair{"u8", kU8}}) {
    SCOPED_TRACE(name);
    const Tensor x = load_npy(reference_file(name));
    EXPECT_EQ(x.dtype(), dtype);
    EXPECT_CLOSE(x, arange(24).view({2, 3, 4}), 0, 0);
  }
  const Tensor flags = load_npy(reference_file("bool"));
  ASSERT_EQ(flags.dtype(), kBool);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(flags.data<bool>()[i], i > 8);
  EXPECT_SAME_BITS(load_npy(reference_file("scalar")), tensor<float>({2.5f}, {}));
  EXPECT_EQ(load_npy(reference_file("empty")).shape(), Shape({0, 3}));
}

TEST(Npy, OursEqualsNumpysByteForByte) {
  const TempFolder folder;
  save_npy(folder / "x.npy", eighths());
  EXPECT_EQ(read_bytes(folder / "x.npy"), read_bytes(reference_file("c_order")));
  save_npy(folder / "x.npy", tensor<float>({2.5f}, {}));
  EXPECT_EQ(read_bytes(folder / "x.npy"), read_bytes(reference_file("scalar")));
  save_npy(folder / "x.npy", zeros({0, 3}));
  EXPECT_EQ(read_bytes(folder / "x.npy"), read_bytes(reference_file("empty")));
}

TEST(Npy, EveryDtypeAndLayoutComesBack) {
  const TempFolder folder;
  const std::string path = folder / "x.npy";
  for (const Tensor& x :
       {eighths(), eighths().transpose(0, 2), tensor<double>({0.1}), tensor<bool>({true, false}),
        tensor<std::int32_t>({-5}), tensor<std::int64_t>({-5}), tensor<std::uint8_t>({5}),
        tensor<Half>({Half(0.5f)}), tensor<float>({1, 2, 3})}) {
    save_npy(path, x);
    EXPECT_SAME_BITS(load_npy(path), x);
  }
  EXPECT_HOLDS(message_of<Error>([&] { save_npy(path, zeros({1}, {.dtype = kBF16})); }), "bf16");
  EXPECT_ANY_THROW(save_npy(path, Tensor()));
}

TEST(Npy, UnknownDtypesAreNamed) {
  EXPECT_HOLDS(message_of<Error>([&] { load_npy(reference_file("i16")); }), "'<i2'");
  EXPECT_HOLDS(message_of<Error>([&] { load_npy(reference_file("structured")); }), "structured");
}

std::string file_of(const std::string& header, const std::string& data) {
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size() & 0xff) +
         static_cast<char>(header.size() >> 8) + header + data;
}

TEST(Npy, DamageIsAnErrorWithOffsetAndReason) {
  const TempFolder folder;
  const std::string path = folder / "damaged.npy";
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  const std::string data(8, '\0');
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string header = good;
    header.replace(header.find(from), from.size(), to);
    return file_of(header, data);
  };
  write_bytes(path, file_of(good, data));
  EXPECT_EQ(load_npy(path).shape(), Shape({2}));
  const std::pair<std::string, const char*> cases[] = {
      {"", "8 bytes"},
      {std::string("\x93NUMPX\1\0\2\0{}", 12), "not an .npy file"},
      {std::string("\x93NUMPY\4\0\2\0{}", 12), "version 4.0"},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14), "4294967295"},
      {file_of(good, data).substr(0, 40), "only 30 follow"},
      {file_of(good, data.substr(1)), "needs 8 bytes but 7 follow"},
      {file_of(good, data + "x"), "needs 8 bytes but 9 follow"},
      {replaced("(2,)", "(9223372036854775807, 4)"), "too many bytes"},
      {replaced("(2,)", "(99999999999999999999,)"), "a size is wanted"},
      {replaced("(2,)", "(-2,)"), "a size is wanted"},
      {replaced("(2,)", "(1,1,1,1,1,1,1,1,2)"), "more than 8"},
      {replaced("(2,)", "[2]"), "'(' is wanted"},
      {replaced("'shape'", "'descr'"), "repeated key 'descr'"},
      {replaced("'shape'", "'shapes'"), "unknown or repeated key 'shapes'"},
      {replaced("'shape': (2,), ", ""), "is missing"},
      {replaced("False", "Maybe"), "True or False"},
      {replaced("'<f4'", "'|f4'"), "'|f4'"},
      {replaced("'<f4'", "'f4'"), "'f4'"},
      {replaced("'<f4'", "''"), "dtype ''"},
      {replaced("}\n", "} x\n"), "text after"},
      {replaced(", }\n", "\n"), "'}' is wanted"},
      {file_of("{'descr", ""), "closing quote"},
      {file_of("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "\2"), "bool is 2"},
  };
  for (const auto& [bytes, reason] : cases) {
    write_bytes(path, bytes);
    const std::string message = message_of<Error>([&] { load_npy(path); });
    EXPECT_HOLDS(message, reason);
    EXPECT_HOLDS(message, "damaged at byte");
    EXPECT_HOLDS(message, "damaged.npy");
  }
}

}  // namespace
}  // namespace lockstep
