// The bookkeeping of device memory, without a device.
#include "lockstep/core/block_arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace lockstep {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

// Addresses and streams are numbers here: nothing is read through them.
char* address(std::size_t at) { return reinterpret_cast<char*>(at); }
CUstream_st* stream(std::size_t number) { return reinterpret_cast<CUstream_st*>(number * 64); }

TEST(BlockArena, RoundsRequestsAndPieces) {
  EXPECT_EQ(BlockArena::rounded(1), 512u);
  EXPECT_EQ(BlockArena::rounded(512), 512u);
  EXPECT_EQ(BlockArena::rounded(513), 1024u);
  EXPECT_EQ(BlockArena::rounded(SIZE_MAX - 5), SIZE_MAX);
  EXPECT_EQ(BlockArena::piece_size(512), 2 * kMiB);
  EXPECT_EQ(BlockArena::piece_size(kMiB), 2 * kMiB);
  EXPECT_EQ(BlockArena::piece_size(kMiB + 512), 20 * kMiB);
  EXPECT_EQ(BlockArena::piece_size(10 * kMiB), 10 * kMiB);
  EXPECT_EQ(BlockArena::piece_size(11 * kMiB), 12 * kMiB);
  EXPECT_EQ(BlockArena::piece_size(SIZE_MAX), SIZE_MAX);
}

TEST(BlockArena, GivesTheSmallestThatHolds) {
  BlockArena arena(0);
  MemoryBlock* a = arena.take_from_new_piece(address(40 * kMiB), 40 * kMiB, 40 * kMiB, stream(1));
  MemoryBlock* b = arena.take_from_new_piece(address(100 * kMiB), 20 * kMiB, 20 * kMiB, stream(1));
  MemoryBlock* c = arena.take_from_new_piece(address(200 * kMiB), 15 * kMiB, 15 * kMiB, stream(2));
  for (MemoryBlock* block : {a, b, c}) arena.give_back(block);
  EXPECT_EQ(arena.take(14 * kMiB, stream(1))->data, address(100 * kMiB));
  EXPECT_EQ(arena.take(14 * kMiB, stream(2))->data, address(200 * kMiB));
  EXPECT_EQ(arena.take(14 * kMiB, stream(3)), nullptr);
  EXPECT_EQ(arena.take(41 * kMiB, stream(1)), nullptr);
}

TEST(BlockArena, SmallRequestsStayOutOfLargePieces) {
  BlockArena arena(0);
  arena.give_back(arena.take_from_new_piece(address(kMiB), 20 * kMiB, 2 * kMiB, stream(1)));
  EXPECT_EQ(arena.take(512, stream(1)), nullptr);
  // A rest of at most 1 MiB stays with its block.
  EXPECT_EQ(arena.take(19 * kMiB, stream(1))->bytes, 20 * kMiB);
}

// Random requests: blocks in use never overlap, and in the end all pieces are whole.
TEST(BlockArena, BlocksNeverOverlap) {
  BlockArena arena(0);
  std::mt19937 random(3);
  std::vector<MemoryBlock*> used;
  std::size_t next_piece = kMiB, reserved = 0;
  const auto below = [&](std::size_t n) { return random() % n; };
  for (int i = 0; i < 5000; ++i) {
    if (used.size() < 100 && below(2) == 0) {
      const std::size_t most = below(2) == 0 ? kMiB : 12 * kMiB;
      const std::size_t bytes = BlockArena::rounded(1 + below(most));
      CUstream_st* s = stream(1 + below(2));
      MemoryBlock* block = arena.take(bytes, s);
      if (!block) {
        const std::size_t size = BlockArena::piece_size(bytes);
        block = arena.take_from_new_piece(address(next_piece), size, bytes, s);
        next_piece += size;
        reserved += size;
      }
      ASSERT_GE(block->bytes, bytes);
      ASSERT_EQ(block->stream, s);
      for (const MemoryBlock* other : used)
        ASSERT_TRUE(block->data + block->bytes <= other->data ||
                    other->data + other->bytes <= block->data);
      used.push_back(block);
    } else if (!used.empty()) {
      const std::size_t k = below(used.size());
      arena.give_back(used[k]);
      used[k] = used.back();
      used.pop_back();
    }
  }
  for (MemoryBlock* block : used) arena.give_back(block);
  std::size_t pieces = 0;
  EXPECT_EQ(arena.drop_free_pieces([&](char*) { ++pieces; }), reserved);
  EXPECT_GT(pieces, 2u);
  EXPECT_EQ(arena.pieces(), 0u);
}

}  // namespace
}  // namespace lockstep
