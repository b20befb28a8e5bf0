"""Tests of `@PKG@ @NAME@`."""

from @PKG@.testing import ToolCase


class AddTest(ToolCase):
    def test_it_stores_the_text_and_prints_the_number(self):
        result = self.tool("@NAME@", "first @ENTITY@")
        self.assertEqual((result.code, result.out), (0, "Added @ENTITY@ 1: first @ENTITY@\n"))
        self.assertEqual(self.texts(), ["first @ENTITY@"])

    def test_words_are_joined_and_numbers_go_up(self):
        self.tool("@NAME@", "one")
        self.assertIn("@ENTITY@ 2: two words", self.tool("@NAME@", "two", "words").out)

    def test_a_number_is_not_used_again(self):
        self.store.save({"version": 1, "next_id": 4, "items": []})
        self.assertIn("@ENTITY@ 4", self.tool("@NAME@", "later").out)

    def test_text_in_any_language_is_kept(self):
        self.tool("@NAME@", "café ☕ 日本語")
        self.assertEqual(self.texts(), ["café ☕ 日本語"])

    def test_an_empty_text_is_refused(self):
        result = self.tool("@NAME@", "  ")
        self.assertEqual(result.code, 1)
        self.assertIn("the text is empty", result.err)
        self.assertFalse(self.path.exists())
        self.assertEqual(self.tool("@NAME@").code, 2)
