// The product of two batches of matrices, in the graph.
#pragma once

#include "lockstep/autograd/variable.h"

namespace lockstep {

// a (B,M,K) times b (B,K,N); nothing is broadcast. da = dy b^T, db = a^T dy.
Variable bmm(const Variable& a, const Variable& b);

}  // namespace lockstep
