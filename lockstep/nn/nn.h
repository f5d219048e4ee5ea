// All of lockstep::nn.
#pragma once

#include "lockstep/nn/activation.h"   // IWYU pragma: export
#include "lockstep/nn/batch_norm.h"   // IWYU pragma: export
#include "lockstep/nn/conv2d.h"       // IWYU pragma: export
#include "lockstep/nn/dropout.h"      // IWYU pragma: export
#include "lockstep/nn/embedding.h"    // IWYU pragma: export
#include "lockstep/nn/flatten.h"      // IWYU pragma: export
#include "lockstep/nn/init.h"         // IWYU pragma: export
#include "lockstep/nn/layer_norm.h"   // IWYU pragma: export
#include "lockstep/nn/linear.h"       // IWYU pragma: export
#include "lockstep/nn/loss.h"         // IWYU pragma: export
#include "lockstep/nn/module.h"       // IWYU pragma: export
#include "lockstep/nn/module_list.h"  // IWYU pragma: export
#include "lockstep/nn/pooling.h"      // IWYU pragma: export
#include "lockstep/nn/sequential.h"   // IWYU pragma: export
