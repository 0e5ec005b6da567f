//===- RegisterPasses.cpp - every pass the compiler knows -------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/RegisterPasses.h"

#include "lib/Conversion/AsyncToGPU/Passes.h"
#include "lib/Conversion/FractalToLinalg/Passes.h"
#include "lib/Conversion/GPUToROCm/Passes.h"
#include "lib/Conversion/TileToGPU/Passes.h"
#include "lib/Conversion/TileToHost/Passes.h"
#include "lib/Conversion/TileToRuntime/Passes.h"
#include "lib/Conversion/TileToVector/Passes.h"
#include "lib/Transforms/ExpandFloats/Passes.h"
#include "lib/Transforms/ExpandMath/Passes.h"
#include "lib/Transforms/Fractal/Passes.h"
#include "lib/Transforms/GroupToKernel/Passes.h"
#include "lib/Transforms/HostBuffers/Passes.h"
#include "lib/Transforms/Pipelining/Passes.h"
#include "lib/Transforms/Plan/Passes.h"
#include "lib/Transforms/Programs/Passes.h"
#include "lib/Transforms/Recurrences/Passes.h"
#include "mlir/InitAllPasses.h"

#include <mutex>

void tilewright::registerAllPasses() {
  static std::once_flag once;
  std::call_once(once, [] {
    mlir::registerAllPasses();
    // The project's own, one line per folder.
    registerAsyncToGPUPasses();
    registerFractalToLinalgPasses();
    registerGPUToROCmPasses();
    registerTileToGPUPasses();
    registerTileToHostPasses();
    registerTileToRuntimePasses();
    registerTileToVectorPasses();
    registerExpandFloatsPasses();
    registerExpandMathPasses();
    registerFractalPasses();
    registerGroupToKernelPasses();
    registerHostBuffersPasses();
    registerPipeliningPasses();
    registerPlanPasses();
    registerProgramsPasses();
    registerRecurrencesPasses();
  });
}
