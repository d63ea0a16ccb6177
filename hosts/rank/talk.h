// SPDX-License-Identifier: MIT
// MPI as far as ranks need it: texts and pieces of files between rank 0 and each other, and the difference of
// two clocks. Nobody busy-waits in it for longer than a round trip: Open MPI's own waiting takes a CPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forktail::hosts
{

bool BeginTalk(int *argc, char ***argv, int *rank, int *ranks);
void EndTalk();

void SendText(int to, const std::string &text);
// Waits by looking now and then. False: a signal asked to stop, or nothing came within `seconds`.
bool ReceiveText(int from, double seconds, std::string *text);

void SendPiece(int to, const std::vector<char> &bytes);
void ReceivePiece(int from, std::vector<char> *bytes);

// How far CLOCK_MONOTONIC of rank `with` is ahead of ours, by the quickest of some round trips, for rank 0;
// the other answers meanwhile.
int64_t MeasureAhead(int with);
void AnswerMeasure();

} // namespace forktail::hosts
