// SPDX-License-Identifier: MIT
// The MPI functions that ranks need: texts and pieces of files between rank 0 and another rank, and the
// offset of two clocks. It polls with short sleeps, because Open MPI's own waiting uses a whole CPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forktail::hosts
{

bool BeginTalk(int *argc, char ***argv, int *rank, int *ranks);
void EndTalk();

void SendText(int to, const std::string &text);
// Polls for a text. False: a stop signal, or no text within `seconds`.
bool ReceiveText(int from, double seconds, std::string *text);

void SendPiece(int to, const std::vector<char> &bytes);
void ReceivePiece(int from, std::vector<char> *bytes);

// For rank 0: the offset of CLOCK_MONOTONIC of rank `with` from ours, by the fastest of several round trips.
// The other rank calls AnswerMeasure().
int64_t MeasureAhead(int with);
void AnswerMeasure();

} // namespace forktail::hosts
