//===- TileOps.cpp - generated definitions of all operations ------ -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

using namespace mlir;
using namespace tilewright::tile;

#define GET_OP_CLASSES
#include "dialects/Tile/TileOps.cpp.inc"
