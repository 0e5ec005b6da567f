//===- FractalOps.td - all operations of fractal ---------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_FRACTAL_OPS
#define TILEWRIGHT_FRACTAL_OPS

include "dialects/Fractal/FractalAccessOps.td"
include "dialects/Fractal/FractalComputeOps.td"
include "dialects/Fractal/FractalGraphOps.td"
include "dialects/Fractal/FractalRegroupOps.td"
include "dialects/Fractal/FractalStorageOps.td"
include "dialects/Fractal/FractalTreeOps.td"

#endif // TILEWRIGHT_FRACTAL_OPS
