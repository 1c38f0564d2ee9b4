"""pytest plugin: writes one JSON line per finished test to the file named by CONFORMANCE_REPORT."""

import json
import os

import pytest


def _write(test, outcome, reason=""):
    with open(os.environ["CONFORMANCE_REPORT"], "a") as report:
        report.write(json.dumps({"test": test, "outcome": outcome, "reason": reason}) + "\n")


def _message(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else str(report.longrepr)


@pytest.hookimpl
def pytest_runtest_logreport(report):
    test = report.nodeid.split("::", 1)[-1]
    if report.skipped:
        _write(test, "skipped", report.longrepr[2])
    elif report.failed:
        _write(test, "failed", f"{report.when}: {_message(report)}")
    elif report.when == "call":
        _write(test, "passed")


@pytest.hookimpl
def pytest_collectreport(report):
    if report.failed:
        _write("(collection)", "failed", str(report.longrepr))
