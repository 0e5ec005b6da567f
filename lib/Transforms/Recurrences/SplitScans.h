//===- SplitScans.h - what needs no state, before the recurrence -*- C++
//-*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_RECURRENCES_SPLITSCANS_H
#define TILEWRIGHT_TRANSFORMS_RECURRENCES_SPLITSCANS_H

#include "lib/Transforms/Recurrences/RecurrencePair.h"

namespace tilewright {

/// Moves products of the inner scan that need a state of neither recurrence in
/// front of both, where each is one product for all points. The pair has to be
/// found again afterwards.
void splitPair(const RecurrencePair &pair);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_RECURRENCES_SPLITSCANS_H
