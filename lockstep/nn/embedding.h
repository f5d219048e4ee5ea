// A table of vectors, looked up by index.
#pragma once

#include <optional>

#include "lockstep/nn/module.h"

namespace lockstep::nn {

class EmbeddingOptions {
 public:
  EmbeddingOptions(std::int64_t num_embeddings, std::int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}

  // This row starts as zeros and gets no gradient; negative counts from the back.
  EmbeddingOptions& padding_idx(std::optional<std::int64_t> i) { return padding_idx_ = i, *this; }

  std::int64_t num_embeddings() const { return num_embeddings_; }
  std::int64_t embedding_dim() const { return embedding_dim_; }
  std::optional<std::int64_t> padding_idx() const { return padding_idx_; }

 private:
  std::int64_t num_embeddings_, embedding_dim_;
  std::optional<std::int64_t> padding_idx_;
};

// Indices (…) of an integer dtype to (…, embedding_dim). Parameter: weight (num, dim) from N(0, 1).
// Errors: negative sizes, a padding_idx outside the table.
class EmbeddingImpl : public Module {
 public:
  EmbeddingImpl(std::int64_t num_embeddings, std::int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingImpl(const EmbeddingOptions& options);

  void reset_parameters();
  Variable forward(const Variable& indices);

  EmbeddingOptions options;
  Variable weight;
};
LOCKSTEP_MODULE(Embedding);

}  // namespace lockstep::nn
