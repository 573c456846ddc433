// The header, compiled as the oldest C++, and linked.
#include <string.h>

#include "exchange/tug.h"

int main() {
  tug_context* context = NULL;
  const bool refused = tug_init("nowhere", &context) == TUG_INVALID_ARGUMENT;
  const bool said = strlen(tug_last_error(context)) > 0;
  tug_free(context);
  return refused && said ? 0 : 1;
}
