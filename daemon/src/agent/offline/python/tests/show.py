"""Tests of `@PKG@ @NAME@`."""

from @PKG@.testing import ToolCase


class ShowTest(ToolCase):
    def test_it_shows_the_one_named(self):
        self.fill("first @ENTITY@", "second @ENTITY@")
        self.assertEqual(self.tool("@NAME@", "2")[:2], (0, "2. second @ENTITY@\n"))

    def test_a_number_that_is_not_there_is_an_error(self):
        result = self.tool("@NAME@", "3")
        self.assertEqual((result.code, result.out), (1, ""))
        self.assertIn("there is no @ENTITY@ 3", result.err)
