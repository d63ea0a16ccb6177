# SPDX-License-Identifier: MIT
"""Finds the host's archive in both formats of apt's sources."""
import unittest

import packages

DEB822 = """\
# a comment
Types: deb deb-src
URIs: https://deb.example/debian
  https://other.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
Enabled: no
URIs: https://off.example/debian
Suites: bookworm

Types: deb-src
URIs: https://source.example/debian
Suites: bookworm
"""
ONE_LINE = """\
# deb https://off.example/debian bookworm main
deb [arch=amd64 signed-by=/a key] https://deb.example/debian bookworm main contrib
deb https://deb.example/debian-security bookworm-security main # security
deb-src https://deb.example/debian bookworm main
"""


class Sources(unittest.TestCase):
    def test_paragraphs(self):
        found = list(packages.deb822_sources(DEB822))
        self.assertEqual(found, [(uri, suite) for uri in ("https://deb.example/debian", "https://other.example/debian")
                                 for suite in ("bookworm", "bookworm-updates")])

    def test_lines(self):
        self.assertEqual(list(packages.one_line_sources(ONE_LINE)),
                         [("https://deb.example/debian", "bookworm"), ("https://deb.example/debian-security", "bookworm-security")])

    def test_another_release_in_their_place(self):
        packages.host_release, packages.host_sources = lambda: "bookworm", lambda: packages.one_line_sources(ONE_LINE)
        lines = packages.sources_for("trixie", "arm64").splitlines()
        self.assertEqual([line.split("] ")[1] for line in lines],
                         ["https://deb.example/debian trixie main", "https://deb.example/debian-security trixie-security main"])
        self.assertTrue(all("arch=arm64" in line for line in lines))
        self.assertTrue(all(packages.KEYS in line for line in lines))  # or apt would not check them

    def test_no_sources_of_this_release(self):
        packages.host_release, packages.host_sources = lambda: "sid", lambda: packages.one_line_sources(ONE_LINE)
        with self.assertRaises(packages.Missing):
            packages.sources_for("trixie", "arm64")


if __name__ == "__main__":
    unittest.main()
