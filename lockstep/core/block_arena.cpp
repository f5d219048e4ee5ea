#include "lockstep/core/block_arena.h"

#include <cstdint>

namespace lockstep {
namespace {

constexpr std::size_t kGranularity = 512;
constexpr std::size_t kSmallLimit = std::size_t{1} << 20;
constexpr std::size_t kSmallPiece = std::size_t{2} << 20;
constexpr std::size_t kMiddleLimit = std::size_t{10} << 20;
constexpr std::size_t kMiddlePiece = std::size_t{20} << 20;
constexpr std::size_t kLargeGranularity = std::size_t{2} << 20;

}  // namespace

bool BlockArena::ByStreamAndSize::operator()(const MemoryBlock* a, const MemoryBlock* b) const {
  if (a->stream != b->stream) return std::less<>()(a->stream, b->stream);
  if (a->bytes != b->bytes) return a->bytes < b->bytes;
  return std::less<>()(a->data, b->data);
}

std::size_t BlockArena::rounded(std::size_t asked) {
  if (asked > SIZE_MAX - kLargeGranularity) return SIZE_MAX;
  return (asked + kGranularity - 1) / kGranularity * kGranularity;
}

std::size_t BlockArena::piece_size(std::size_t rounded) {
  if (rounded <= kSmallLimit) return kSmallPiece;
  if (rounded < kMiddleLimit) return kMiddlePiece;
  if (rounded == SIZE_MAX) return SIZE_MAX;
  return (rounded + kLargeGranularity - 1) / kLargeGranularity * kLargeGranularity;
}

MemoryBlock* BlockArena::take(std::size_t bytes, CUstream_st* stream) {
  FreeBlocks& blocks = free_blocks(bytes <= kSmallLimit);
  MemoryBlock key;
  key.stream = stream;
  key.bytes = bytes;
  const auto found = blocks.lower_bound(&key);
  if (found == blocks.end() || (*found)->stream != stream) return nullptr;
  MemoryBlock* block = *found;
  blocks.erase(found);
  return cut(block, bytes);
}

MemoryBlock* BlockArena::take_from_new_piece(char* piece, std::size_t size, std::size_t bytes,
                                             CUstream_st* stream) {
  MemoryBlock* block = new_block();
  block->stream = stream;
  block->data = piece;
  block->bytes = size;
  block->small = bytes <= kSmallLimit;
  ++pieces_;
  return cut(block, bytes);
}

MemoryBlock* BlockArena::new_block() {
  if (spare_.empty()) {
    blocks_.emplace_back();
    spare_.push_back(&blocks_.back());
  }
  MemoryBlock* block = spare_.back();
  spare_.pop_back();
  *block = MemoryBlock();
  block->arena = this;
  return block;
}

// What is left over becomes a free block where that is worth it.
MemoryBlock* BlockArena::cut(MemoryBlock* block, std::size_t bytes) {
  block->used = true;
  const std::size_t left = block->bytes - bytes;
  if (left < (block->small ? kGranularity : kSmallLimit + 1)) return block;
  MemoryBlock* rest = new_block();
  rest->stream = block->stream;
  rest->data = block->data + bytes;
  rest->bytes = left;
  rest->small = block->small;
  rest->before = block;
  rest->after = block->after;
  if (rest->after) rest->after->before = rest;
  block->after = rest;
  block->bytes = bytes;
  free_blocks(rest->small).insert(rest);
  return block;
}

void BlockArena::give_back(MemoryBlock* block) {
  FreeBlocks& blocks = free_blocks(block->small);
  block->used = false;
  if (MemoryBlock* before = block->before; before && !before->used) {
    blocks.erase(before);
    merge(before, block);
    block = before;
  }
  if (MemoryBlock* after = block->after; after && !after->used) {
    blocks.erase(after);
    merge(block, after);
  }
  blocks.insert(block);
}

void BlockArena::merge(MemoryBlock* block, MemoryBlock* after) {
  block->bytes += after->bytes;
  block->after = after->after;
  if (block->after) block->after->before = block;
  forget(after);
}

std::size_t BlockArena::drop_free_pieces(const std::function<void(char* piece)>& release) {
  std::size_t dropped = 0;
  for (FreeBlocks* blocks : {&small_, &large_}) {
    for (auto it = blocks->begin(); it != blocks->end();) {
      MemoryBlock* block = *it;
      if (block->before || block->after) {
        ++it;
        continue;
      }
      it = blocks->erase(it);
      release(block->data);
      dropped += block->bytes;
      --pieces_;
      forget(block);
    }
  }
  return dropped;
}

}  // namespace lockstep
