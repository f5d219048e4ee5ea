#include "lockstep/core/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "lockstep/core/atomic_file.h"
#include "lockstep/core/byte_order.h"
#include "lockstep/core/check.h"
#include "lockstep/core/file_reader.h"

namespace lockstep {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint64_t kMaxHeader = 1 << 20;
constexpr std::uint64_t kAlignment = 64;  // of the data's first byte

// NumPy's type code without the byte order.
constexpr std::pair<std::string_view, DType> kTypeCodes[] = {
    {"f4", kF32}, {"f8", kF64}, {"f2", kF16},  {"i4", kI32},
    {"i8", kI64}, {"u1", kU8},  {"b1", kBool},
};

struct NpyHeader {
  DType dtype = kF32;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
};

// Reads the header: a Python dictionary with the keys descr, fortran_order and shape.
class DictionaryParser {
 public:
  DictionaryParser(const FileReader& file, std::string_view text, std::uint64_t offset)
      : file_(file), text_(text), offset_(offset) {}

  NpyHeader parse() {
    want('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      want(':');
      if (key == "descr" && !descr_) {
        descr_ = true;
        parse_descr();
      } else if (key == "fortran_order" && !order_) {
        order_ = true;
        header_.fortran_order = boolean();
      } else if (key == "shape" && !shape_) {
        shape_ = true;
        parse_shape();
      } else {
        fail(fmt::format("unknown or repeated key '{}'", key));
      }
      if (!accept(',')) {
        want('}');
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size()) fail("text after the dictionary");
    if (!descr_ || !order_ || !shape_) fail("descr, fortran_order or shape is missing");
    return header_;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    file_.damaged(offset_ + at_, "header: " + why);
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool accept(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void want(char c) {
    if (!accept(c)) fail(fmt::format("'{}' is wanted here", c));
  }

  std::string_view quoted() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("a text in quotes is wanted here");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a text without its closing quote");
    const std::string_view text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return text;
  }

  bool boolean() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += std::strlen(word);
      return value;
    }
    fail("True or False is wanted here");
  }

  void parse_descr() {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '[') fail("structured dtypes are not supported");
    const std::string_view descr = quoted();
    const char order = descr.empty() ? '\0' : descr[0];
    const bool ordered = order != '\0' && std::string_view("<>|=").find(order) != descr.npos;
    const std::string_view code = ordered ? descr.substr(1) : descr;
    const auto* known = std::find_if(std::begin(kTypeCodes), std::end(kTypeCodes),
                                     [&](const auto& entry) { return entry.first == code; });
    const bool needs_order = known != std::end(kTypeCodes) && dtype_size(known->second) > 1;
    if (known == std::end(kTypeCodes) || !ordered || (needs_order && order == '|'))
      fail(fmt::format("dtype '{}' is not supported (known are f4, f8, f2, i4, i8, u1, b1)",
                       descr.substr(0, 40)));
    header_.dtype = known->second;
    header_.big_endian = needs_order && order == '>';
  }

  void parse_shape() {
    want('(');
    while (!accept(')')) {
      skip_blanks();
      std::int64_t size = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) fail("a size is wanted here");
      if (header_.shape.rank() == kMaxRank) fail(fmt::format("more than {} dimensions", kMaxRank));
      header_.shape.push_back(size);
      at_ += static_cast<std::size_t>(end - begin);
      if (!accept(',')) {
        want(')');
        break;
      }
    }
  }

  const FileReader& file_;
  std::string_view text_;
  std::uint64_t offset_;
  std::size_t at_ = 0;
  NpyHeader header_;
  bool descr_ = false;
  bool order_ = false;
  bool shape_ = false;
};

Shape reversed(const Shape& shape) {
  Shape result = shape;
  std::reverse(result.begin(), result.end());
  return result;
}

