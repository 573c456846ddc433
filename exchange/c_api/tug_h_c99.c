/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles tug.h as C99. Called by tug_c_test.cc. */
#include <stddef.h>
#include <string.h>

#include "exchange/c_api/tug.h"

int tug_h_in_c99(void);

int tug_h_in_c99(void) {
  tug_context* context = NULL;
  const int refused = tug_init("nowhere", &context) == TUG_INVALID_ARGUMENT;
  const int said = strlen(tug_last_error(context)) > 0;
  tug_free(context);
  return refused && said;
}
