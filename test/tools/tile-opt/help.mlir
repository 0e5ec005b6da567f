// RUN: tile-opt --help --load-python %S/Inputs/user_passes.py | FileCheck-22 %s --check-prefix=HELP
// RUN: tile-opt --pass-doc test-mark --load-python %S/Inputs/user_passes.py | FileCheck-22 %s --check-prefix=DOC
// RUN: not tile-opt --pass-doc nothing 2>&1 | FileCheck-22 %s --check-prefix=NONE

// HELP: --test-mark {{ *}}-{{ *}}Write the options into an attribute
// HELP-NEXT: --fast {{ *}}- a flag to write
// HELP-NEXT: --label=<string> {{ *}}- text to write
// HELP-NEXT: --max-rows=<{{.*}}> {{ *}}- a number to write
// HELP: --tile-count-ops {{ *}}-{{ *}}Write how many ops of each kind an op holds into an attribute
// HELP: --tile-cpu-plan {{ *}}-
// HELP: --load-python=<file.py>

// DOC: test-mark: Write the options into an attribute.
// DOC: turns ``func.func @f()`` into
// DOC: max-rows=8: a number to write

// NONE: tile-opt: error: no Python pass, phase or pipeline is named 'nothing'
