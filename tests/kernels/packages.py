# SPDX-License-Identifier: MIT
"""Kernels to boot, from Debian's own archive: fetched and verified with apt, unpacked and never installed. Likewise the
packages of another machine (script/sysroot), and sources of servers (script/symbols).

apt gets a separate configuration (sources, lists, cache), so that the host's releases stay unchanged. The archive's
address comes from the host's sources, with only the release's name replaced. Everything is in a cache directory, and
fetched files are used until they are deleted.
"""
import glob
import lzma
import os
import re
import subprocess

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "forktail", "kernels")
AMD64 = "amd64"
# The first one in the table is the oldest supported kernel. BACKPORTS is the newest kernel that the release has for its users.
BACKPORTS = "backports"
RELEASES = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie", BACKPORTS: "trixie-backports"}
# Other kernels of a release, and the end of their packages' names.
FLAVOURS = {"amd64": {"6.12-rt": ("6.12", "rt-amd64")},
            "arm64": {"6.12-16k": ("6.12", "arm64-16k"), "6.12-64k": ("6.12", "arm64-64k")}}
# Not a package, but built from Debian's sources by script/kernel-64k.
BUILT = "6.12-64k"
# Tested only if they are named.
EXTRA = (BACKPORTS, "6.12-rt", BUILT)
# Modules that a disk and its file system need. A module without a file is built into the kernel.
MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")


class Missing(Exception):
    """Why something is not available here."""


def called(command, log, **more):
    """Runs a command whose output is only needed if it fails."""
    with open(log, "a") as out:
        if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, **more).returncode:
            raise Missing(f"{command[0]} failed: see {log}")


def host_release():
    with open("/etc/os-release") as f:
        values = dict(line.rstrip().split("=", 1) for line in f if "=" in line)
    if values.get("ID") != "debian":
        raise Missing("this is no Debian system, so the address of Debian's archive is unknown")
    return values["VERSION_CODENAME"]


def one_line_sources(text):
    """(URI, suite) of the deb lines of a sources.list."""
    for line in text.splitlines():
        words = re.sub(r"\[[^]]*\]", "", line.split("#")[0]).split()
        if len(words) >= 3 and words[0] == "deb":
            yield words[1], words[2]


def deb822_sources(text):
    """(URI, suite) of a .sources file's paragraphs."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line for line in paragraph.splitlines() if not line.startswith("#")]
        fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)", "\n".join(lines), flags=re.M))
        fields = {name.lower(): value.split() for name, value in fields.items()}
        if "deb" not in fields.get("types", []) or fields.get("enabled", ["yes"])[0].lower() in ("no", "false", "0"):
            continue
        for uri in fields.get("uris", []):
            for suite in fields.get("suites", []):
                yield uri, suite


def host_sources():
    paths = glob.glob("/etc/apt/sources.list") + glob.glob("/etc/apt/sources.list.d/*")
    for path in sorted(paths):
        reader = {".list": one_line_sources, ".sources": deb822_sources}.get(os.path.splitext(path)[1])
        if reader:
            with open(path) as f:
                yield from reader(f.read())


def no_sources(host):
    return Missing(f"apt's sources do not have {host}, so the address of Debian's archive is unknown")


def mirror():
    """The address of the host's archive."""
    host = host_release()
    for uri, suite in host_sources():
        if suite == host:
            return uri
    raise no_sources(host)


def sources_for(release, architecture, kind="deb"):
    """Lines of a sources.list: the host's Debian archives, with another release. kind: deb, or deb-src for sources."""
    host, lines = host_release(), []
    for uri, suite in host_sources():
        wanted = (host,) if release.endswith("-backports") else (host, f"{host}-security", f"{host}/updates")
        if suite in wanted:
            line = f"{kind} [arch={architecture} signed-by={KEYS}] {uri} {release}{suite[len(host):]} main"
            lines += [line] if line not in lines else []
    if not lines:
        raise no_sources(host)
    return "\n".join(lines) + "\n"


