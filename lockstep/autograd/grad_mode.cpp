#include "lockstep/autograd/grad_mode.h"

namespace lockstep {
namespace {

thread_local bool grad_enabled = true;
thread_local bool inference_mode = false;

}  // namespace

bool is_grad_enabled() { return grad_enabled; }
bool is_inference_mode() { return inference_mode; }

GradModeGuard::GradModeGuard(bool enabled) : before_(grad_enabled) { grad_enabled = enabled; }
GradModeGuard::~GradModeGuard() { grad_enabled = before_; }

InferenceMode::InferenceMode() : before_(inference_mode) { inference_mode = true; }
InferenceMode::~InferenceMode() { inference_mode = before_; }

}  // namespace lockstep
