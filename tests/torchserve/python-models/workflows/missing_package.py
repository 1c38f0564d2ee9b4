"""Needs a package that is not installed."""

import a_package_that_nobody_installed  # noqa: F401


def preprocessing(data, context):
    return data
