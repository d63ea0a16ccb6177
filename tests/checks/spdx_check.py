# SPDX-License-Identifier: MIT
"""Holds what script/spdx writes against SPDX's own validator: spdx_check.py SOURCE PROGRAMS. 77 without it (script/python).

A document that says of a package with files that they were not analysed is the one that has to be refused: so it was once.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import spdx_tools  # noqa: F401 (whether it is there)
except ImportError:
    print('skipped: build-python has no spdx-tools; script/python gets it')
    sys.exit(77)
from spdx_tools.spdx.parser.jsonlikedict.json_like_dict_parser import JsonLikeDictParser  # noqa: E402
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document  # noqa: E402

NAMES = 'forktail-record', 'forktail-load', 'forktail-clock'


def wrong(document):
    return [m.validation_message for m in validate_full_spdx_document(JsonLikeDictParser().parse(document))]


def main(source, programs):
    with tempfile.TemporaryDirectory() as directory:
        for name in NAMES:
            os.symlink(os.path.join(programs, name), os.path.join(directory, name))
        said = subprocess.run([os.path.join(source, 'script/spdx'), '1.0.0', '1700000000', directory], stdout=subprocess.PIPE, check=True).stdout
    document = json.loads(said)
    found = wrong(document)
    if sorted(f['fileName'] for f in document['files']) != sorted('./' + name for name in NAMES):
        found.append('it does not have the programs')
    document['packages'][0]['filesAnalyzed'] = False
    del document['packages'][0]['packageVerificationCode']
    if not wrong(document):
        found.append('what is wrong is not found')
    print(*found, sep='\n')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