class Archive:
    """One release's packages for one of Debian's architectures, or with kind deb-src its sources."""

    def __init__(self, release, architecture=AMD64, kind="deb"):
        self.release, self.architecture = release, architecture
        name = release if architecture == AMD64 else f"{release}-{architecture}"
        self.directory = os.path.join(CACHE, name if kind == "deb" else f"{name}-source")
        for part in ("lists/partial", "archives/partial"):
            os.makedirs(os.path.join(self.directory, part), exist_ok=True)
        for name, text in (("sources.list", sources_for(release, architecture, kind)), ("status", "")):
            with open(os.path.join(self.directory, name), "w") as f:
                f.write(text)
        # If root runs it, apt's own user could not read a home directory.
        at = lambda name: os.path.join(self.directory, name)
        settings = {"Dir::Etc::sourcelist": at("sources.list"), "Dir::Etc::sourceparts": "-", "Dir::State::lists": at("lists"),
                    "Dir::State::status": at("status"), "Dir::Cache": self.directory, "APT::Sandbox::User": "root",
                    "Acquire::Languages": "none", "APT::Architecture": architecture,
                    "APT::Architectures": architecture}
        self.options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]

    def apt(self, *words):
        done = subprocess.run([words[0], *self.options, *words[1:]], cwd=self.directory, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise Missing(f"{' '.join(words)} ({self.release}): {(done.stderr or done.stdout).strip()[-300:]}")
        return done.stdout

    def update(self):
        """Fetches the lists. An archive may lack a part that is not needed. apt's message is printed only if it was."""
        try:
            self.apt("apt-get", "update", "-qq", "-o", "APT::Update::Error-Mode=any")
        except Missing as why:
            return f" ({why})"
        return ""

    def unpacked(self, package, *others):
        """The directory with a package's files, and those of others. They are fetched if they are not there yet."""
        root = os.path.join(self.directory, package)
        if not os.path.isdir(root):
            for name in (package, *others):
                self.apt("apt-get", "download", "-qq", name)
                file = max(glob.glob(os.path.join(self.directory, name + "_*.deb")), key=os.path.getmtime)
                subprocess.run(["dpkg", "-x", file, root + ".part"], check=True)
                os.unlink(file)
            os.rename(root + ".part", root)
        return root

    def source(self, package):
        """The tarball of a package's source, without Debian's changes."""
        self.apt("apt-get", "source", "-qq", "--tar-only", "--download-only", package)
        return max(glob.glob(os.path.join(self.directory, package + "_*.orig.tar.*z")), key=os.path.getmtime)

    def fetched(self, packages):
        """The files of these packages and of all that they depend on."""
        self.update()
        self.apt("apt-get", "install", "-qq", "--yes", "--download-only", "--no-install-recommends", *packages)
        return sorted(glob.glob(os.path.join(self.directory, "archives", "*.deb")))


def versions(architecture):
    """The kernels that can be tested on an architecture."""
    return [*RELEASES, *FLAVOURS.get(architecture, {})]


def kernel_packages(archive, version, flavour):
    """Names of the release's kernels of a version ("6.1", or BACKPORTS for any) and flavour ("cloud-amd64"), the newest first."""
    message = archive.update()
    names = archive.apt("apt-cache", "pkgnames", "linux-image-").split()
    wanted = r"\d+\." if version == BACKPORTS else re.escape(version + ".")
    names = [name for name in names if re.fullmatch(rf"linux-image-{wanted}\S*-{flavour}", name)]
    if not names:
        raise Missing(f"{archive.release} has no kernel {version} {flavour} in apt's lists{message}")
    return sorted(names, key=lambda name: [int(number) for number in re.findall(r"\d+", name)], reverse=True)


def kernel_parts(archive, package):
    """The packages with its files: newer versions of linux-image only depend on those."""
    names = [package.replace("linux-image", part, 1) for part in ("linux-binary", "linux-modules")]
    return [name for name in names if name in archive.apt("apt-cache", "pkgnames", name).split()]


def newest_kernel(archive, version, flavour):
    """The directory with its files. An archive may list packages that it no longer has: then an older one."""
    first = None
    for package in kernel_packages(archive, version, flavour):
        try:
            return archive.unpacked(package, *kernel_parts(archive, package))
        except Missing as why:
            first = first or why
    raise first


def kernel_directory(release):
    """Where script/kernel-64k puts its kernel. `release`: of the sources, such as 6.12.9."""
    number, flavour = FLAVOURS["arm64"][BUILT]
    return os.path.join(Archive(RELEASES[number], "arm64").directory, f"linux-image-{release}-{flavour}")


class Kernel:
    def __init__(self, version, architecture=AMD64):
        """`version`: one of versions()."""
        self.version, self.architecture = version, architecture
        number, flavour = FLAVOURS.get(architecture, {}).get(version, (version, f"cloud-{architecture}"))
        archive = Archive(RELEASES[number], architecture)
        have = "[0-9]*" if number == BACKPORTS else number
        have = sorted(glob.glob(os.path.join(archive.directory, f"linux-image-{have}.*-{flavour}")), key=os.path.getmtime)
        if not have and version == BUILT:
            raise Missing("Debian has no such kernel. Build it with script/kernel-64k")
        self.root = have[-1] if have else newest_kernel(archive, number, flavour)
        # Newer packages have it beside the modules.
        self.image = (glob.glob(os.path.join(self.root, "boot", "vmlinuz-*")) +
                      glob.glob(os.path.join(self.root, "usr/lib/modules/*/vmlinuz")))[0]
        self.release = os.path.basename(self.root).removeprefix("linux-image-")

    def modules(self, *more):
        """{file name: bytes} of the modules to load, in that order: those for disks, and `more`."""
        found = {}

        def add(name):
            for path in glob.glob(f"{self.root}/**/kernel/**/{name}.ko*", recursive=True):
                with open(path, "rb") as f:
                    data = f.read()
                data = lzma.decompress(data) if path.endswith(".xz") else data
                for needed in re.search(rb"\0depends=([^\0]*)\0", data).group(1).decode().split(","):
                    if needed:
                        add(needed)
                found[name + ".ko"] = data

        for name in (*MODULES, *more):
            add(name)
        return found


def busybox(architecture=AMD64):
    """The path of a busybox that needs no library."""
    archive = Archive(host_release(), architecture)
    root = os.path.join(archive.directory, "busybox-static")
    if not os.path.isdir(root):
        archive.update()
    return os.path.join(archive.unpacked("busybox-static"), "bin", "busybox")
