"""Tests of `@PKG@ @NAME@`."""

from @PKG@.testing import ToolCase


class TagTest(ToolCase):
    def test_it_adds_tags_once(self):
        self.fill("first @ENTITY@")
        self.assertEqual(self.tool("@NAME@", "1", "home", "#urgent")[:2], (0, "1. first @ENTITY@ #home #urgent\n"))
        self.tool("@NAME@", "1", "home")
        self.assertEqual(self.store.items()[0]["tags"], ["home", "urgent"])

    def test_a_tag_is_one_word(self):
        self.fill("first @ENTITY@")
        for tag in ("two words", "#", ""):
            self.assertEqual(self.tool("@NAME@", "1", tag).code, 1, tag)
        self.assertNotIn("tags", self.store.items()[0])

    def test_a_number_that_is_not_there_is_an_error(self):
        result = self.tool("@NAME@", "1", "home")
        self.assertEqual(result.code, 1)
        self.assertIn("there is no @ENTITY@ 1", result.err)
