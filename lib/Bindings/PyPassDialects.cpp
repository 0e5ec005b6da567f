//===- PyPassDialects.cpp - dialects of Python passes, by name -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Bindings/PyPassDialects.h"

#include "lib/RegisterDialects.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/MLIRContext.h"

#include <mutex>

using namespace mlir;

namespace tilewright {

const DialectRegistry &allDialects() {
  // Leaked: a tool may leave through exit() while other threads still run.
  static const DialectRegistry *registry = [] {
    auto *made = new DialectRegistry();
    registerAllDialects(*made);
    return made;
  }();
  return *registry;
}

bool isDialect(StringRef name) {
  return static_cast<bool>(allDialects().getDialectAllocator(name));
}

/// A registry wants the TypeID of a dialect, which only an instance can tell:
/// one is loaded in a context of its own, once per name.
static TypeID dialectTypeID(StringRef name) {
  static std::mutex mutex;
  static auto *context = new MLIRContext(MLIRContext::Threading::DISABLED);
  std::lock_guard<std::mutex> lock(mutex);
  static bool prepared = (context->appendDialectRegistry(allDialects()), true);
  (void)prepared;
  return context->getOrLoadDialect(name)->getTypeID();
}

void insertDialect(StringRef name, DialectRegistry &registry) {
  DialectAllocatorFunctionRef allocator =
      allDialects().getDialectAllocator(name);
  registry.insert(dialectTypeID(name), name,
                  [allocator](MLIRContext *context) -> Dialect * {
                    return allocator(context);
                  });
}

} // namespace tilewright
