"""Tests of `@PKG@ @NAME@`."""

from @PKG@.testing import ToolCase


class SearchTest(ToolCase):
    def test_it_shows_only_what_matches(self):
        self.fill("first @ENTITY@", "second @ENTITY@")
        result = self.tool("@NAME@", "second")
        self.assertEqual((result.code, result.out), (0, "2. second @ENTITY@\n"))

    def test_case_does_not_matter(self):
        self.fill("Großer ÄRGER", "other")
        self.assertEqual(self.tool("@NAME@", "GROSSER ärger").out, "1. Großer ÄRGER\n")

    def test_the_number_is_not_searched_but_tags_are(self):
        self.fill("first @ENTITY@")
        self.assertEqual(self.tool("@NAME@", "1.").code, 1)
        with self.store.change() as document:
            document["items"][0]["tags"] = ["home"]
        self.assertEqual(self.tool("@NAME@", "#home").code, 0)

    def test_no_match_is_said_and_is_exit_code_1(self):
        self.fill("first @ENTITY@")
        result = self.tool("@NAME@", "absent")
        self.assertEqual((result.code, result.out), (1, ""))
        self.assertIn("no @ENTITY@ contains 'absent'", result.err)

    def test_an_empty_text_is_refused(self):
        self.assertEqual(self.tool("@NAME@", " ").code, 1)
