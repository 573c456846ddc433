"""Repositories that Bazel 4.2 would download, written here instead.

Debian's bazel-rules-cc is newer than its Bazel and does not load, so rules_cc
re-exports the rules built into Bazel. remote_coverage_tools only has to exist.
"""

_CC_RULES = [
    "cc_binary",
    "cc_import",
    "cc_libc_top_alias",
    "cc_library",
    "cc_proto_library",
    "cc_test",
    "cc_toolchain",
    "cc_toolchain_suite",
    "fdo_prefetch_hints",
    "fdo_profile",
    "objc_import",
    "objc_library",
]

def _rules_cc_shim_impl(ctx):
    ctx.file("WORKSPACE", 'workspace(name = "rules_cc")\n')
    ctx.file("BUILD", "")
    ctx.file("cc/BUILD", 'exports_files(["defs.bzl"], visibility = ["//visibility:public"])\n')
    ctx.file("cc/defs.bzl", "".join(["{0} = native.{0}\n".format(rule) for rule in _CC_RULES]))

rules_cc_shim = repository_rule(implementation = _rules_cc_shim_impl, local = True)

def _coverage_tools_shim_impl(ctx):
    ctx.file("WORKSPACE", 'workspace(name = "remote_coverage_tools")\n')
    ctx.file("BUILD", "".join([
        'filegroup(name = "{}", visibility = ["//visibility:public"])\n'.format(name)
        for name in ["coverage_report_generator", "coverage_output_generator"]
    ]))

coverage_tools_shim = repository_rule(implementation = _coverage_tools_shim_impl, local = True)
