"""Tests of `@PKG@ @NAME@`."""

from @PKG@.testing import ToolCase


class RemoveTest(ToolCase):
    def test_it_removes_only_the_one_named(self):
        self.fill("first @ENTITY@", "second @ENTITY@")
        result = self.tool("@NAME@", "1")
        self.assertEqual((result.code, result.out), (0, "Removed @ENTITY@ 1: first @ENTITY@\n"))
        self.assertEqual([item["id"] for item in self.store.items()], [2])

    def test_a_number_that_is_not_there_changes_nothing(self):
        self.fill("first @ENTITY@")
        result = self.tool("@NAME@", "9")
        self.assertEqual(result.code, 1)
        self.assertIn("there is no @ENTITY@ 9", result.err)
        self.assertEqual(self.texts(), ["first @ENTITY@"])

    def test_something_else_than_a_number_is_wrong_usage(self):
        self.assertEqual(self.tool("@NAME@", "first").code, 2)
