#include "lockstep/nn/embedding.h"

#include "lockstep/autograd/ops/embedding.h"
#include "lockstep/core/check.h"
#include "lockstep/nn/init.h"

namespace lockstep::nn {

EmbeddingImpl::EmbeddingImpl(const EmbeddingOptions& given) : options(given) {
  const std::int64_t rows = options.num_embeddings(), columns = options.embedding_dim();
  LOCKSTEP_CHECK(rows >= 0 && columns >= 0, "Embedding: sizes must not be negative, got {} and {}",
                 rows, columns);
  if (const auto padding = options.padding_idx()) {
    LOCKSTEP_CHECK(*padding >= -rows && *padding < rows,
                   "Embedding: padding_idx {} is outside a table of {} rows", *padding, rows);
    if (*padding < 0) options.padding_idx(*padding + rows);
  }
  weight = register_parameter("weight", empty({rows, columns}));
  reset_parameters();
}

void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  if (const auto padding = options.padding_idx()) zero_(weight.data().select(0, *padding));
}

Variable EmbeddingImpl::forward(const Variable& indices) {
  return embedding(weight, indices.data(), options.padding_idx());
}

}  // namespace lockstep::nn
