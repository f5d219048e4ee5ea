#include "lockstep/core/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "lockstep/core/byte_order.h"
#include "lockstep/core/check.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr std::pair<std::string_view, DType> kDTypeNames[] = {
    {"F32", kF32}, {"F64", kF64}, {"F16", kF16}, {"BF16", kBF16},
    {"I32", kI32}, {"I64", kI64}, {"U8", kU8},   {"BOOL", kBool},
};

std::string in_quotes(std::string_view name) {
  constexpr std::size_t kMost = 120;
  return name.size() <= kMost ? fmt::format("\"{}\"", name)
                              : fmt::format("\"{}…\"", name.substr(0, kMost));
}

// The header's grammar is fixed and flat, so it is read token by token: no tree is built that a
// hostile header could blow up.
class HeaderParser : public nlohmann::json_sax<json> {
 public:
  explicit HeaderParser(SafetensorsHeader& header) : header_(header) {}

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTop;
        return true;
      case Place::kTopValue:
        place_ = name_ == "__metadata__" ? Place::kMetadata : Place::kEntry;
        if (place_ == Place::kEntry) start_entry();
        return true;
      default:
        unexpected("an object");
    }
  }

  bool key(std::string& key) override {
    if (place_ == Place::kTop) {
      LOCKSTEP_CHECK(names_.insert(key).second, "duplicate key {}", in_quotes(key));
      name_ = key;
      place_ = Place::kTopValue;
    } else if (place_ == Place::kMetadata) {
      LOCKSTEP_CHECK(!header_.metadata.contains(key), "duplicate key {} in __metadata__",
                     in_quotes(key));
      field_ = key;
      place_ = Place::kMetadataValue;
    } else {
      bool& seen = key == "dtype"          ? has_dtype_
                   : key == "shape"        ? has_shape_
                   : key == "data_offsets" ? has_offsets_
                                           : unknown_field(key);
      LOCKSTEP_CHECK(!seen, "tensor {}: duplicate key \"{}\"", in_quotes(name_), key);
      seen = true;
      place_ = key == "dtype" ? Place::kDType : key == "shape" ? Place::kShape : Place::kOffsets;
    }
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadataValue) {
      header_.metadata.emplace(field_, text);
      place_ = Place::kMetadata;
    } else if (place_ == Place::kDType) {
      const auto* found = std::find_if(std::begin(kDTypeNames), std::end(kDTypeNames),
                                       [&](const auto& known) { return known.first == text; });
      LOCKSTEP_CHECK(found != std::end(kDTypeNames),
                     "tensor {}: dtype {} is not supported (known are F64, F32, F16, BF16, I64, "
                     "I32, U8, BOOL)",
                     in_quotes(name_), in_quotes(text));
      entry_.dtype = found->second;
      place_ = Place::kEntry;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::kShape) {
      place_ = Place::kShapeItems;
    } else if (place_ == Place::kOffsets) {
      place_ = Place::kOffsetItems;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShapeItems) {
      LOCKSTEP_CHECK(entry_.shape.rank() < kMaxRank, "tensor {}: more than {} dimensions",
                     in_quotes(name_), kMaxRank);
      LOCKSTEP_CHECK(value <= static_cast<number_unsigned_t>(INT64_MAX),
                     "tensor {}: dimension {} is too large", in_quotes(name_), value);
      entry_.shape.push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::kOffsetItems) {
      LOCKSTEP_CHECK(offsets_ < 2, "tensor {}: more than two data_offsets", in_quotes(name_));
      (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool end_array() override {
    LOCKSTEP_CHECK(place_ == Place::kShapeItems || offsets_ == 2,
                   "tensor {}: data_offsets needs two numbers but has {}", in_quotes(name_),
                   offsets_);
    place_ = Place::kEntry;
    return true;
  }

  bool end_object() override {
    switch (place_) {
      case Place::kEntry:
        LOCKSTEP_CHECK(has_dtype_ && has_shape_ && has_offsets_, "tensor {}: {} is missing",
                       in_quotes(name_),
                       !has_dtype_ ? "dtype" : (!has_shape_ ? "shape" : "data_offsets"));
        header_.entries.push_back(std::move(entry_));
        place_ = Place::kTop;
        return true;
      case Place::kMetadata:
        place_ = Place::kTop;
        return true;
      default:
        place_ = Place::kEnd;
        return true;
    }
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { unexpected("a negative number"); }
  bool number_float(number_float_t, const std::string& text) override {
    unexpected(fmt::format("the number {}", text.substr(0, 40)));
  }
  bool binary(json::binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    throw Error(fmt::format("bad JSON near byte {}: {}", 8 + position, error.what()));
  }

 private:
  enum class Place {
    kStart,
    kTop,
    kTopValue,
    kMetadata,
    kMetadataValue,
    kEntry,
    kDType,
    kShape,
    kShapeItems,
    kOffsets,
    kOffsetItems,
    kEnd,
  };

  void start_entry() {
    entry_ = {};
    entry_.name = name_;
    has_dtype_ = has_shape_ = has_offsets_ = false;
    offsets_ = 0;
  }

  [[noreturn]] bool& unknown_field(const std::string& key) const {
    throw Error(fmt::format("tensor {}: unknown key {}", in_quotes(name_), in_quotes(key)));
  }

  [[noreturn]] void unexpected(std::string_view what) const {
    if (place_ == Place::kStart) throw Error(fmt::format("{} where an object is wanted", what));
    throw Error(fmt::format("entry {}: {} is not allowed there", in_quotes(name_), what));
  }

  SafetensorsHeader& header_;
  Place place_ = Place::kStart;
  std::set<std::string> names_;
  std::string name_;
  std::string field_;
  SafetensorsEntry entry_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  int offsets_ = 0;
};

std::uint64_t bytes_of(const SafetensorsEntry& entry) {
  const std::optional<std::uint64_t> bytes = checked_bytes(entry.shape, entry.dtype);
  LOCKSTEP_CHECK(bytes.has_value(), "tensor {}: shape {} is too large", in_quotes(entry.name),
                 entry.shape);
  return *bytes;
}

// Ranges must fill the data area without gap or overlap, as the format demands.
void check_ranges(const SafetensorsHeader& header, std::uint64_t data_bytes) {
  std::uint64_t filled = 0;
  const std::string* before = nullptr;
  for (const SafetensorsEntry& entry : header.entries) {
    LOCKSTEP_CHECK(entry.begin <= entry.end && entry.end <= data_bytes,
                   "tensor \"{}\": data_offsets [{}, {}] leave the {} bytes of data", entry.name,
                   entry.begin, entry.end, data_bytes);
    LOCKSTEP_CHECK(bytes_of(entry) == entry.end - entry.begin,
                   "tensor \"{}\": shape {} of {} needs {} bytes but data_offsets [{}, {}] hold {}",
                   entry.name, entry.shape, entry.dtype, bytes_of(entry), entry.begin, entry.end,
                   entry.end - entry.begin);
    LOCKSTEP_CHECK(entry.begin >= filled, "tensors \"{}\" and \"{}\" overlap at data offset {}",
                   before ? *before : "", entry.name, entry.begin);
    LOCKSTEP_CHECK(entry.begin == filled, "data bytes {} to {} belong to no tensor", filled,
                   entry.begin);
    filled = entry.end;
    before = &entry.name;
  }
  LOCKSTEP_CHECK(filled == data_bytes, "{} bytes after the last tensor belong to none",
                 data_bytes - filled);
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes) {
  SafetensorsHeader header;
  HeaderParser parser(header);
  json::sax_parse(text.begin(), text.end(), &parser);
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_ranges(header, data_bytes);
  return header;
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) root["__metadata__"] = header.metadata;
  for (const SafetensorsEntry& entry : header.entries) {
    const auto* known =
        std::find_if(std::begin(kDTypeNames), std::end(kDTypeNames),
                     [&](const auto& candidate) { return candidate.second == entry.dtype; });
    // ordered_json looks a key up by walking the list: push_back keeps this linear.
    root.get_ref<nlohmann::ordered_json::object_t&>().push_back(
        {entry.name,
         {{"dtype", known->first},
          {"shape", entry.shape.vec()},
          {"data_offsets", {entry.begin, entry.end}}}});
  }
  std::string text;
  try {
    text = root.dump();
  } catch (const nlohmann::json::exception&) {
    throw Error("a tensor's name or a metadata text is not valid UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace lockstep
