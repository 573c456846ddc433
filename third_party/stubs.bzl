"""Repositories that Bazel would download, written here instead: the rules built into Bazel, and names that only have to exist."""

def _stub_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    for folder, build in ctx.attr.packages.items():
        ctx.file(folder + "BUILD", 'package(default_visibility = ["//visibility:public"])\n' + build)
    for path, rules in ctx.attr.rules.items():
        ctx.file(path, "".join(["{0} = native.{0}\n".format(rule) for rule in rules]))

_stub = repository_rule(
    implementation = _stub_impl,
    attrs = {
        "packages": attr.string_dict(doc = "folder, with a slash, -> text of its BUILD file"),
        "rules": attr.string_list_dict(doc = ".bzl file -> rules of Bazel to export"),
    },
    local = True,
)

def _constraint(setting, values):
    return "constraint_setting(name = %r)\n" % setting + "".join([
        "constraint_value(name = %r, constraint_setting = %r)\n" % (value, ":" + setting)
        for value in values
    ])

def bazel_stubs():
    """Defines rules_cc, rules_java, rules_proto, platforms and remote_coverage_tools, as Bazel's own files use them."""
    _stub(
        name = "rules_cc",
        packages = {"cc/": ""},
        rules = {"cc/defs.bzl": [
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
        ]},
    )
    _stub(
        name = "rules_java",
        packages = {"java/": ""},
        rules = {"java/defs.bzl": [
            "java_binary",
            "java_import",
            "java_library",
            "java_lite_proto_library",
            "java_package_configuration",
            "java_plugin",
            "java_proto_library",
            "java_runtime",
            "java_test",
            "java_toolchain",
        ]},
    )
    _stub(
        name = "rules_proto",
        packages = {"proto/": ""},
        rules = {"proto/defs.bzl": [
            "proto_lang_toolchain",
            "proto_library",
        ]},
    )
    _stub(
        name = "platforms",
        packages = {
            "cpu/": _constraint("cpu", ["aarch64", "arm", "arm64", "arm64e", "mips64", "ppc", "riscv64", "s390x", "x86_32", "x86_64"]),
            "os/": _constraint("os", ["android", "freebsd", "ios", "linux", "macos", "openbsd", "osx", "windows"]),
        },
    )
    _stub(
        name = "remote_coverage_tools",
        packages = {"": 'filegroup(name = "coverage_report_generator")\nfilegroup(name = "coverage_output_generator")\n'},
    )
