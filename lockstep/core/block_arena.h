// Blocks of device memory: pieces that the driver gave, cut into blocks, which merge with free
// neighbours. Bookkeeping only: it calls neither driver nor lock. Internal. Sizes and limits are
// PyTorch's (c10/cuda/CUDACachingAllocator.cpp).
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <set>
#include <vector>

#include "lockstep/core/stream.h"

namespace lockstep {

class BlockArena;

struct MemoryBlock {
  BlockArena* arena = nullptr;
  CUstream_st* stream = nullptr;
  char* data = nullptr;
  std::size_t bytes = 0;
  bool used = false;
  bool small = false;             // of a piece for small blocks
  MemoryBlock* before = nullptr;  // neighbours in the piece
  MemoryBlock* after = nullptr;
  std::vector<Stream> other_streams;  // whose work uses it too
};

class BlockArena {
 public:
  explicit BlockArena(int device) : device_(device) {}
  BlockArena(const BlockArena&) = delete;
  BlockArena& operator=(const BlockArena&) = delete;

  // What a request takes up, and the size of the piece to get for it; SIZE_MAX where no size holds.
  static std::size_t rounded(std::size_t asked);
  static std::size_t piece_size(std::size_t rounded);

  int device() const { return device_; }
  std::size_t pieces() const { return pieces_; }

  // The smallest free block of the stream that holds `bytes` (rounded), cut to it; null if none.
  MemoryBlock* take(std::size_t bytes, CUstream_st* stream);
  // A block of `bytes` at the start of a new piece; the rest of that is free.
  MemoryBlock* take_from_new_piece(char* piece, std::size_t size, std::size_t bytes,
                                   CUstream_st* stream);
  void give_back(MemoryBlock* block);
  // Forgets the pieces that are free as a whole, after `release` of each; says their bytes.
  std::size_t drop_free_pieces(const std::function<void(char* piece)>& release);

 private:
  struct ByStreamAndSize {
    bool operator()(const MemoryBlock* a, const MemoryBlock* b) const;
  };
  using FreeBlocks = std::set<MemoryBlock*, ByStreamAndSize>;

  FreeBlocks& free_blocks(bool small) { return small ? small_ : large_; }
  MemoryBlock* new_block();
  void forget(MemoryBlock* block) { spare_.push_back(block); }
  MemoryBlock* cut(MemoryBlock* block, std::size_t bytes);
  void merge(MemoryBlock* block, MemoryBlock* after);

  const int device_;
  std::size_t pieces_ = 0;
  std::deque<MemoryBlock> blocks_;   // all there ever were
  std::vector<MemoryBlock*> spare_;  // of them, those to use again
  FreeBlocks small_, large_;
};

}  // namespace lockstep
