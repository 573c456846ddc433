// SPDX-License-Identifier: Apache-2.0
// Compiles tug.h as C++98, the oldest C++. Called by tug_c_test.cc.
#include <stddef.h>
#include <string.h>

#include "exchange/c_api/tug.h"

int tug_h_in_cxx98() {
  tug_context* context = NULL;
  const bool refused = tug_init("nowhere", &context) == TUG_INVALID_ARGUMENT;
  const bool said = strlen(tug_last_error(context)) > 0;
  tug_free(context);
  return refused && said;
}
