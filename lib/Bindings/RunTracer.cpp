//===- RunTracer.cpp - times passes and keeps the IR after each -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Bindings/RunTracer.h"

#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tilewright {

/// The argument of a pass; the text of a nest, without options.
static std::string passName(Pass &pass) {
  if (!pass.getArgument().empty())
    return pass.getArgument().str();
  std::string text;
  llvm::raw_string_ostream stream(text);
  pass.printAsTextualPipeline(stream);
  return text;
}

void RunTracer::runBeforePass(Pass *, Operation *op) {
  if (op == root)
    open.push_back(Clock::now());
}

void RunTracer::runAfterPass(Pass *pass, Operation *op) {
  leave(pass, op, /*failed=*/false);
}

void RunTracer::runAfterPassFailed(Pass *pass, Operation *op) {
  leave(pass, op, /*failed=*/true);
}

void RunTracer::leave(Pass *pass, Operation *op, bool failed) {
  if (op != root || open.empty())
    return;
  std::chrono::duration<double> spent = Clock::now() - open.back();
  open.pop_back();
  if (!open.empty())
    return;
  std::string name = passName(*pass);
  trace.passes.push_back({name, spent.count()});
  if (!trace.dumpDir.empty())
    dump(name, failed);
}

/// A file name of at most 80 characters that any file system takes.
static std::string fileName(size_t number, StringRef passName, bool failed) {
  std::string name;
  llvm::raw_string_ostream stream(name);
  stream << llvm::format("%03zu_", number);
  for (char c : passName.take_front(64))
    stream << (llvm::isAlnum(c) || c == '.' || c == '-' ? c : '_');
  stream << (failed ? ".failed.mlir" : ".mlir");
  return name;
}

void RunTracer::dump(StringRef passName, bool failed) {
  SmallString<256> path(trace.dumpDir);
  llvm::sys::path::append(path,
                          fileName(trace.passes.size(), passName, failed));
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (error) {
    trace.dumpError = (path + ": " + error.message()).str();
    return;
  }
  // A failed pass may leave IR that the custom printers cannot take.
  OpPrintingFlags flags;
  if (failed)
    flags.printGenericOpForm();
  root->print(stream, flags);
  stream << "\n";
}

} // namespace tilewright
