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
import zipfile

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


def artefacts(source, directory, content):
    """What is wrong with the documents of a wheel and of an artefact with the programs of `content`."""
    wheel, archive, document = (os.path.join(directory, name) for name in ('forktail.whl', 'forktail.tar.gz', 'content.json'))
    with zipfile.ZipFile(wheel, 'w') as file:
        file.writestr('forktail-1.0.0.dist-info/METADATA', 'Version: 1.0.0\nRequires-Dist: duckdb>=1.0\n')
    for path, text in ((archive, b''), (document, content)):
        with open(path, 'wb') as file:
            file.write(text)
    for words, wanted in (([wheel, '1'], 'duckdb'), ([archive, '1', document], 'libbpf-dev')):
        output = subprocess.run([os.path.join(source, 'script/spdx'), '--of', *words], stdout=subprocess.PIPE, check=True).stdout
        made = json.loads(output)
        yield from wrong(made)
        if wanted not in [package['name'] for package in made['packages']]:
            yield f'{words[0]} lacks {wanted}'


def main(source, programs):
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as licences:
        for name in NAMES:
            os.symlink(os.path.join(programs, name), os.path.join(directory, name))
        output = subprocess.run([os.path.join(source, 'script/spdx'), '1.0.0', '1700000000', directory, licences], stdout=subprocess.PIPE, check=True).stdout
        found = list(artefacts(source, directory, output))
        if not os.path.exists(os.path.join(licences, 'libbpf-dev')):
            found.append('a licence is not copied')
    document = json.loads(output)
    found += wrong(document)
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
