"""Tests of `@PKG@ @NAME@`."""

from @PKG@.testing import ToolCase


class DoneTest(ToolCase):
    def test_it_marks_only_the_one_named(self):
        self.fill("first @ENTITY@", "second @ENTITY@")
        result = self.tool("@NAME@", "2")
        self.assertEqual((result.code, result.out), (0, "Done: @ENTITY@ 2: second @ENTITY@\n"))
        self.assertEqual([item.get("done", False) for item in self.store.items()], [False, True])

    def test_a_second_time_is_said_and_harmless(self):
        self.fill("first @ENTITY@")
        self.tool("@NAME@", "1")
        result = self.tool("@NAME@", "1")
        self.assertEqual((result.code, result.out), (0, "@ENTITY_CAP@ 1 was done already\n"))

    def test_a_number_that_is_not_there_is_an_error(self):
        result = self.tool("@NAME@", "1")
        self.assertEqual(result.code, 1)
        self.assertIn("there is no @ENTITY@ 1", result.err)
