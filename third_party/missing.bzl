"""missing: a library that the machine lacks. A target that uses it cannot be built, and `reason` says why."""

def _missing_impl(ctx):
    fail(ctx.attr.reason)

missing = rule(
    implementation = _missing_impl,
    attrs = {"reason": attr.string(mandatory = True)},
    provides = [CcInfo],
)
