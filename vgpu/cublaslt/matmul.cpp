#include "vgpu/cublaslt/matmul.h"

#include <cmath>
#include <vector>

namespace vgpu {
namespace {

// cuBLASLt's GELU is the one with tanh: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
template <class A>
A gelu_inner(A x) {
  return static_cast<A>(0.7978845608028654) * (x + static_cast<A>(0.044715) * x * x * x);
}
template <class A>
A gelu(A x) {
  return x / 2 * (1 + std::tanh(gelu_inner(x)));
}
template <class A>
A gelu_derivative(A x) {
  const A t = std::tanh(gelu_inner(x));
  const A inner = static_cast<A>(0.7978845608028654) * (1 + static_cast<A>(3 * 0.044715) * x * x);
  return (1 + t) / 2 + x / 2 * (1 - t * t) * inner;
}

// op(X) row after row.
template <class A>
std::vector<A> gather(const void* data, const cublasLtMatrixLayoutOpaque_t& layout, int trans,
                      std::int64_t batch) {
  const bool turned = trans != CUBLAS_OP_N;
  const std::uint64_t rows = turned ? layout.cols : layout.rows;
  const std::uint64_t cols = turned ? layout.rows : layout.cols;
  const ElementType type = element_type(layout.type);
  std::vector<A> values(rows * cols);
  for (std::uint64_t r = 0; r < rows; ++r)
    for (std::uint64_t c = 0; c < cols; ++c)
      values[r * cols + c] =
          load<A>(data, type, turned ? layout.offset(c, r, batch) : layout.offset(r, c, batch));
  return values;
}

template <class A>
class Product {
 public:
  Product(const Matmul& call, std::int64_t batch) : call_(call), batch_(batch) {}

  void compute() {
    a_ = gather<A>(call_.a, call_.a_layout, call_.desc.trans_a, batch_);
    b_ = gather<A>(call_.b, call_.b_layout, call_.desc.trans_b, batch_);
    const std::size_t m = call_.m(), n = call_.n(), k = call_.k();
    d_.assign(m * n, A{});
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t l = 0; l < k; ++l) {
        const A x = a_[i * k + l];
        for (std::size_t j = 0; j < n; ++j) d_[i * n + j] += x * b_[l * n + j];
      }
    scale_and_add();
    if (call_.desc.adds_bias()) add_bias();
    apply_activation();
    if (call_.desc.sums_bias_gradient()) sum_bias_gradient();
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j)
        store(call_.d, element_type(call_.d_layout.type), call_.d_layout.offset(i, j, batch_),
              d_[i * n + j]);
  }

 private:
  static A scalar(const void* device, double host) {
    return device != nullptr ? *static_cast<const A*>(device) : static_cast<A>(host);
  }

  void scale_and_add() {
    const A alpha = scalar(call_.device_alpha, call_.alpha),
            beta = scalar(call_.device_beta, call_.beta);
    const std::size_t n = call_.n();
    for (A& x : d_) x *= alpha;
    if (beta == A{}) return;  // C is not even read
    for (std::size_t i = 0; i < call_.m(); ++i)
      for (std::size_t j = 0; j < n; ++j)
        d_[i * n + j] += beta * load<A>(call_.c, element_type(call_.c_layout.type),
                                        call_.c_layout.offset(i, j, batch_));
  }

  std::ptrdiff_t bias_at(std::size_t i) const {
    return batch_ * call_.desc.bias_batch_stride + static_cast<std::ptrdiff_t>(i);
  }

  void add_bias() {
    for (std::size_t i = 0; i < call_.m(); ++i) {
      const A bias = load<A>(call_.desc.bias, bias_type(call_), bias_at(i));
      for (std::size_t j = 0; j < call_.n(); ++j) d_[i * call_.n() + j] += bias;
    }
  }

