// All collectives of every transport whose ranks may be threads: exact results, the same bits.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "dist/reduction_oracle.h"
#include "dist/run_ranks.h"

namespace lockstep::dist {
namespace {

using testing::exact_value;
using testing::reduce_element;
using testing::run_ranks;

constexpr DType kAllTypes[] = {kF32, kF64, kF16, kBF16, kI32, kI64, kU8, kBool};
constexpr ReduceOp kAllOps[] = {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax};
// Around vector lengths; then one that takes several staging slots of f32.
const std::vector<std::int64_t> kSmallCounts = {0, 1, 2, 15, 16, 17, 33, 65, 1001};

enum class Where { kPlain, kUnaligned, kSymmetric };

// Elements with guard bytes around them, in plain, misaligned or symmetric memory.
template <class T>
class Elements {
 public:
  Elements(ProcessGroup& group, std::int64_t count, Where where)
      : bytes_(static_cast<std::size_t>(count) * sizeof(T)),
        count_(count),
        begin_(where == Where::kUnaligned ? kGuard + 1 : kGuard) {
    const std::size_t all = bytes_ + 2 * kGuard + 1;
    storage_ = where == Where::kSymmetric ? group.allocate(all) : std::make_shared<Storage>(all);
    std::memset(storage_->data(), 0x5a, all);
    end_ = all;
  }
  unsigned char* data() const { return static_cast<unsigned char*>(storage_->data()) + begin_; }
  Span span() const { return {data(), count_, kDTypeOf<T>}; }
  void set(std::int64_t i, T value) {
    std::memcpy(data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
  }
  T get(std::int64_t i) const {
    T value;
    std::memcpy(&value, data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    return value;
  }
  bool guards_intact() const {
    const auto* all = static_cast<const unsigned char*>(storage_->data());
    for (std::size_t i = 0; i < end_; ++i)
      if ((i < begin_ || i >= begin_ + bytes_) && all[i] != 0x5a) return false;
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  std::size_t bytes_;
  std::int64_t count_;
  std::size_t begin_, end_;
  std::shared_ptr<Storage> storage_;
};

void expect(bool condition, const std::string& what) {
  if (!condition) throw Error("wrong: " + what);
}

template <class T>
void check_all_reduce(ProcessGroup& group, ReduceOp op, std::int64_t count, Where where,
                      bool in_place) {
  const std::string what = std::string("all_reduce ") + std::string(reduce_op_name(op)) + " of " +
                           std::to_string(count) + " " + std::string(dtype_name(kDTypeOf<T>));
  Elements<T> input(group, count, where), result(group, count, where);
  for (std::int64_t i = 0; i < count; ++i) input.set(i, exact_value<T>(op, group.rank(), i));
  Elements<T>& output = in_place ? input : result;
  group.all_reduce(input.span(), output.span(), op)->wait();
  std::vector<T> column(static_cast<std::size_t>(group.size()));
  std::vector<T> expected(1);
  for (std::int64_t i = 0; i < count; ++i) {
    // Large buffers are checked at every 97th place and at both ends.
    if (count > 5000 && i % 97 != 0 && i + 70 < count) continue;
    for (int r = 0; r < group.size(); ++r)
      column[static_cast<std::size_t>(r)] = exact_value<T>(op, r, i);
    const T wanted = reduce_element<T>(op, column), got = output.get(i);
    expect(std::memcmp(&wanted, &got, sizeof(T)) == 0,
           what + " at " + std::to_string(i) + (in_place ? " in place" : ""));
    if (!in_place) expect(input.get(i) == exact_value<T>(op, group.rank(), i), what + ": input");
  }
  expect(output.guards_intact() && input.guards_intact(), what + ": guard bytes");
}

template <class T>
void check_others(ProcessGroup& group, std::int64_t count, Where where) {
  const int n = group.size(), me = group.rank();
  const ReduceOp sum = ReduceOp::kSum;
  for (const int root : {0, n - 1}) {
    Elements<T> buffer(group, count, where);
    for (std::int64_t i = 0; i < count; ++i) buffer.set(i, exact_value<T>(sum, me, i));
    group.broadcast(buffer.span(), root)->wait();
    for (std::int64_t i = 0; i < count; ++i)
      expect(buffer.get(i) == exact_value<T>(sum, root, i), "broadcast");
    expect(buffer.guards_intact(), "broadcast: guard bytes");
  }
  // Large blocks are checked at every 31st place.
  const std::int64_t step = count > 5000 ? 31 : 1;
  Elements<T> all(group, count * n, where), mine(group, count, where);
  for (std::int64_t i = 0; i < count; ++i) mine.set(i, exact_value<T>(sum, me, i));
  group.all_gather(mine.span(), all.span())->wait();
  for (int r = 0; r < n; ++r)
    for (std::int64_t i = 0; i < count; i += step)
      expect(all.get(r * count + i) == exact_value<T>(sum, r, i), "all_gather");
  expect(all.guards_intact(), "all_gather: guard bytes");
  // In place: this rank's block already stands where it belongs.
  Elements<T> whole(group, count * n, where);
  for (std::int64_t i = 0; i < count; ++i) whole.set(me * count + i, exact_value<T>(sum, me, i));
  const std::size_t block = static_cast<std::size_t>(me * count) * sizeof(T);
  group.all_gather({whole.data() + block, count, kDTypeOf<T>}, whole.span())->wait();
  expect(std::memcmp(whole.data(), all.data(), all.span().bytes()) == 0, "all_gather in place");

  for (std::int64_t i = 0; i < count * n; ++i) all.set(i, exact_value<T>(sum, me, i));
  group.reduce_scatter(all.span(), mine.span())->wait();
  std::vector<T> column(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < count; i += step) {
    for (int r = 0; r < n; ++r)
      column[static_cast<std::size_t>(r)] = exact_value<T>(sum, r, me * count + i);
    const T wanted = reduce_element<T>(sum, column), got = mine.get(i);
    expect(std::memcmp(&wanted, &got, sizeof(T)) == 0, "reduce_scatter");
  }
  expect(mine.guards_intact(), "reduce_scatter: guard bytes");
}

class Collectives : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  std::string kind() const { return std::get<0>(GetParam()); }
  int size() const { return std::get<1>(GetParam()); }
  void run(const std::function<void(ProcessGroup&)>& body) {
    ASSERT_NO_THROW({
      try {
        run_ranks(kind(), size(), body);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
        throw;
      }
    });
  }
};

TEST_P(Collectives, AllReduceOfEveryTypeOpAndSmallSize) {
  run([&](ProcessGroup& group) {
    EXPECT_EQ(group.kind(), kind());
    for (const ReduceOp op : kAllOps)
      for (const DType dtype : kAllTypes)
        for (const std::int64_t count : kSmallCounts)
          visit_dtype(dtype, [&]<class T>() {
            check_all_reduce<T>(group, op, count, Where::kUnaligned, true);
            check_all_reduce<T>(group, op, count, Where::kPlain, false);
          });
  });
}

TEST_P(Collectives, AllReduceOfLargeBuffersWhereverTheyAre) {
  run([&](ProcessGroup& group) {
    for (const Where where : {Where::kPlain, Where::kUnaligned, Where::kSymmetric})
      for (const bool in_place : {true, false}) {
        check_all_reduce<float>(group, ReduceOp::kSum, 20011, where, in_place);
        check_all_reduce<float>(group, ReduceOp::kSum, 400003, where, in_place);
        check_all_reduce<BFloat16>(group, ReduceOp::kMax, 150001, where, in_place);
        check_all_reduce<std::uint8_t>(group, ReduceOp::kSum, 300007, where, in_place);
        check_all_reduce<std::int64_t>(group, ReduceOp::kProduct, 40009, where, in_place);
      }
  });
}

TEST_P(Collectives, MixedMemoryIsStaged) {
  run([&](ProcessGroup& group) {
    const Where where = group.rank() == 0 ? Where::kSymmetric : Where::kPlain;
    check_all_reduce<float>(group, ReduceOp::kSum, 100003, where, true);
  });
}

TEST_P(Collectives, BroadcastAllGatherReduceScatter) {
  run([&](ProcessGroup& group) {
    for (const Where where : {Where::kPlain, Where::kUnaligned, Where::kSymmetric})
      for (const std::int64_t count : {0, 1, 17, 1001, 20011}) {
        check_others<float>(group, count, where);
        check_others<Half>(group, count, where);
        check_others<std::uint8_t>(group, count, where);
      }
    if (group.size() < 8) check_others<float>(group, 150001, Where::kPlain);
  });
}

// The order of additions shows in the last bit of such sums.
TEST_P(Collectives, InexactSumsAreThoseOfTheTree) {
  const auto value = [](int r, std::int64_t i) {
    return static_cast<float>(std::sin(static_cast<double>(i) * 0.37 + r * 1.7) *
                              std::pow(10.0, (r * 5 + i) % 7));
  };
  run([&](ProcessGroup& group) {
    for (const std::int64_t count : {1, 1000, 8191, 30011, 270001})
      for (const Where where : {Where::kPlain, Where::kSymmetric}) {
        Elements<float> x(group, count, where);
        Elements<BFloat16> y(group, count, where);
        for (std::int64_t i = 0; i < count; ++i) {
          x.set(i, value(group.rank(), i));
          y.set(i, BFloat16(value(group.rank(), i)));
        }
        group.all_reduce(x.span())->wait();
        group.all_reduce(y.span())->wait();
        std::vector<float> column(static_cast<std::size_t>(group.size()));
        std::vector<BFloat16> half_column(column.size());
        const std::int64_t step = count > 10000 ? 89 : 1;
        for (std::int64_t i = 0; i < count; i += step) {
          for (int r = 0; r < group.size(); ++r) {
            column[static_cast<std::size_t>(r)] = value(r, i);
            half_column[static_cast<std::size_t>(r)] = BFloat16(value(r, i));
          }
          const float wanted = reduce_element<float>(ReduceOp::kSum, column), got = x.get(i);
          expect(std::memcmp(&wanted, &got, 4) == 0, "f32 sum at " + std::to_string(i));
          const BFloat16 half = reduce_element<BFloat16>(ReduceOp::kSum, half_column);
          const BFloat16 half_got = y.get(i);
          expect(std::memcmp(&half, &half_got, 2) == 0, "bf16 sum at " + std::to_string(i));
        }
      }
  });
}

TEST_P(Collectives, SendAndReceiveRoundTheRing) {
  run([&](ProcessGroup& group) {
    const int n = group.size(), me = group.rank();
    if (n == 1) return;
    for (const std::int64_t count : {0, 1, 1000, 100003}) {
      std::vector<float> out(static_cast<std::size_t>(count)), in(out.size());
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(me * 1000 + i % 999);
      // Everyone sends first: the two directions do not wait for each other.
      auto sent = group.send(span_of(out), (me + 1) % n);
      auto received = group.recv(span_of(in), (me + n - 1) % n);
      received->wait();
      sent->wait();
      for (std::size_t i = 0; i < in.size(); ++i)
        expect(in[i] == static_cast<float>((me + n - 1) % n * 1000 + i % 999), "recv");
    }
  });
}

TEST_P(Collectives, BarrierHoldsEveryoneBack) {
  std::atomic<int> arrived{0};
  run([&](ProcessGroup& group) {
    for (int round = 1; round <= 20; ++round) {
      arrived.fetch_add(1);
      group.barrier()->wait();
      expect(arrived.load() >= round * group.size(), "barrier");
    }
    EXPECT_EQ(group.traffic().collectives, 20u);
    EXPECT_EQ(group.traffic().bytes, 0u);
  });
}

TEST_P(Collectives, CountsCollectivesAndBytes) {
  run([&](ProcessGroup& group) {
    std::vector<float> x(100), all(static_cast<std::size_t>(100 * group.size()));
    group.all_reduce(span_of(x))->wait();
    group.all_reduce_sync(span_of(x));
    group.all_gather(span_of(x), span_of(all))->wait();
    EXPECT_EQ(group.traffic().collectives, 3u);
    EXPECT_EQ(group.traffic().bytes, 1200u);
  });
}

INSTANTIATE_TEST_SUITE_P(Groups, Collectives,
                         ::testing::Combine(::testing::Values("local", "shm"),
                                            ::testing::Values(1, 2, 3, 4, 5, 7, 8, 16)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace lockstep::dist
