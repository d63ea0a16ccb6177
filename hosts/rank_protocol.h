// SPDX-License-Identifier: MIT
// How a host's rank reports to forktail: lines of JSON on its standard output, which mpirun forwards without
// MPI calls. Other lines are mpirun's own.
//
//   {"forktail":"hello","host":"redis-a","pid":77,...}     identity of the rank
//   {"forktail":"started","host":..,"name":"server","argv":[..]}
//   {"forktail":"progress","host":..,"name":"load","line":"SET+GET  3 s  ..."}
//   {"forktail":"said", ...,"line":"..."}                  another line of a program
//   {"forktail":"ended","host":..,"name":..,"kind":..,"well":true,"how":"..."}
//   {"forktail":"cannot","host":..,"why":"one sentence"}
//   {"forktail":"here","host":..}                          heartbeat
//   {"forktail":"loaded","host":..}                        all its loads have ended
//   {"forktail":"over","host":..}                          all its programs have ended
//   {"forktail":"kept","host":..,"files":[..]} and {"forktail":"left",..,"why":..}   from gathering
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace forktail::hosts
{

using Told = nlohmann::ordered_json;

Told Tell(const std::string &what, const std::string &host);
// Writes the message as one atomic line.
void Send(const Told &told);
// False: the line is not a message of a rank.
bool Understand(const std::string &line, Told *told);
// A text member; "" if missing.
std::string TextOf(const Told &told, const char *member);

} // namespace forktail::hosts