  // The auxiliary matrix goes column by column: a bit per element for ReLU, a value for GELU.
  std::ptrdiff_t aux_at(std::size_t i, std::size_t j) const {
    return batch_ * call_.desc.aux_batch_stride +
           static_cast<std::ptrdiff_t>(j) * call_.desc.aux_ld + static_cast<std::ptrdiff_t>(i);
  }
  bool aux_bit(std::ptrdiff_t at) const {
    return (static_cast<const unsigned char*>(call_.desc.aux)[at / 8] >> (at % 8)) & 1;
  }
  void set_aux_bit(std::ptrdiff_t at, bool value) const {
    auto& byte = static_cast<unsigned char*>(call_.desc.aux)[at / 8];
    const auto bit = static_cast<unsigned char>(1u << (at % 8));
    byte = static_cast<unsigned char>(value ? byte | bit : byte & ~bit);
  }

  void apply_activation() {
    const auto& desc = call_.desc;
    const ElementType type = element_type(call_.d_layout.type);
    const bool relu = desc.has(CUBLASLT_EPILOGUE_RELU), is_gelu = desc.has(CUBLASLT_EPILOGUE_GELU);
    for (std::size_t i = 0; i < call_.m(); ++i)
      for (std::size_t j = 0; j < call_.n(); ++j) {
        A& x = d_[i * call_.n() + j];
        const std::ptrdiff_t at = aux_at(i, j);
        if (desc.has(CUBLASLT_EPILOGUE_DRELU)) {
          x = aux_bit(at) ? x : A{};
        } else if (desc.has(CUBLASLT_EPILOGUE_DGELU)) {
          x *= gelu_derivative(load<A>(desc.aux, type, at));
        } else if (relu) {
          if (desc.uses_aux()) set_aux_bit(at, x > A{});
          x = x > A{} || x != x ? x : A{};
        } else if (is_gelu) {
          if (desc.uses_aux()) store(desc.aux, type, at, x);
          x = gelu(x);
        }
      }
  }

  // Along the columns of D, of A or the rows of B.
  void sum_bias_gradient() {
    const std::size_t n = call_.n(), k = call_.k();
    for (std::size_t i = 0; i < call_.bias_length(); ++i) {
      A sum{};
      if (call_.desc.has(CUBLASLT_EPILOGUE_BGRADA))
        for (std::size_t l = 0; l < k; ++l) sum += a_[i * k + l];
      else if (call_.desc.has(CUBLASLT_EPILOGUE_BGRADB))
        for (std::size_t l = 0; l < k; ++l) sum += b_[l * n + i];
      else
        for (std::size_t j = 0; j < n; ++j) sum += d_[i * n + j];
      store(call_.desc.bias, bias_type(call_), bias_at(i), sum);
    }
  }

  const Matmul& call_;
  const std::int64_t batch_;
  std::vector<A> a_, b_, d_;
};

}  // namespace

std::size_t Matmul::aux_bytes() const {
  if (m() == 0 || n() == 0) return 0;
  const auto elements = static_cast<std::size_t>((d_layout.batches - 1) * desc.aux_batch_stride +
                                                 static_cast<std::int64_t>(n() - 1) * desc.aux_ld) +
                        m();
  const bool bits = desc.has(CUBLASLT_EPILOGUE_RELU) || desc.has(CUBLASLT_EPILOGUE_DRELU);
  return bits ? (elements + 7) / 8 : elements * d_layout.element_bytes();
}

ElementType element_type(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F:
      return ElementType::kDouble;
    case CUDA_R_16F:
      return ElementType::kHalf;
    case CUDA_R_16BF:
      return ElementType::kBfloat16;
    default:
      return ElementType::kFloat;
  }
}

ElementType bias_type(const Matmul& call) {
  return element_type(call.desc.bias_type < 0 ? call.d_layout.type
                                              : static_cast<cudaDataType_t>(call.desc.bias_type));
}

void multiply(const Matmul& call) {
  for (std::int64_t batch = 0; batch < call.d_layout.batches; ++batch) {
    if (call.desc.scale == CUDA_R_64F)
      Product<double>(call, batch).compute();
    else
      Product<float>(call, batch).compute();
  }
}

}  // namespace vgpu
