# SPDX-License-Identifier: MIT
"""The source files that checks of the tree's layout read."""
import os


def folders_of(root):
    """(folder, its folders, its files) for each folder below, except hidden ones, built or fetched files, and the
    inputs that tests must refuse. Folders are relative to it. The first one is ''."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders
                            if not name.startswith((".", "build", "node_modules", "runs", "refused", "__pycache__")))
        folder = os.path.relpath(folder, root)
        yield "" if folder == "." else folder, folders, sorted(files)


def files_of(root, extensions):
    """The files with one of the extensions, relative to it."""
    return [os.path.join(folder, name) for folder, _, files in folders_of(root) for name in files
            if name.endswith(extensions)]


def text_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()
