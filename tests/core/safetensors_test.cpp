#include "lockstep/core/safetensors.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <cstring>
#include <locale>

#include "lockstep/core/error.h"
#include "lockstep/core/half.h"
#include "lockstep/core/npy.h"
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
  return LOCKSTEP_SOURCE_DIR "/tests/reference/values/files/" + name;
}

// A file with this header text and data bytes.
std::string file_of(const std::string& header, const std::string& data) {
  std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

std::string header_of(const std::string& bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  return bytes.substr(8, length);
}

Tensor image() {
  Tensor rows = empty({1, 2, 2, 4});
  for (int i = 0; i < 16; ++i) rows.data<float>()[i] = static_cast<float>(i);
  return rows.contiguous(MemoryFormat::kChannelsLast);
}

TensorMap every_dtype() {
  return {
      {"fc.weight", tensor<float>({0, 1, 2, 3, 4, 5}, {2, 3})},
      {"step", tensor<std::int64_t>({7}, {})},
      {"bf16", tensor<BFloat16>({BFloat16(1.5f), BFloat16(-2.0f)})},
      {"f16", tensor<Half>({Half(1.5f), Half(-2.0f)})},
      {"f64", tensor<double>({0.1})},
      {"i32", tensor<std::int32_t>({-1})},
      {"u8", tensor<std::uint8_t>({1, 2, 3})},
      {"bool", tensor<bool>({true, false})},
      {"empty", zeros({0, 3})},
      {"image", image()},
  };
}

TEST(Safetensors, EveryDtypeComesBack) {
  const TempFolder folder;
  const std::string path = folder / "all.safetensors";
  const Metadata metadata{{"epoch", "3"}, {"größe", "a \"quoted\"\nline"}};
  save_safetensors(path, every_dtype(), metadata);
  const SafetensorsFile file = load_safetensors_with_metadata(path);
  EXPECT_EQ(file.metadata, metadata);
  const TensorMap expected = every_dtype();
  ASSERT_EQ(file.tensors.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    SCOPED_TRACE(name);
    EXPECT_SAME_BITS(file.tensors.at(name), tensor);
  }
}

// Left where LOCKSTEP_KEEP_FILES says, for tests/reference/check_safetensors.py.
TEST(Safetensors, FilesForPythonAreWritten) {
  const TempFolder folder;
  const char* kept = std::getenv("LOCKSTEP_KEEP_FILES");
  const std::string path = kept ? kept : folder.path();
  save_safetensors(path + "/lockstep.safetensors", every_dtype(), {{"written by", "lockstep"}});
  save_npy(path + "/lockstep.npy", tensor<float>({0, 1, 2, 3, 4, 5}, {2, 3}));
  EXPECT_EQ(load_safetensors(path + "/lockstep.safetensors").size(), every_dtype().size());
}

// https://github.com/pytorch/pytorch/issues/150857: weights must pass between C++ and Python.
TEST(Safetensors, PythonsFileIsRead) {
  const SafetensorsFile file = load_safetensors_with_metadata(reference_file("python.safetensors"));
  EXPECT_EQ(file.metadata.at("note"), "naïve \"quotes\"");
  EXPECT_SAME_BITS(file.tensors.at("f32"), tensor<float>({0, 1, 2, 3, 4, 5}, {2, 3}));
  EXPECT_SAME_BITS(file.tensors.at("i64"), tensor<std::int64_t>({-7}, {}));
  EXPECT_SAME_BITS(file.tensors.at("i32"), tensor<std::int32_t>({INT32_MAX, INT32_MIN}));
  EXPECT_SAME_BITS(file.tensors.at("u8"), tensor<std::uint8_t>({0, 1, 2, 3, 4}));
  EXPECT_SAME_BITS(file.tensors.at("bool"), tensor<bool>({true, false, true}));
  EXPECT_SAME_BITS(file.tensors.at("f64"), tensor<double>({0.1, 1e300}, {2, 1, 1}));
  EXPECT_SAME_BITS(file.tensors.at("f16"),
                   tensor<Half>({Half(1.0f), Half(-2.5f), Half(65504.0f), Half(6e-8f)}));
  EXPECT_SAME_BITS(file.tensors.at("bf16"),
                   tensor<BFloat16>({BFloat16(1.0f), BFloat16(-2.5f), BFloat16(3.140625f),
                                     BFloat16(0.0f), BFloat16(INFINITY), BFloat16(1e-3f)},
                                    {2, 3}));
  EXPECT_EQ(file.tensors.at("empty").shape(), Shape({0, 4}));
  EXPECT_SAME_BITS(file.tensors.at("größe"), tensor<float>({1}));
}

TEST(Safetensors, UnknownDtypesAreNamed) {
  for (const auto& [name, dtype] : {std::pair{"i16", "I16"}, std::pair{"f8", "F8_E4M3"}}) {
    const std::string message = message_of<Error>(
        [&] { load_safetensors(reference_file(name + std::string(".safetensors"))); });
    EXPECT_HOLDS(message, dtype);
    EXPECT_HOLDS(message, "tensor \"x\"");
    EXPECT_HOLDS(message, std::string(name) + ".safetensors");
  }
}

// https://github.com/ml-explore/mlx/issues/4439
TEST(Safetensors, TensorsAreAlignedToTheirElements) {
  const TempFolder folder;
  const std::string path = folder / "x.safetensors";
  save_safetensors(path, {{"a", tensor<std::uint8_t>({1, 2, 3})}, {"b", tensor<float>({1, 2})}});
  const std::string bytes = read_bytes(path);
  const std::string header = header_of(bytes);
  EXPECT_EQ((8 + header.size()) % 8, 0u);
  const std::size_t data = 8 + header.size();
  const float wanted[2] = {1, 2};
  EXPECT_EQ(std::memcmp(bytes.data() + data, wanted, sizeof wanted), 0) << header;
  EXPECT_EQ(bytes.substr(data + 8), "\1\2\3");
}

TEST(Safetensors, AnOddOffsetIsReadRight) {
  const TensorMap tensors = load_safetensors(reference_file("odd_offset.safetensors"));
  EXPECT_SAME_BITS(tensors.at("a"), tensor<std::uint8_t>({1, 2, 3}));
  EXPECT_SAME_BITS(tensors.at("b"), tensor<float>({1.5f, -2.25f}));
}

// https://github.com/carsonpo/safetensors.cpp/issues/2: bytes must not be swapped.
TEST(Safetensors, NumbersAreLittleEndian) {
  const TempFolder folder;
  const std::string path = folder / "x.safetensors";
  save_safetensors(path, {{"f", tensor<float>({1.0f})}, {"i", tensor<std::int64_t>({1})}});
  const std::string bytes = read_bytes(path);
  EXPECT_EQ(bytes.substr(bytes.size() - 12), std::string("\1\0\0\0\0\0\0\0\x00\x00\x80\x3f", 12));
}

TEST(Safetensors, TheSameContentsGiveTheSameBytes) {
  const TempFolder folder;
  save_safetensors(folder / "a", every_dtype(), {{"k", "v"}});
  save_safetensors(folder / "b", every_dtype(), {{"k", "v"}});
  EXPECT_EQ(read_bytes(folder / "a"), read_bytes(folder / "b"));
}

TEST(Safetensors, ViewsAreWrittenRowMajorAndSharedMemoryTwice) {
  const TempFolder folder;
  const std::string path = folder / "x.safetensors";
  const Tensor x = tensor<float>({0, 1, 2, 3, 4, 5}, {2, 3});
  save_safetensors(path, {{"x", x},
                          {"t", x.t()},
                          {"column", x.slice(1, 1, 2)},
                          {"expanded", x.slice(0, 0, 1).expand({2, 3})}});
  const TensorMap back = load_safetensors(path);
  EXPECT_SAME_BITS(back.at("x"), x);
  EXPECT_SAME_BITS(back.at("t"), tensor<float>({0, 3, 1, 4, 2, 5}, {3, 2}));
  EXPECT_SAME_BITS(back.at("column"), tensor<float>({1, 4}, {2, 1}));
  EXPECT_SAME_BITS(back.at("expanded"), tensor<float>({0, 1, 2, 0, 1, 2}, {2, 3}));
}

TEST(Safetensors, NothingAtAllIsAFileToo) {
  const TempFolder folder;
  save_safetensors(folder / "x", {});
  EXPECT_TRUE(load_safetensors(folder / "x").empty());
}

// Thousands in groups and a decimal comma, as in German.
struct GermanNumbers : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Safetensors, ALocaleWithDecimalCommaChangesNothing) {
  const TempFolder folder;
  const TensorMap tensors{{"x", zeros({12'345})}};
  save_safetensors(folder / "a", tensors);
  save_npy(folder / "a.npy", tensors.at("x"));
  const std::string before = std::setlocale(LC_ALL, nullptr);
  const std::locale classic = std::locale::global(std::locale(std::locale(), new GermanNumbers));
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // where it is installed
  save_safetensors(folder / "b", tensors);
  save_npy(folder / "b.npy", tensors.at("x"));
  EXPECT_EQ(load_safetensors(folder / "b").at("x").numel(), 12'345);
  EXPECT_EQ(load_npy(folder / "b.npy").numel(), 12'345);
  std::locale::global(classic);
  std::setlocale(LC_ALL, before.c_str());
  EXPECT_EQ(read_bytes(folder / "a"), read_bytes(folder / "b"));
  EXPECT_EQ(read_bytes(folder / "a.npy"), read_bytes(folder / "b.npy"));
}

TEST(Safetensors, WhatCannotBeWrittenIsRefused) {
  const TempFolder folder;
  const std::string path = folder / "x";
  EXPECT_HOLDS(message_of<Error>([&] {
                 save_safetensors(path, {{"a", Tensor()}});
               }),
               "\"a\" is undefined");
  EXPECT_HOLDS(message_of<Error>([&] {
                 save_safetensors(path, {{"__metadata__", zeros({1})}});
               }),
               "__metadata__");
  EXPECT_HOLDS(message_of<Error>([&] { save_safetensors(path, {{"\xff", zeros({1})}}); }), "UTF-8");
  EXPECT_TRUE(folder.entries().empty());
}

struct Damage {
  const char* name;
  std::string bytes;
  std::vector<std::string> words;  // that the message holds
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class DamagedSafetensors : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedSafetensors, IsAnErrorWithFileOffsetAndReason) {
  const TempFolder folder;
  const std::string path = folder / "damaged.safetensors";
  write_bytes(path, GetParam().bytes);
  const std::string message = message_of<Error>([&] { load_safetensors(path); });
  EXPECT_HOLDS(message, "damaged.safetensors");
  EXPECT_HOLDS(message, "at byte");
  for (const std::string& word : GetParam().words) EXPECT_HOLDS(message, word);
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":[)" + shape +
         R"(],"data_offsets":[)" + offsets + "]}";
}

const std::string kHugeLength = std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8);

INSTANTIATE_TEST_SUITE_P(
    All, DamagedSafetensors,
    ::testing::Values(
        Damage{"empty file", "", {"8 bytes"}}, Damage{"short length", "\1\2\3", {"byte 3"}},
        Damage{"huge header", kHugeLength + "{}", {"byte 0", "9223372036854775807"}},
        Damage{"header past the end", file_of("{}", "").substr(0, 9), {"only 1 follow"}},
        Damage{"not JSON", file_of("hello", ""), {"bad JSON", "byte 8"}},
        Damage{"empty header", file_of("", ""), {"bad JSON"}},
        Damage{"text after", file_of("{} x", ""), {"bad JSON"}},
        Damage{"an array", file_of("[1]", ""), {"object"}},
        Damage{"a number", file_of("12", ""), {"object"}},
        Damage{"deep nesting", file_of(std::string(100000, '['), ""), {"object"}},
        Damage{
            "deep objects", file_of(R"({"a":{"shape":)" + std::string(100000, '['), ""), {"\"a\""}},
        Damage{"bad UTF-8", file_of("{\"\xff\":1}", ""), {"bad JSON"}},
        Damage{"value no object", file_of(R"({"a":3})", ""), {"\"a\"", "number"}},
        Damage{
            "duplicate name",
            file_of("{" + entry("a", "U8", "1", "0,1") + "," + entry("a", "U8", "1", "1,2") + "}",
                    "ab"),
            {"duplicate key \"a\""}},
        Damage{
            "duplicate field",
            file_of(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "a"),
            {"duplicate key \"dtype\""}},
        Damage{"unknown field",
               file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", "a"),
               {"unknown key \"x\""}},
        Damage{"no dtype",
               file_of(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", "a"),
               {"dtype is missing"}},
        Damage{"no shape",
               file_of(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", "a"),
               {"shape is missing"}},
        Damage{"no offsets",
               file_of(R"({"a":{"dtype":"U8","shape":[1]}})", "a"),
               {"data_offsets is missing"}},
        Damage{"dtype no string",
               file_of(R"({"a":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})", "a"),
               {"number"}},
        Damage{"unsigned 16", file_of("{" + entry("a", "U16", "1", "0,2") + "}", "ab"), {"U16"}},
        Damage{
            "negative size", file_of("{" + entry("a", "U8", "-1", "0,1") + "}", "a"), {"negative"}},
        Damage{
            "fractional size", file_of("{" + entry("a", "U8", "1.5", "0,1") + "}", "a"), {"1.5"}},
        Damage{"nine dimensions",
               file_of("{" + entry("a", "U8", "1,1,1,1,1,1,1,1,1", "0,1") + "}", "a"),
               {"more than 8"}},
        Damage{"one offset", file_of("{" + entry("a", "U8", "1", "0") + "}", "a"), {"two numbers"}},
        Damage{"three offsets",
               file_of("{" + entry("a", "U8", "1", "0,1,2") + "}", "a"),
               {"more than two"}},
        Damage{"offsets backwards",
               file_of("{" + entry("a", "U8", "1", "1,0") + "}", "a"),
               {"[1, 0]"}},
        Damage{"offsets out of range",
               file_of("{" + entry("a", "U8", "2", "0,2") + "}", "a"),
               {"[0, 2]", "1 bytes"}},
        Damage{
            "offsets huge",
            file_of("{" + entry("a", "U8", "1", "18446744073709551614,18446744073709551615") + "}",
                    "a"),
            {"\"a\""}},
        Damage{"shape and bytes",
               file_of("{" + entry("a", "F32", "2", "0,4") + "}", "abcd"),
               {"needs 8 bytes", "hold 4"}},
        Damage{"product overflows to 4",
               file_of("{" + entry("a", "F32", "4611686018427387905,4", "0,4") + "}", "abcd"),
               {"too large"}},
        Damage{"empty but huge",
               file_of("{" + entry("a", "F32", "0,9223372036854775807,9223372036854775807", "0,0") +
                           "}",
                       ""),
               {"too large"}},
        Damage{
            "overlap",
            file_of("{" + entry("a", "U8", "2", "0,2") + "," + entry("b", "U8", "2", "1,3") + "}",
                    "abc"),
            {"\"a\" and \"b\" overlap"}},
        Damage{"gap",
               file_of("{" + entry("a", "U8", "1", "1,2") + "}", "ab"),
               {"0 to 1 belong to no tensor"}},
        Damage{"trailing bytes",
               file_of("{" + entry("a", "U8", "1", "0,1") + "}", "abc"),
               {"2 bytes after"}},
        Damage{"no bool",
               file_of("{" + entry("a", "BOOL", "2", "0,2") + "}", std::string("\1\2", 2)),
               {"bool is 2"}},
        Damage{"metadata no string", file_of(R"({"__metadata__":{"a":1}})", ""), {"__metadata__"}},
        Damage{"metadata twice",
               file_of(R"({"__metadata__":{"a":"1","a":"2"}})", ""),
               {"duplicate key \"a\""}}),
    [](const auto& info) {
      std::string name = info.param.name;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

TEST(Safetensors, MissingFileFolderAndPipeAreErrors) {
  const TempFolder folder;
  EXPECT_HOLDS(message_of<Error>([&] { load_safetensors(folder / "nothing"); }),
               "nothing\": opening it: No such file");
  EXPECT_HOLDS(message_of<Error>([&] { load_safetensors(folder.path()); }), "not a regular file");
}

}  // namespace
}  // namespace lockstep
