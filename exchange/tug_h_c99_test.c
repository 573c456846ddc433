/* The header, compiled as C99, and linked. */
#include <string.h>

#include "exchange/tug.h"

int main(void) {
  tug_context* context = NULL;
  const int refused = tug_init("nowhere", &context) == TUG_INVALID_ARGUMENT;
  const int said = strlen(tug_last_error(context)) > 0;
  tug_free(context);
  return refused && said ? 0 : 1;
}
