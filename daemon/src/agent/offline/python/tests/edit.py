"""Tests of `@PKG@ @NAME@`."""

from @PKG@.testing import ToolCase


class EditTest(ToolCase):
    def test_it_changes_the_text_and_nothing_else(self):
        self.fill("first @ENTITY@", "second @ENTITY@")
        result = self.tool("@NAME@", "2", "better", "wording")
        self.assertEqual((result.code, result.out), (0, "Changed @ENTITY@ 2: better wording\n"))
        self.assertEqual(self.store.items(), [{"id": 1, "text": "first @ENTITY@"}, {"id": 2, "text": "better wording"}])

    def test_a_number_that_is_not_there_is_an_error(self):
        result = self.tool("@NAME@", "1", "x")
        self.assertEqual(result.code, 1)
        self.assertIn("there is no @ENTITY@ 1", result.err)

    def test_an_empty_text_is_refused(self):
        self.fill("first @ENTITY@")
        self.assertEqual(self.tool("@NAME@", "1", " ").code, 1)
        self.assertEqual(self.texts(), ["first @ENTITY@"])
