//===- RunModule.cpp - the _tilewright extension module -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Bindings/Registration.h"

NB_MODULE(_tilewright, m) {
  m.doc() = "Tilewright's passes, pipelines and tools over MLIR";
  for (tilewright::ModulePart::Populate populate :
       tilewright::ModulePart::all())
    populate(m);
}
