//===- OptMain.cpp - the command line tools, called from Python -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Bindings/PyPass.h"
#include "lib/Bindings/PyPassDialects.h"
#include "lib/Bindings/Registration.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "llvm/Support/CommandLine.h"

namespace nb = nanobind;
using namespace mlir;

namespace tilewright {
namespace {

using Main = LogicalResult (*)(int, char **, DialectRegistry &);

/// Runs one tool, once in a process: LLVM's options and static state are
/// spent afterwards. The tool may also leave the process itself (--help).
int runTool(Main main, std::vector<std::string> arguments) {
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  setContextsOwnedByCpp();
  nb::gil_scoped_release release;
  DialectRegistry registry;
  allDialects().appendTo(registry);
  int argc = static_cast<int>(arguments.size());
  return succeeded(main(argc, argv.data(), registry)) ? 0 : 1;
}

/// These are acted on in Python, before this parser runs; here they are
/// accepted and documented.
void registerPythonOptions() {
  using namespace llvm;
  static cl::list<std::string> loadPython(
      "load-python", cl::value_desc("file.py"),
      cl::desc("Import a Python file that registers passes (repeatable)"));
  static cl::opt<std::string> passDoc(
      "pass-doc", cl::value_desc("name"),
      cl::desc("Print the documentation of a Python pass or phase, and exit"));
}

LogicalResult optMain(int argc, char **argv, DialectRegistry &registry) {
  registerPythonOptions();
  return MlirOptMain(argc, argv, "Tilewright modular optimizer driver\n",
                     registry);
}

LogicalResult lspMain(int argc, char **argv, DialectRegistry &registry) {
  return MlirLspServerMain(argc, argv, registry);
}

LogicalResult reduceMain(int argc, char **argv, DialectRegistry &registry) {
  registerPythonOptions();
  MLIRContext context(registry);
  return mlirReduceMain(argc, argv, context);
}

template <Main main> int tool(std::vector<std::string> arguments) {
  return runTool(main, std::move(arguments));
}

ModulePart part([](nb::module_ &m) {
  m.def("opt_main", &tool<optMain>, nb::arg("argv"),
        "Run tile-opt (argv[0] is its name); returns the exit status.");
  m.def("lsp_server_main", &tool<lspMain>, nb::arg("argv"),
        "Run tile-lsp-server; returns the exit status.");
  m.def("reduce_main", &tool<reduceMain>, nb::arg("argv"),
        "Run tile-reduce; returns the exit status.");
});

} // namespace
} // namespace tilewright