// Axes in the opposite order: a Fortran-ordered array read as its transpose, and back.
Tensor with_axes_reversed(const Tensor& tensor) {
  std::array<int, kMaxRank> axes;
  for (int i = 0; i < tensor.dim(); ++i) axes[i] = tensor.dim() - 1 - i;
  return tensor.permute(std::span<const int>(axes.data(), static_cast<std::size_t>(tensor.dim())));
}

}  // namespace

Tensor load_npy(const std::string& path) {
  const FileReader file(path);
  char magic[8];
  file.read_at(0, magic, sizeof magic);
  if (std::string_view(magic, kMagic.size()) != kMagic) file.damaged(0, "not an .npy file");
  const int version = static_cast<unsigned char>(magic[6]);
  if (version < 1 || version > 3 || magic[7] != 0)
    file.damaged(6, fmt::format("format version {}.{} is not supported", version,
                                static_cast<unsigned char>(magic[7])));

  std::uint8_t length_bytes[4] = {};
  const std::uint64_t length_size = version == 1 ? 2 : 4;
  file.read_at(8, length_bytes, length_size);
  std::uint32_t length = 0;
  std::memcpy(&length, length_bytes, sizeof length);
  const std::uint64_t header_start = 8 + length_size;
  if (length > kMaxHeader)
    file.damaged(8,
                 fmt::format("a header of {} bytes; at most {} are allowed", length, kMaxHeader));
  if (length > file.size() - header_start)
    file.damaged(8, fmt::format("the header should have {} bytes but only {} follow", length,
                                file.size() - header_start));
  std::string text(length, '\0');
  file.read_at(header_start, text.data(), text.size());
  const NpyHeader header = DictionaryParser(file, text, header_start).parse();

  const std::uint64_t data_start = header_start + length;
  const std::optional<std::uint64_t> bytes = checked_bytes(header.shape, header.dtype);
  if (!bytes || *bytes != file.size() - data_start)
    file.damaged(
        data_start,
        fmt::format("shape {} of {} needs {} bytes but {} follow", header.shape, header.dtype,
                    bytes ? std::to_string(*bytes) : "too many", file.size() - data_start));
  const Shape stored = header.fortran_order ? reversed(header.shape) : header.shape;
  const Tensor tensor = empty(stored, {.dtype = header.dtype});
  file.read_at(data_start, tensor.data(), tensor.nbytes());
  if (header.big_endian) reverse_bytes(tensor.data(), tensor.itemsize(), tensor.numel());
  if (header.dtype == kBool) check_bools(file, data_start, tensor);
  return header.fortran_order ? with_axes_reversed(tensor).contiguous() : tensor;
}

void save_npy(const std::string& path, const Tensor& tensor) {
  LOCKSTEP_CHECK(tensor.defined(), "save_npy: the tensor is undefined");
  LOCKSTEP_CHECK(tensor.device().is_cpu(), "save_npy: the tensor is on {}, not cpu",
                 tensor.device().str());
  const auto* known =
      std::find_if(std::begin(kTypeCodes), std::end(kTypeCodes),
                   [&](const auto& entry) { return entry.second == tensor.dtype(); });
  LOCKSTEP_CHECK(known != std::end(kTypeCodes),
                 "save_npy: NumPy has no {}; convert to f32 or use save_safetensors",
                 tensor.dtype());
  std::string text =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}",
                  tensor.itemsize() > 1 ? '<' : '|', known->first, tensor.shape().str());
  constexpr std::uint64_t kPreamble = 10;  // magic, version, 16-bit length
  text.append(kAlignment - 1 - (kPreamble + text.size()) % kAlignment, ' ');
  text.push_back('\n');
  const auto length = static_cast<std::uint16_t>(text.size());  // rank <= 8 keeps it short

  AtomicFile file(path);
  file.write(kMagic);
  file.write(std::string_view("\x01\x00", 2));
  file.write(&length, sizeof length);
  file.write(text);
  const Tensor rows = tensor.contiguous();
  file.write(rows.data(), rows.nbytes());
  file.commit();
}

}  // namespace lockstep
