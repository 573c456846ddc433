// The header, compiled as the oldest C++: called by tug_c_test.cc.
#include <stddef.h>
#include <string.h>

#include "exchange/tug.h"

int tug_h_in_cxx98() {
  tug_context* context = NULL;
  const bool refused = tug_init("nowhere", &context) == TUG_INVALID_ARGUMENT;
  const bool said = strlen(tug_last_error(context)) > 0;
  tug_free(context);
  return refused && said;
}
