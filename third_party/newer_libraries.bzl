"""newer_libraries: libraries of a group that only newer releases of a distribution have."""

def _newer_libraries_impl(ctx):
    found = []
    for lib in ctx.attr.libs:
        path = ctx.execute(["g++", "-print-file-name=lib%s.so" % lib]).stdout.strip()
        if "/" in path:  # else the name itself: there is no such file
            found.append(lib)
    ctx.file("BUILD", "")
    ctx.file("libs.bzl", "LIBS = %r\n" % found)

newer_libraries = repository_rule(
    implementation = _newer_libraries_impl,
    attrs = {"libs": attr.string_list(doc = "as after -l")},
    configure = True,
    local = True,
)
