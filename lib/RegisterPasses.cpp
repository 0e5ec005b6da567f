//===- RegisterPasses.cpp - every pass the compiler knows -------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/RegisterPasses.h"

#ifdef HAVE_TilewrightTileToRuntime
#include "lib/Conversion/TileToRuntime/Passes.h"
#endif
#ifdef HAVE_TilewrightTileToVector
#include "lib/Conversion/TileToVector/Passes.h"
#endif
#ifdef HAVE_TilewrightExpandMath
#include "lib/Transforms/ExpandMath/Passes.h"
#endif
#ifdef HAVE_TilewrightGroupToKernel
#include "lib/Transforms/GroupToKernel/Passes.h"
#endif
#ifdef HAVE_TilewrightHostBuffers
#include "lib/Transforms/HostBuffers/Passes.h"
#endif
#ifdef HAVE_TilewrightPlan
#include "lib/Transforms/Plan/Passes.h"
#endif
#include "mlir/InitAllPasses.h"

#include <mutex>

void tilewright::registerAllPasses() {
  static std::once_flag once;
  std::call_once(once, [] {
    mlir::registerAllPasses();
    // The project's own, one line per folder.
#ifdef HAVE_TilewrightTileToRuntime
    registerTileToRuntimePasses();
#endif
#ifdef HAVE_TilewrightTileToVector
    registerTileToVectorPasses();
#endif
#ifdef HAVE_TilewrightExpandMath
    registerExpandMathPasses();
#endif
#ifdef HAVE_TilewrightGroupToKernel
    registerGroupToKernelPasses();
#endif
#ifdef HAVE_TilewrightHostBuffers
    registerHostBuffersPasses();
#endif
#ifdef HAVE_TilewrightPlan
    registerPlanPasses();
#endif
  });
}
