"""system_library: a library installed by the distribution under /usr."""

def system_library(name, libs = [], **kwargs):
    """A cc_library of linker flags; `libs` are named as after -l."""
    native.cc_library(
        name = name,
        linkopts = (["-Wl,--push-state,--as-needed"] + ["-l" + lib for lib in libs] +
                    ["-Wl,--pop-state"]) if libs else [],
        **kwargs
    )
