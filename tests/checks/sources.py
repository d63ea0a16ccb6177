# SPDX-License-Identifier: MIT
"""The files of the tree that checks of its layout read."""
import os


def folders_of(root):
    """(folder, its folders, its files) for each below it but hidden ones, what is built or fetched, and what tests
    have to see refused. Folders are relative to it; the first is ''."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders
                            if not name.startswith((".", "build", "node_modules", "runs", "refused", "__pycache__")))
        folder = os.path.relpath(folder, root)
        yield "" if folder == "." else folder, folders, sorted(files)


def files_of(root, extensions):
    """Those that end in one of the extensions, relative to it."""
    return [os.path.join(folder, name) for folder, _, files in folders_of(root) for name in files
            if name.endswith(extensions)]


def text_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()
