# SPDX-License-Identifier: MIT
"""Checks script/spdx's output with SPDX's own validator: spdx_check.py SOURCE PROGRAMS. 77 without the validator
(script/python).

A document that states that files of its package were not analysed must be refused.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import spdx_tools  # noqa: F401 (whether it is there)
except ImportError:
    print('SKIPPED: build-python has no spdx-tools. Run script/python')
    sys.exit(77)
from spdx_tools.spdx.parser.jsonlikedict.json_like_dict_parser import JsonLikeDictParser  # noqa: E402
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document  # noqa: E402

NAMES = 'forktail-record', 'forktail-load', 'forktail-clock'


def wrong(document):
    return [m.validation_message for m in validate_full_spdx_document(JsonLikeDictParser().parse(document))]


def main(source, programs):
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as licences:
        for name in NAMES:
            os.symlink(os.path.join(programs, name), os.path.join(directory, name))
        output = subprocess.run([os.path.join(source, 'script/spdx'), '1.0.0', '1700000000', directory, licences], stdout=subprocess.PIPE, check=True).stdout
    document = json.loads(output)
    found = wrong(document)
    if sorted(f['fileName'] for f in document['files']) != sorted('./' + name for name in NAMES):
        found.append('it does not have the programs')
    document['packages'][0]['filesAnalyzed'] = False
    del document['packages'][0]['packageVerificationCode']
    if not wrong(document):
        found.append('an invalid document is not found')
    print(*found, sep='\n')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
