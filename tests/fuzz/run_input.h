// SPDX-License-Identifier: MIT
// A run for fuzz targets, from the bytes of an input. Its blocks get the right lengths and hashes, which no
// fuzzer would guess. Each manifest begins another recording, and everything before the first block is
// run.json. With a leading 'r' it is one recording, unchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace forktail::fuzz
{

// The files' contents: run.json, then recordings. Of a leading 'r' only the recording, after an empty
// run.json.
std::vector<std::string> RunFiles(const uint8_t *data, size_t size);
// Writes them into a directory of scratch.h, without files of earlier inputs, and returns its path.
std::string WriteRun(const std::string &name, const std::vector<std::string> &files);
std::string RecordingName(size_t i); // of RunFiles(), from 1

[[noreturn]] void Fail(const char *what, const std::string &where);
// Every line is unchanged by visible_text: no name in it steers a terminal.
void CheckVisible(const std::string &text, const char *what);
std::string Contents(const std::string &path);

} // namespace forktail::fuzz
