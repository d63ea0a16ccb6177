// SPDX-License-Identifier: MIT
// How a host's rank tells forktail what happens: lines of JSON on its standard output, which mpirun passes on
// without anybody calling MPI. What else comes through there is mpirun's own.
//
//   {"forktail":"hello","host":"redis-a","pid":77,...}     who it is
//   {"forktail":"started","host":..,"name":"server","argv":[..]}
//   {"forktail":"progress","host":..,"name":"load","line":"SET+GET  3 s  ..."}
//   {"forktail":"said", ...,"line":"..."}                  what a program has to say otherwise
//   {"forktail":"ended","host":..,"name":..,"kind":..,"well":true,"how":"..."}
//   {"forktail":"cannot","host":..,"why":"one sentence"}
//   {"forktail":"here","host":..}                          nothing else happened for a while
//   {"forktail":"loaded","host":..}                        all its loads have ended
//   {"forktail":"over","host":..}                          all its programs have
//   {"forktail":"kept","host":..,"files":[..]} and {"forktail":"left",..,"why":..}   of gathering
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace forktail::hosts
{

using Told = nlohmann::ordered_json;

Told Tell(const std::string &what, const std::string &host);
// Writes it as a line at once, so that lines of several writers don't mix.
void Send(const Told &told);
// False: this line is none of ours.
bool Understand(const std::string &line, Told *told);
// A member that is a text; "" if there is none.
std::string TextOf(const Told &told, const char *member);

} // namespace forktail::hosts
