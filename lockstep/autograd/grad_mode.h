// Whether operations record a graph, per thread.
#pragma once

namespace lockstep {

bool is_grad_enabled();
bool is_inference_mode();

// Sets the mode for its scope and restores what was before.
class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled);
  ~GradModeGuard();
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool before_;
};

struct NoGradGuard : GradModeGuard {
  NoGradGuard() : GradModeGuard(false) {}
};
struct EnableGradGuard : GradModeGuard {
  EnableGradGuard() : GradModeGuard(true) {}
};

// No graph in its scope, and results that no graph may use later: an operation outside that records
// one of them is an Error.
class InferenceMode {
 public:
  InferenceMode();
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;

 private:
  bool before_;
  NoGradGuard no_grad_;
};

}  // namespace lockstep
