"""How the handler of a manifest is found, and where it imports from."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from torchserve_ts.errors import load_error
from torchserve_ts.loader import Handler, add_model_folder, load_handler


class LoaderTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for patch in (
            mock.patch.object(sys, "path", list(sys.path)),
            mock.patch.object(sys, "dont_write_bytecode", True),
            mock.patch.dict(sys.modules),
            mock.patch.dict(os.environ, {"PYTHONPATH": "/from/outside"}),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    def load(self, source: str, handler: str = "own_handler.py") -> Handler:
        path = self.folder / handler.split(":")[0]
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
        add_model_folder(str(self.folder), handler)
        return load_handler(handler)

    def test_a_function(self) -> None:
        self.assertTrue(self.load("def handle(data, context): pass").is_function)

    def test_a_function_with_a_name(self) -> None:
        found = self.load("class A: pass\nclass B: pass\ndef other(data, context): pass", "own_handler.py:other")
        self.assertEqual(found.handle.__name__, "other")

    def test_a_file_in_a_folder_of_the_model(self) -> None:
        self.assertTrue(self.load("def handle(data, context): pass", "src/own_handler.py").is_function)

    def test_the_only_class_with_handle(self) -> None:
        source = "class Helper: pass\nclass Own:\n  async def handle(self, data, context): pass"
        found = self.load(source)
        self.assertEqual((found.is_function, found.is_async), (False, True))

    def test_a_module_without_a_handler_is_told_what_it_must_have(self) -> None:
        with self.assertRaisesRegex(ImportError, r"must have a function handle\(data, context\) or exactly one class"):
            self.load("x = 1")

    def test_wrapped_functions_are_as_async_as_what_they_wrap(self) -> None:
        source = "import functools\nasync def inner(x, data, context): yield\nhandle = functools.partial(inner, 1)"
        self.assertTrue(self.load(source).is_async)

    def test_packages_follow_the_model_and_precede_what_is_installed(self) -> None:
        add_model_folder("/model", "handler.py", "/packages")
        self.assertEqual(sys.path[:3], ["/from/outside", "/model", "/packages"])
        self.assertEqual(os.environ["PYTHONPATH"], os.pathsep.join(sys.path[:3]))

    def test_an_error_has_its_place_and_what_mends_it(self) -> None:
        cases = {
            "import of_nobody": "ModuleNotFoundError: No module named 'of_nobody' (own_handler.py, line 1). Install it",
            "import ts.context": "Import from torchserve_ts instead",
            "\nopen('of_nobody')": "own_handler.py, line 2). Relative paths begin in the folder of the model",
            "def handle(:": "SyntaxError: invalid syntax",
        }
        for source, words in cases.items():
            sys.modules.pop("own_handler", None)
            with self.subTest(source):
                # assertRaises would clear the traceback.
                try:
                    self.load(source)
                except Exception as error:
                    self.assertIn(words, load_error(error)["message"])
                else:
                    self.fail("it was loaded")


if __name__ == "__main__":
    unittest.main()
