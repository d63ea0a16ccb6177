# SPDX-License-Identifier: MIT
"""Finds the host's archive in both formats of apt's sources, and the newest kernel in its lists."""
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
        lines = packages.sources_for("trixie-backports", "amd64").splitlines()
        self.assertEqual([line.split("] ")[1] for line in lines], ["https://deb.example/debian trixie-backports main"])
        self.assertTrue(all(packages.KEYS in line for line in lines))  # or apt would not check them

    def test_no_sources_of_this_release(self):
        packages.host_release, packages.host_sources = lambda: "sid", lambda: packages.one_line_sources(ONE_LINE)
        with self.assertRaises(packages.Missing):
            packages.sources_for("trixie", "arm64")


class Archive:
    """With these lists."""
    release, names = "trixie", ["6.12.9+deb13-cloud-arm64", "6.12.100+deb13-cloud-arm64", "6.12.100+deb13-arm64-16k",
                                "6.12.101+deb13-cloud-arm64-dbg", "7.3.4+deb13-cloud-arm64", "cloud-arm64"]

    def update(self):
        return ""

    def apt(self, *_):
        return "".join(f"linux-image-{name}\n" for name in self.names)


class Kernels(unittest.TestCase):
    def test_newest_first(self):
        self.assertEqual(packages.kernel_packages(Archive(), "6.12", "cloud-arm64"),
                         ["linux-image-6.12.100+deb13-cloud-arm64", "linux-image-6.12.9+deb13-cloud-arm64"])
        self.assertEqual(packages.kernel_packages(Archive(), "6.12", "arm64-16k"), ["linux-image-6.12.100+deb13-arm64-16k"])
        self.assertEqual(packages.kernel_packages(Archive(), packages.BACKPORTS, "cloud-arm64")[0], "linux-image-7.3.4+deb13-cloud-arm64")
        with self.assertRaises(packages.Missing):
            packages.kernel_packages(Archive(), "6.12", "rt-arm64")

    def test_an_older_one_if_the_newest_is_gone(self):
        archive = Archive()
        def unpacked(package):
            if "6.12.100" in package:
                raise packages.Missing("gone")
            return package
        archive.unpacked = unpacked
        self.assertEqual(packages.newest_kernel(archive, "6.12", "cloud-arm64"), "linux-image-6.12.9+deb13-cloud-arm64")
        with self.assertRaises(packages.Missing):
            packages.newest_kernel(archive, "6.12", "arm64-16k")


if __name__ == "__main__":
    unittest.main()
