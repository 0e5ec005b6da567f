//===- RegisterDialects.cpp - every dialect the compiler knows --*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/RegisterDialects.h"

#include "dialects/CoreMesh/CoreMesh.h"
#include "dialects/Fractal/Fractal.h"
#include "dialects/SparseTile/SparseTile.h"
#include "dialects/Tile/Tile.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

void tilewright::registerAllDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllToLLVMIRTranslations(registry);
  registry.insert<coremesh::CoreMeshDialect, fractal::FractalDialect,
                  sparse_tile::SparseTileDialect, tile::TileDialect>();
  tile::registerBufferizationModels(registry);
}
