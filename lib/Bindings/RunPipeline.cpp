//===- RunPipeline.cpp - textual pipelines, run from Python -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Upstream's PassManager.run keeps the GIL while it runs, and a Python pass on
// another thread would wait for it for ever. Here it is released.

#include "lib/Bindings/PyPass.h"
#include "lib/Bindings/PyPassDialects.h"
#include "lib/Bindings/Registration.h"
#include "lib/Bindings/RunDiagnostics.h"
#include "lib/Bindings/RunTracer.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/Timing.h"

namespace nb = nanobind;
using namespace mlir;

namespace tilewright {
namespace {

OpPassManager parsePipeline(const std::string &text) {
  std::string message;
  llvm::raw_string_ostream stream(message);
  FailureOr<OpPassManager> parsed = parsePassPipeline(text, stream);
  if (failed(parsed))
    throw nb::value_error(message.c_str());
  return std::move(*parsed);
}

std::string normalizePipeline(const std::string &text) {
  OpPassManager manager = parsePipeline(text);
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  manager.printAsTextualPipeline(stream);
  return printed;
}

struct RunOptions {
  bool verify;
  bool printIR;
  bool printTiming;
  std::string dumpDir;
};

nb::list toPython(const std::vector<TracedPass> &passes) {
  nb::list all;
  for (const TracedPass &pass : passes)
    all.append(nb::make_tuple(pass.name, pass.seconds));
  return all;
}

nb::list toPython(std::vector<PyFailure> failures) {
  nb::list all;
  for (PyFailure &failure : failures)
    all.append(nb::make_tuple(failure.first, failure.second));
  return all;
}

void configure(PassManager &manager, Operation *op, const RunOptions &options,
               Trace &trace) {
  manager.enableVerifier(options.verify);
  trace.dumpDir = options.dumpDir;
  manager.addInstrumentation(std::make_unique<RunTracer>(op, trace));
  if (options.printIR) // per op, since other threads may change the module
    manager.enableIRPrinting([](Pass *, Operation *) { return false; },
                             [](Pass *, Operation *) { return true; },
                             /*printModuleScope=*/false);
  if (options.printTiming)
    manager.enableTiming();
}

nb::dict runPipeline(MlirOperation wrapped, const std::string &pipeline,
                     bool verify, bool printIR, bool printTiming,
                     const std::string &dumpDir) {
  Operation *op = unwrap(wrapped);
  MLIRContext *context = op->getContext();
  OpPassManager parsed = parsePipeline(pipeline);
  Trace trace;
  LogicalResult result = failure();
  DiagnosticCollector diagnostics(context);
  {
    nb::gil_scoped_release release;
    PassManager manager(context, op->getName().getStringRef());
    static_cast<OpPassManager &>(manager) = std::move(parsed);
    configure(manager, op, {verify, printIR, printTiming, dumpDir}, trace);
    result = manager.run(op);
  }
  nb::dict report;
  report["ok"] = succeeded(result);
  report["diagnostics"] = diagnostics.toPython();
  report["failures"] = toPython(takePyFailures(context));
  report["passes"] = toPython(trace.passes);
  report["dump_error"] = trace.dumpError;
  return report;
}

std::string writeReproducer(MlirOperation wrapped, const std::string &pipeline,
                            const std::string &path) {
  OpPassManager parsed = parsePipeline(pipeline);
  return makeReproducer(parsed.getOpAnchorName(), parsed.getPasses(),
                        unwrap(wrapped), path, /*disableThreads=*/false,
                        /*verifyPasses=*/true);
}

ModulePart part([](nb::module_ &m) {
  m.def("run", &runPipeline, nb::arg("op"), nb::arg("pipeline"), nb::kw_only(),
        nb::arg("verify") = true, nb::arg("print_ir") = false,
        nb::arg("print_timing") = false, nb::arg("dump_dir") = "",
        "Run a textual pipeline on an op with the GIL released. Returns a dict "
        "with ok, diagnostics, failures, passes and dump_error.");
  m.def("normalize_pipeline", &normalizePipeline, nb::arg("text"),
        "Parse a textual pipeline and print it in full, names of pipelines "
        "expanded. Raises ValueError on unknown passes or options.");
  m.def("write_reproducer", &writeReproducer, nb::arg("op"),
        nb::arg("pipeline"), nb::arg("path"),
        "Write IR and pipeline to a file for tile-opt --run-reproducer.");
  m.def(
      "register_dialects",
      [](MlirDialectRegistry registry) {
        allDialects().appendTo(*unwrap(registry));
      },
      nb::arg("registry"), "Add every dialect of MLIR and Tilewright.");
});

} // namespace
} // namespace tilewright
